//! What others write while a set is reconciled: a rollout starts a sync only on the Application
//! that it was decided by, and a request that comes meanwhile is not taken away with the one before
//! it. What a watch does not tell, the API server is asked for.

use super::{
    applicationsets::{APPS, Plane, SETS, template, text},
    scripts::wire::{Gate, Wire},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_cluster::request::Call;
use tiphys_controllers::applicationset::ControllerSettings;
use tiphys_testkit::Repo;
use tokio::time::{Duration, Instant, sleep};

const APP: &str = "app-dev";
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/application-set-refresh-timestamp";
const PATIENCE: Duration = Duration::from_secs(60);

/// A rollout of one Application. Its controller has decided to start the sync, and the write waits
/// at the gate.
async fn about_to_start() -> (Plane, Wire, Gate) {
    let (wire, gate) = (Wire::default(), Gate::closed());
    let write = format!("PATCH {APPS}/{APP}");
    wire.plan(|plan| plan.gates.push((write, gate.clone())));
    let settings = ControllerSettings {
        progressive_syncs: Some(true),
        ..ControllerSettings::default()
    };
    let plane = Plane::behind(&wire, settings).await;
    let mut template = template("app-{{env}}", "https://example.com/r", ".");
    template["metadata"]["labels"] = json!({"env": "{{env}}"});
    let step = json!({"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]});
    let spec = json!({
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step]}},
        "generators": [{"list": {"elements": [{"env": "dev"}]}}],
        "template": template,
    });
    plane.set("rollout", spec).await;
    let reached = tokio::time::timeout(PATIENCE, gate.reached()).await;
    reached.expect("the rollout starts a sync");
    let app = plane.get(&format!("{APPS}/{APP}")).await;
    assert_eq!(app["operation"], Value::Null);
    (plane, wire, gate)
}

/// What became of these writes.
fn codes_of(wire: &Wire, write: &str) -> Vec<u16> {
    let writes = wire.writes().into_iter();
    writes.filter(|w| w.what == write).map(|w| w.code).collect()
}

/// The same, of those to the Application.
fn codes(wire: &Wire) -> Vec<u16> {
    codes_of(wire, &format!("PATCH {APPS}/{APP}"))
}

/// Requests a refresh of the set `fleet`, as a webhook does.
async fn request(plane: &Plane, at: &str) {
    let annotations = json!({REFRESH: "true", REFRESH_TIMESTAMP: at});
    let patch = json!({"metadata": {"annotations": annotations}});
    plane.patch(&format!("{SETS}/fleet"), patch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_does_not_repeat_a_sync_that_ran_meanwhile() {
    let (plane, wire, gate) = about_to_start().await;
    // In a later second than any step of the rollout, so that it is known as what the rollout waits
    // for.
    let time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
    let time = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ran = json!({"status": {"operationState": {
        "phase": "Succeeded", "operation": {"sync": {}}, "startedAt": time, "finishedAt": time,
    }}});
    plane.patch(&format!("{APPS}/{APP}"), ran).await;
    gate.open();
    // The next reconcile sees it.
    let began = Instant::now();
    loop {
        let set = plane.get(&format!("{SETS}/rollout")).await;
        let status = text(&set["status"]["applicationStatus"][0]["status"]);
        if status == "Progressing" {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", set["status"]);
        sleep(Duration::from_millis(20)).await;
    }
    let app = plane.get(&format!("{APPS}/{APP}")).await;
    assert_eq!(app["operation"], Value::Null, "{:?}", codes(&wire));
    assert_eq!(codes(&wire), [409]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_starts_a_sync_although_the_application_was_compared_meanwhile() {
    let (plane, wire, gate) = about_to_start().await;
    let compared = json!({"status": {
        "sync": {"status": "OutOfSync", "revision": "r1"}, "health": {"status": "Missing"},
    }});
    plane.patch(&format!("{APPS}/{APP}"), compared).await;
    gate.open();
    let by = "/operation/initiatedBy/username";
    plane.field(APP, by, "applicationset-controller").await;
    // What a write became is noted a moment after others see it.
    let began = Instant::now();
    while codes(&wire) != [409, 200] {
        assert!(began.elapsed() < PATIENCE, "{:?}", codes(&wire));
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_is_deleted_meanwhile_is_created_anew_without_an_error() {
    let (plane, wire, gate) = about_to_start().await;
    let creation = Gate::closed();
    wire.plan(|plan| {
        let write = format!("POST {APPS}");
        plan.gates.push((write, creation.clone()));
    });
    plane.delete(&format!("{APPS}/{APP}")).await;
    gate.open();
    let reached = tokio::time::timeout(PATIENCE, creation.reached()).await;
    reached.expect("it is created anew");
    // What the reconcile before said still stands.
    let set = plane.get(&format!("{SETS}/rollout")).await;
    let conditions = set["status"]["conditions"].as_array();
    let error = conditions.and_then(|all| all.iter().find(|c| c["type"] == "ErrorOccurred"));
    let error = error.expect("it is always told");
    assert_eq!(error["status"], "False", "{error}");
    assert_eq!(codes(&wire).first(), Some(&404));
    creation.open();
    plane.has(&[APP]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_during_a_reconcile_is_not_overlooked() {
    let (wire, gate) = (Wire::default(), Gate::closed());
    let repo = Repo::with(&[("apps/one/a.yaml", "a")]);
    let plane = Plane::behind(&wire, ControllerSettings::default()).await;
    let git = json!({
        "repoURL": repo.url(), "revision": "HEAD", "directories": [{"path": "apps/*"}],
    });
    let spec = json!({
        "generators": [{"git": git}],
        "template": template("{{path.basename}}", "https://example.com/r", "."),
    });
    plane.set("fleet", spec).await;
    plane.has(&["one"]).await;
    plane.condition("fleet", "ResourcesUpToDate", "True").await;
    // The reconcile for the first request has read the repository, and takes the request away.
    let answer = format!("PATCH {SETS}/fleet");
    wire.plan(|plan| plan.gates.push((format!("{answer}$"), gate.clone())));
    request(&plane, "1").await;
    let reached = tokio::time::timeout(PATIENCE, gate.reached()).await;
    reached.expect("the request is answered");
    repo.commit(&[("apps/two/a.yaml", "a")], &[]);
    request(&plane, "2").await;
    gate.open();
    plane.has(&["one", "two"]).await;
    let began = Instant::now();
    loop {
        let set = plane.get(&format!("{SETS}/fleet")).await;
        let annotations = &set["metadata"]["annotations"];
        if annotations[REFRESH].is_null() {
            assert!(annotations[REFRESH_TIMESTAMP].is_null(), "{annotations}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{annotations}");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(codes_of(&wire, &answer).first(), Some(&409));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_is_made_independent_meanwhile_is_not_deleted() {
    let (wire, gate) = (Wire::default(), Gate::closed());
    let plane = Plane::behind(&wire, ControllerSettings::default()).await;
    let of = |names: &[&str]| {
        let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!([{"list": {"elements": elements}}])
    };
    let spec = json!({
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "generators": of(&["one", "two", "three"]),
        "template": template("app-{{name}}", "https://example.com/r", "."),
    });
    plane.set("fleet", spec).await;
    plane.has(&["app-one", "app-three", "app-two"]).await;
    plane.condition("fleet", "ResourcesUpToDate", "True").await;
    // The deletion is decided, and waits at the gate.
    let deletion = format!("DELETE {APPS}/app-three");
    wire.plan(|plan| plan.gates.push((deletion.clone(), gate.clone())));
    let fewer = json!({"spec": {"generators": of(&["one", "two"])}});
    plane.patch(&format!("{SETS}/fleet"), fewer).await;
    let reached = tokio::time::timeout(PATIENCE, gate.reached()).await;
    reached.expect("it is no longer generated");
    let independent = json!({"metadata": {"ownerReferences": null}});
    plane.patch(&format!("{APPS}/app-three"), independent).await;
    gate.open();
    let began = Instant::now();
    loop {
        let set = plane.get(&format!("{SETS}/fleet")).await;
        if set["status"]["resourcesCount"] == 2 && !codes_of(&wire, &deletion).is_empty() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", set["status"]);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(codes_of(&wire, &deletion), [409]);
    plane.has(&["app-one", "app-three", "app-two"]).await;
}

/// A set that goes, whose Applications stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_over_an_application_of_a_set_that_goes_stays_its_owner() {
    let wire = Wire::default();
    let plane = Plane::behind(&wire, ControllerSettings::default()).await;
    let spec = json!({
        "syncPolicy": {"applicationsSync": "create-only"},
        "generators": [{"list": {"elements": [{"name": "one"}, {"name": "two"}]}}],
        "template": template("app-{{name}}", "https://example.com/r", "."),
    });
    plane.set("fleet", spec).await;
    plane.has(&["app-one", "app-two"]).await;
    plane.condition("fleet", "ResourcesUpToDate", "True").await;
    let set = format!("{SETS}/fleet");
    let kept = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    plane.patch(&set, kept).await;
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"},
    });
    let owner = plane
        .create("/api/v1/namespaces/argocd/configmaps", &owner)
        .await;
    // Both writes are decided by the state before, and wait at their gates.
    let writes = ["app-one", "app-two"].map(|name| format!("PATCH {APPS}/{name}"));
    let gates = [Gate::closed(), Gate::closed()];
    wire.plan(|plan| {
        let gates = gates.iter().cloned();
        plan.gates.extend(writes.iter().cloned().zip(gates));
    });
    plane.delete(&set).await;
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"], "controller": true,
    }]}});
    let annotated = json!({"metadata": {"annotations": {"example.com/a": "b"}}});
    let meanwhile = [("app-one", owned), ("app-two", annotated)];
    for ((name, change), gate) in meanwhile.into_iter().zip(&gates) {
        let reached = tokio::time::timeout(PATIENCE, gate.reached()).await;
        reached.expect("the set lets go of it");
        plane.patch(&format!("{APPS}/{name}"), change).await;
        gate.open();
    }
    let began = Instant::now();
    while plane.send(Call::get(&set)).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "the set stays");
        sleep(Duration::from_millis(20)).await;
    }
    let mut owners = Vec::new();
    for name in ["app-one", "app-two"] {
        let app = plane.get(&format!("{APPS}/{name}")).await;
        owners.push(app["metadata"]["ownerReferences"][0]["kind"].clone());
    }
    assert_eq!(owners, [json!("ConfigMap"), Value::Null]);
    let codes = writes.map(|write| codes_of(&wire, &write));
    assert_eq!(codes, [vec![409], vec![409, 200]]);
}

/// Waits until the Application is being deleted, and lets it go.
async fn let_go(plane: &Plane, name: &str) {
    let path = format!("{APPS}/{name}");
    let began = Instant::now();
    while plane.get(&path).await["metadata"]["deletionTimestamp"].is_null() {
        assert!(began.elapsed() < PATIENCE, "{name} is not deleted");
        sleep(Duration::from_millis(20)).await;
    }
    let released = json!({"metadata": {"finalizers": null}});
    plane.patch(&path, released).await;
}

/// The API server knows what a watch did not tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_in_order_goes_on_although_a_watch_lost_an_end() {
    let wire = Wire::default();
    wire.plan(|plan| plan.lost_deletion = Some("app-prod"));
    let settings = ControllerSettings {
        progressive_syncs: Some(true),
        ..ControllerSettings::default()
    };
    // By its clock every Application is being deleted for too long.
    let clock = || jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
    let plane = Plane::behind_at(&wire, settings, Arc::new(clock)).await;
    let mut template = template("app-{{env}}", "https://example.com/r", ".");
    template["metadata"]["labels"] = json!({"env": "{{env}}"});
    let step = |env: &str| {
        let expression = json!({"key": "env", "operator": "In", "values": [env]});
        json!({"matchExpressions": [expression]})
    };
    let spec = json!({
        "strategy": {
            "type": "RollingSync", "deletionOrder": "Reverse",
            "rollingSync": {"steps": [step("dev"), step("prod")]},
        },
        "generators": [{"list": {"elements": [{"env": "dev"}, {"env": "prod"}]}}],
        "template": template,
    });
    plane.set("rollout", spec).await;
    plane.has(&["app-dev", "app-prod"]).await;
    let set = format!("{SETS}/rollout");
    plane.delete(&set).await;
    let_go(&plane, "app-prod").await;
    // Another reconcile, at once.
    let annotated = json!({"metadata": {"annotations": {"example.com/a": "b"}}});
    plane.patch(&set, annotated).await;
    let_go(&plane, "app-dev").await;
    let began = Instant::now();
    while plane.send(Call::get(&set)).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "the set is still there");
        sleep(Duration::from_millis(20)).await;
    }
}
