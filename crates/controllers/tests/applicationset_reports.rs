//! What people reported about ApplicationSets (`../shared/cases/reports/sets`), played as a whole
//! on an API server, with the right answers.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use crate::applicationsets::{APPS, PATIENCE, Plane, SETS, text};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, time::Duration};
use tiphys_cluster::request::Call;
use tiphys_controllers::applicationset::ControllerSettings;
use tiphys_gocompat::yaml;
use tokio::time::{Instant, sleep};

const RESOURCES: &str = "resources-finalizer.argocd.argoproj.io";

struct Case(PathBuf);

impl Case {
    /// `None`: the cases are not here, and the test is skipped.
    fn new(name: &str) -> Option<Self> {
        tiphys_testkit::shared(&format!("cases/reports/sets/{name}")).map(Self)
    }

    fn read(&self, file: &str) -> Value {
        let text = fs::read_to_string(self.0.join(file)).expect(file);
        yaml::parse_document(&text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
            .expect(file)
    }

    /// The set, with the status that the case has for it.
    fn set(&self) -> Value {
        let mut set = self.read("appset.yaml");
        if self.0.join("status.yaml").is_file() {
            set["status"] = self.read("status.yaml");
        }
        set
    }

    fn applications(&self) -> Vec<Value> {
        let all = self.read("applications.yaml");
        all.as_array().expect("a list").clone()
    }
}

fn application(name: &str, labels: Value, spec: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "labels": labels}, "spec": spec,
    })
}

fn rolling() -> ControllerSettings {
    ControllerSettings {
        progressive_syncs: Some(true),
        ..ControllerSettings::default()
    }
}

fn path(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// Waits until something that is read is as wanted.
async fn until<T: std::fmt::Debug + PartialEq>(read: impl AsyncFn() -> T, wanted: &T) {
    let began = Instant::now();
    loop {
        let found = read().await;
        if found == *wanted {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{found:?} instead of {wanted:?}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}

/// What the template of a set gives for an element with these fields.
fn filled(set: &Value, fields: &[(&str, &str)]) -> Value {
    let mut text = set["spec"]["template"]["spec"].to_string();
    for (name, value) in fields {
        text = text.replace(&format!("{{{{.{name}}}}}"), value);
    }
    serde_json::from_str(&text).expect("JSON")
}

/// Report 08: a newer revision landed while a step was pending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_revision_is_no_reason_to_wait() {
    let Some(case) = Case::new("08-rolling-newer-revision") else {
        return;
    };
    let set = case.set();
    let mut before = vec![set.clone()];
    for app in case.applications() {
        let name = text(&app["name"]);
        let mut spec = filled(&set, &[("name", &name), ("env", &name)]);
        spec["syncPolicy"]["automated"]["enabled"] = json!(false);
        let mut app_object = application(&name, json!({"env": name}), spec);
        app_object["status"] = app["status"].clone();
        // The file leaves out what the definition requires.
        if let Some(state) = app_object["status"].get_mut("operationState") {
            state["operation"] = json!({"sync": {}});
        }
        before.push(app_object);
    }
    let plane = Plane::start_with(rolling(), &[], &before).await;
    let statuses = async || {
        let set = plane.get(&path(SETS, "roll")).await;
        let all = set["status"]["applicationStatus"].as_array().cloned();
        let mut all: Vec<String> = all
            .unwrap_or_default()
            .iter()
            .map(|s| {
                format!(
                    "{} {} {}",
                    s["application"], s["status"], s["targetRevisions"]
                )
            })
            .collect();
        all.sort();
        all
    };
    let wanted = [
        r#""dev" "Healthy" ["bbb"]"#.to_owned(),
        r#""prod" "Pending" ["bbb"]"#.to_owned(),
    ];
    until(statuses, &wanted.to_vec()).await;
    let message = plane.condition("roll", "RolloutProgressing", "True").await;
    assert!(message.contains("step 2"), "{message}");
    let by = "/operation/initiatedBy/username";
    plane.field("prod", by, "applicationset-controller").await;
}

/// Report 13: a field that is ignored is neither a change nor written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_field_changes_nothing() {
    let Some(case) = Case::new("13-rolling-ignored-field") else {
        return;
    };
    let mut set = case.set();
    let app = case.applications().remove(0);
    let mut live = application("dev", app["labels"].clone(), app["spec"].clone());
    live["status"] = app["status"].clone();
    live["metadata"]["finalizers"] = json!([RESOURCES]);
    // As if the set had made it.
    set["metadata"]["annotations"] = json!({});
    let plane = Plane::start_with(rolling(), &[], &[set, live]).await;
    let (of_app, of_set) = (path(APPS, "dev"), path(SETS, "roll"));
    // It is adopted, which is the only write.
    plane
        .field("dev", "/metadata/ownerReferences/0/name", "roll")
        .await;
    plane.condition("roll", "RolloutProgressing", "False").await;
    let refresh = "argocd.argoproj.io/application-set-refresh";
    let mut seen = Vec::new();
    for _ in 0..4 {
        let annotate = json!({"metadata": {"annotations": {refresh: "true"}}});
        plane.patch(&of_set, annotate).await;
        let is_left = async || {
            let set = plane.get(&of_set).await;
            set["metadata"]["annotations"][refresh].is_null()
        };
        until(is_left, &true).await;
        sleep(Duration::from_millis(300)).await;
        let (app, set) = (plane.get(&of_app).await, plane.get(&of_set).await);
        assert_eq!(app["spec"]["source"]["targetRevision"], "hotfix-7");
        assert_eq!(app["spec"]["syncPolicy"]["automated"]["enabled"], false);
        assert_eq!(app["operation"], Value::Null);
        let version = app["metadata"]["resourceVersion"].clone();
        seen.push((version, set["status"]["applicationStatus"].clone()));
    }
    assert!(seen[1..].iter().all(|next| *next == seen[0]), "{seen:#?}");
    let version = plane.get(&of_set).await["metadata"]["resourceVersion"].clone();
    sleep(Duration::from_secs(1)).await;
    let later = plane.get(&of_set).await["metadata"]["resourceVersion"].clone();
    assert_eq!(later, version, "nothing asks for another reconcile");
}

/// Report 14: the last step goes first, one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_deleted_in_reverse() {
    let Some(case) = Case::new("14-reverse-finalizer") else {
        return;
    };
    let plane = Plane::start(rolling()).await;
    let set = case.set();
    plane.set("stack", set["spec"].clone()).await;
    plane.has(&["api", "db", "misc", "web"]).await;
    let of_set = path(SETS, "stack");
    let finalizers = plane.get(&of_set).await["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!([RESOURCES]));
    for app in plane.apps().await {
        assert_eq!(
            app["metadata"]["finalizers"],
            json!([RESOURCES]),
            "what is released by hand"
        );
    }
    plane.delete(&of_set).await;
    let going = async || {
        let apps = plane.apps().await;
        let going = apps
            .iter()
            .filter(|app| !app["metadata"]["deletionTimestamp"].is_null());
        going
            .map(|app| text(&app["metadata"]["name"]))
            .collect::<Vec<_>>()
    };
    for name in ["web", "api", "db"] {
        until(&going, &vec![name.to_owned()]).await;
        // Being terminated is not being gone.
        sleep(Duration::from_millis(500)).await;
        assert_eq!(going().await, [name]);
        assert!(
            plane.send(Call::get(&of_set)).await.is_ok(),
            "the set waits"
        );
        let released = json!({"metadata": {"finalizers": null}});
        plane.patch(&path(APPS, name), released).await;
    }
    let is_gone = async || plane.send(Call::get(&of_set)).await.is_err();
    until(is_gone, &true).await;
    let misc = plane.get(&path(APPS, "misc")).await;
    assert_eq!(misc["metadata"]["finalizers"], json!([RESOURCES]));

    // Without the flag, steps or their type there is no such finalizer.
    for (name, strategy, flag) in [
        ("no-flag", set["spec"]["strategy"].clone(), false),
        (
            "no-steps",
            json!({"type": "RollingSync", "deletionOrder": "Reverse"}),
            true,
        ),
        (
            "all",
            json!({"type": "AllAtOnce", "deletionOrder": "Reverse"}),
            true,
        ),
    ] {
        let settings = ControllerSettings {
            progressive_syncs: Some(flag),
            ..ControllerSettings::default()
        };
        let plane = Plane::start(settings).await;
        let mut spec = set["spec"].clone();
        spec["strategy"] = strategy;
        plane.set(name, spec).await;
        plane.has(&["api", "db", "misc", "web"]).await;
        plane.condition(name, "ResourcesUpToDate", "True").await;
        let set = plane.get(&path(SETS, name)).await;
        assert_eq!(set["metadata"]["finalizers"], Value::Null, "{name}");
    }
}

/// Report 16: `preserveResourcesOnDeletion` for a set that runs already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preserving_takes_finalizers_away() {
    let Some(case) = Case::new("16-preserve-toggle") else {
        return;
    };
    let expected = case.read("expected.yaml");
    for (name, explicit, policy) in [
        ("appset", false, None),
        ("appset-explicit", true, None),
        ("create-only", false, Some("create-only")),
        ("create-delete", false, Some("create-delete")),
    ] {
        let mut set = case.set();
        if explicit {
            set["spec"]["template"]["metadata"] =
                case.read("appset-explicit.yaml")["metadata"].clone();
        }
        if let Some(policy) = policy {
            set["spec"]["syncPolicy"]["applicationsSync"] = json!(policy);
        }
        let mut running = set.clone();
        running["spec"]["syncPolicy"]["preserveResourcesOnDeletion"] = json!(false);
        let plane = Plane::start(ControllerSettings::default()).await;
        plane.set("keep", running["spec"].clone()).await;
        plane.has(&["keep-a", "keep-b"]).await;
        let apps = case.applications();
        for app in &apps {
            let finalizers = json!({"metadata": {"finalizers": app["finalizers"]}});
            plane
                .patch(&path(APPS, &text(&app["name"])), finalizers)
                .await;
        }
        let switch = json!({"spec": {"syncPolicy": {"preserveResourcesOnDeletion": true}}});
        plane.patch(&path(SETS, "keep"), switch).await;
        let wanted: Vec<Value> = apps
            .iter()
            .map(|app| match &expected[name][text(&app["name"])] {
                Value::Null => app["finalizers"].clone(),
                finalizers => finalizers.clone(),
            })
            .collect();
        let found = async || {
            let apps = plane.apps().await;
            let of = |app: &Value| match &app["metadata"]["finalizers"] {
                Value::Null => json!([]),
                finalizers => finalizers.clone(),
            };
            apps.iter().map(of).collect::<Vec<_>>()
        };
        if wanted
            == apps
                .iter()
                .map(|app| app["finalizers"].clone())
                .collect::<Vec<_>>()
        {
            // Nothing is to change: give it the time to.
            sleep(Duration::from_millis(700)).await;
        }
        until(found, &wanted).await;
    }
}

/// Report 17: a set that no longer wants an Application, and another one that does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_sets_application_is_not_taken() {
    let Some(case) = Case::new("17-two-owners") else {
        return;
    };
    let [alpha, beta] = ["alpha.yaml", "beta.yaml"].map(|file| case.read(file)["spec"].clone());
    let elements = |names: &[&str]| {
        let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!([{"list": {"elements": elements}}])
    };
    let plane = Plane::start(ControllerSettings::default()).await;
    for (name, spec, names) in [
        ("alpha", &alpha, &["shared", "alpha-own"][..]),
        ("beta", &beta, &["beta-old"]),
    ] {
        let mut spec = spec.clone();
        spec["generators"] = elements(names);
        plane.set(name, spec).await;
    }
    plane.has(&["alpha-own", "beta-old", "shared"]).await;
    for app in case.applications() {
        let name = text(&app["name"]);
        plane
            .field(
                &name,
                "/metadata/ownerReferences/0/name",
                &text(&app["owner"]),
            )
            .await;
        plane
            .field(&name, "/spec/source/path", &text(&app["source"]["path"]))
            .await;
    }
    let version = async |name: &str| {
        let app = plane.get(&path(APPS, name)).await;
        text(&app["metadata"]["resourceVersion"])
    };
    plane.condition("beta", "ResourcesUpToDate", "True").await;
    let before = [version("shared").await, version("beta-old").await];
    let resources = plane.get(&path(SETS, "beta")).await["status"]["resources"].clone();
    for (name, spec) in [("alpha", &alpha), ("beta", &beta)] {
        let generators = json!({"spec": {"generators": spec["generators"]}});
        plane.patch(&path(SETS, name), generators).await;
    }
    let message = plane.condition("beta", "ErrorOccurred", "True").await;
    assert!(message.contains("shared"), "{message}");
    let set = plane.get(&path(SETS, "beta")).await;
    let conditions = set["status"]["conditions"].as_array().expect("conditions");
    let failed = conditions.iter().find(|c| c["type"] == "ErrorOccurred");
    let failed = failed.expect("it is there");
    assert_eq!(failed["reason"], "UpdateApplicationError", "{failed}");
    let owned = "argocd/shared is already owned by another ApplicationSet controller alpha";
    assert!(
        message.contains("already owned by") && message.contains("alpha"),
        "{message} instead of {owned}"
    );
    plane
        .has(&["alpha-own", "beta-old", "beta-own", "shared"])
        .await;
    // Twice more.
    for round in ["1", "2"] {
        let annotate = json!({"metadata": {"annotations": {"round": round}}});
        plane.patch(&path(SETS, "beta"), annotate).await;
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!([version("shared").await, version("beta-old").await], before);
    let set = plane.get(&path(SETS, "beta")).await;
    assert_eq!(set["status"]["resources"], resources);
    plane
        .field("shared", "/metadata/ownerReferences/0/name", "alpha")
        .await;
}

/// Report 18: the status lists the first Applications by name, and counts all that are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_lists_some_and_counts_all() {
    let Some(case) = Case::new("18-status-limit") else {
        return;
    };
    let settings = ControllerSettings {
        most_resources: Some(3),
        ..ControllerSettings::default()
    };
    let plane = Plane::start(settings).await;
    let mut spec = case.set()["spec"].clone();
    // YAML reads the bare `n` of the report as false.
    let elements = ["07", "01", "05", "03", "02", "06", "04"].map(|n| json!({"n": n}));
    spec["generators"][0]["list"]["elements"] = json!(elements);
    plane.set("fleet", spec.clone()).await;
    let listed = async || {
        let status = plane.get(&path(SETS, "fleet")).await["status"].clone();
        let resources = status["resources"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> = resources.iter().map(|r| text(&r["name"])).collect();
        (names, status["resourcesCount"].clone())
    };
    let of = |names: [&str; 3], count: u32| (names.map(str::to_owned).to_vec(), json!(count));
    let whole = of(["fleet-01", "fleet-02", "fleet-03"], 7);
    // The first status that counts them shows them all, though they were created just before.
    let is_uncounted = async || listed().await.1.is_null();
    until(is_uncounted, &false).await;
    assert_eq!(listed().await, whole);
    assert_eq!(plane.apps().await.len(), 7);
    // What is cut is no error.
    plane.condition("fleet", "ErrorOccurred", "False").await;

    let mut generators = spec["generators"].clone();
    let elements = generators[0]["list"]["elements"].as_array_mut();
    elements
        .expect("a list")
        .retain(|element| element["n"] != "01");
    let edit = json!({"spec": {"generators": generators}});
    plane.patch(&path(SETS, "fleet"), edit).await;
    let first = path(APPS, "fleet-01");
    let stays = async || plane.get(&first).await["metadata"]["deletionTimestamp"].is_null();
    until(stays, &false).await;
    // Being terminated is not being gone.
    sleep(Duration::from_millis(500)).await;
    assert_eq!(listed().await, whole);
    let released = json!({"metadata": {"finalizers": null}});
    plane.patch(&first, released).await;
    until(&listed, &of(["fleet-02", "fleet-03", "fleet-04"], 6)).await;
}
