//! A dry run of the ApplicationSet controller.

use crate::applicationsets::{APPS, PATIENCE, Plane, SECRETS, SETS, template};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tiphys_controllers::applicationset::ControllerSettings;
use tokio::time::{Instant, sleep};
use tracing::field::{Field, Visit};
use tracing::span;

const PROJECTS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";

/// What the controllers of this program log of sets whose names begin with `dry-`.
static HEARD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn heard() -> BTreeSet<String> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

struct Listener;

impl tracing::Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        let target = metadata.target();
        metadata.is_event() && target.starts_with("tiphys_controllers::applicationset")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        if line.0.contains("applicationset=dry-") {
            let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
            heard.insert(line.0);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, "{}={value} ", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

fn set(name: &str, element: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {
            "name": name,
            "annotations": {"argocd.argoproj.io/application-set-refresh": "true"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "generators": [{"list": {"elements": [{"name": element}]}}],
            "template": template("{{name}}", "https://example.com/r", "."),
        },
    })
}

/// An Application of a stored set, which the set does not generate.
fn owned(name: &str, set: &Value) -> Value {
    let made = template(name, "https://example.com/r", ".");
    let (of, uid) = (&set["metadata"]["name"], &set["metadata"]["uid"]);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "ownerReferences": [{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": of, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]},
        "spec": made["spec"],
    })
}

/// Waits for a reconcile of each set that began after this was called.
async fn reconciled(plane: &Plane, sets: &[&str]) {
    // The first one may have begun before.
    for round in ["a", "b"] {
        let before: Vec<u64> = sets.iter().map(|set| plane.reconciles(set)).collect();
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": format!("wakes-{round}")}, "spec": {},
        });
        // A new project wakes all sets.
        plane.create(PROJECTS, &project).await;
        let began = Instant::now();
        let is_behind = |(set, before): (&&str, &u64)| plane.reconciles(set) <= *before;
        while sets.iter().zip(&before).any(is_behind) {
            assert!(began.elapsed() < PATIENCE, "{:?}", heard());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_writes_nothing() {
    let is_heard = tracing::subscriber::set_global_default(Listener);
    is_heard.expect("no other test of this program listens");
    let settings = ControllerSettings {
        dry_run: true,
        ..ControllerSettings::default()
    };
    let plane = Plane::start(settings).await;
    let stays = plane.create(SETS, &set("dry-stays", "dry-new")).await;
    let goes = plane.create(SETS, &set("dry-goes", "dry-other")).await;
    let mut before = vec![stays.clone()];
    for (name, of) in [("dry-lost", &stays), ("dry-gone", &goes)] {
        before.push(plane.create(APPS, &owned(name, of)).await);
    }
    let path = format!("{SETS}/dry-goes");
    plane.delete(&path).await;
    let going = plane.get(&path).await;
    assert!(
        going["metadata"]["deletionTimestamp"].is_string(),
        "{going}"
    );
    // But for the deletion it is as it was created.
    let kept = [
        "/metadata/annotations",
        "/metadata/finalizers",
        "/spec",
        "/status",
    ];
    for part in kept {
        assert_eq!(going.pointer(part), goes.pointer(part), "{part}");
    }
    before.push(going);

    reconciled(&plane, &["dry-stays", "dry-goes"]).await;
    for object in &before {
        let path = match object["kind"].as_str() {
            Some("ApplicationSet") => SETS,
            _ => APPS,
        };
        let name = object["metadata"]["name"].as_str().expect("a name");
        assert_eq!(plane.get(&format!("{path}/{name}")).await, *object);
    }
    assert_eq!(plane.names().await, ["dry-gone", "dry-lost"]);
    let secrets = plane.get(SECRETS).await;
    let secrets = secrets["items"].as_array().expect("a list");
    assert!(secrets.is_empty(), "{secrets:?}");
    // The reconciles got as far as that, and none failed.
    let heard = heard();
    let is_said = |what: &str, app: &str| {
        let of = format!("application={app} ");
        heard
            .iter()
            .any(|line| line.contains(&of) && line.contains(what))
    };
    assert!(is_said("it would create", "dry-new"), "{heard:?}");
    assert!(is_said("it would delete", "dry-lost"), "{heard:?}");
    assert!(
        !heard.iter().any(|line| line.contains("failed")),
        "{heard:?}"
    );
}
