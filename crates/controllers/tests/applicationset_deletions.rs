//! The ApplicationSet controller on an API server: deletions that wait for a confirmation, and what
//! is kept of those that were made.

use crate::applicationsets::{APPS, PATIENCE, Plane, SECRETS, SETS, template, text};
use serde_json::{Value, json};
use tiphys_api::{
    ApplicationSet,
    constants::{DELETE_LIMIT, DELETED_APPLICATIONS, DELETION_APPROVED},
};
use tiphys_appset::{
    deleted_set::{DeletedSet, LABEL, LABEL_VALUE},
    tombstone,
};
use tiphys_cluster::request::Call;
use tiphys_controllers::applicationset::ControllerSettings;
use tokio::time::{Instant, sleep};

fn generators(count: usize) -> Value {
    let elements: Vec<Value> = (0..count)
        .map(|n| json!({"name": format!("n{n:02}")}))
        .collect();
    json!([{"list": {"elements": elements}}])
}

async fn get(plane: &Plane) -> Value {
    let set = plane.send(Call::get(format!("{SETS}/set"))).await;
    set.expect("the set")
}

/// Waits until this many Applications are there; none has a finalizer.
async fn count(plane: &Plane, wanted: usize) {
    let began = Instant::now();
    loop {
        let names = plane.names().await;
        if names.len() == wanted {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{names:?}: {}",
            get(plane).await
        );
        sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn start(applications: usize) -> Plane {
    let plane = Plane::start(ControllerSettings::default()).await;
    let mut template = template("app-{{name}}", "https://example.com/r", "{{name}}");
    template["metadata"]["finalizers"] = json!([]);
    let spec = json!({
        "generators": generators(applications), "template": template,
        "syncPolicy": {"preserveResourcesOnDeletion": true},
    });
    plane.set("set", spec).await;
    count(&plane, applications).await;
    plane.condition("set", "ResourcesUpToDate", "True").await;
    plane
}

async fn lose(plane: &Plane, left: usize) -> String {
    let edit = json!({"spec": {"generators": generators(left)}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane.condition("set", "ErrorOccurred", "True").await
}

async fn annotate(plane: &Plane, name: &str, value: &str) {
    let patch = json!({"metadata": {"annotations": {name: value}}});
    plane.patch(&format!("{SETS}/set"), patch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_is_deleted_only_when_that_is_confirmed() {
    let plane = start(14).await;
    let message = lose(&plane, 2).await;
    assert!(
        message.starts_with(
            "Skipping deletion of Applications: the set would delete 12 of 14 (app-n02, "
        ),
        "{message}"
    );
    let events = "/api/v1/namespaces/argocd/events";
    let began = Instant::now();
    loop {
        let list = plane.send(Call::get(events)).await.expect("a list");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let told = items
            .iter()
            .filter(|e| e["reason"] == "DeletionsNotConfirmed");
        let types: Vec<String> = told.map(|event| text(&event["type"])).collect();
        if types == ["Warning"] {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{types:?}");
        sleep(std::time::Duration::from_millis(20)).await;
    }
    // A refresh changes nothing, and what is wanted is still written.
    let mut edit = json!({"spec": {"template": {"metadata": {"labels": {"made": "again"}}}}});
    edit["metadata"]["annotations"]["argocd.argoproj.io/application-set-refresh"] = json!("true");
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane
        .field("app-n00", "/metadata/labels/made", "again")
        .await;
    count(&plane, 14).await;
    assert_eq!(get(&plane).await["status"]["resourcesCount"], 14);

    annotate(
        &plane,
        DELETION_APPROVED,
        &jiff::Timestamp::now().to_string(),
    )
    .await;
    count(&plane, 2).await;
    plane.condition("set", "ResourcesUpToDate", "True").await;

    // What was deleted can be restored, and the set leaves it alone.
    let set: ApplicationSet = serde_json::from_value(get(&plane).await).expect("a set");
    let stones = tombstone::read(&set).expect("readable");
    assert_eq!(stones.len(), 12);
    let back = serde_json::to_value(stones[0].restored()).expect("JSON");
    assert_eq!(back["spec"]["source"]["path"], "n02");
    plane.create(APPS, &back).await;
    annotate(&plane, "argocd.argoproj.io/application-set-refresh", "true").await;
    let began = Instant::now();
    while get(&plane).await["metadata"]["annotations"]
        .get("argocd.argoproj.io/application-set-refresh")
        .is_some()
    {
        assert!(began.elapsed() < PATIENCE, "it is not refreshed");
        sleep(std::time::Duration::from_millis(20)).await;
    }
    count(&plane, 3).await;
    // A set that generates it again takes it over.
    let edit = json!({"spec": {"generators": generators(3)}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane
        .field("app-n02", "/metadata/ownerReferences/0/name", "set")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_back_needs_no_confirmation() {
    let plane = start(12).await;
    lose(&plane, 0).await;
    let edit = json!({"spec": {"generators": generators(12)}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane.condition("set", "ResourcesUpToDate", "True").await;
    count(&plane, 12).await;
    let set = get(&plane).await;
    assert_eq!(
        set["metadata"]["annotations"].get(DELETED_APPLICATIONS),
        None
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_may_have_its_own_limit_and_is_deleted_with_its_applications() {
    let plane = start(12).await;
    lose(&plane, 0).await;
    annotate(&plane, DELETE_LIMIT, "12").await;
    count(&plane, 0).await;
    // Whoever deletes the set means it.
    let edit = json!({"spec": {"generators": generators(12)}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    count(&plane, 12).await;
    lose_nothing_and_delete(&plane).await;
}

async fn lose_nothing_and_delete(plane: &Plane) {
    annotate(plane, DELETE_LIMIT, "0,0%").await;
    plane.delete(&format!("{SETS}/set")).await;
    let began = Instant::now();
    while !plane.names().await.is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", plane.names().await);
        sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// What is kept of sets that were deleted, once that is so many.
async fn kept(plane: &Plane, wanted: usize) -> Vec<DeletedSet> {
    let began = Instant::now();
    loop {
        let list = plane.get(SECRETS).await;
        let items = list["items"].as_array().into_iter().flatten();
        let kept = items.filter(|secret| secret["metadata"]["labels"][LABEL] == LABEL_VALUE);
        let kept: Vec<DeletedSet> = kept
            .map(|secret| DeletedSet::from_secret(secret).expect("readable"))
            .collect();
        if kept.len() == wanted {
            return kept;
        }
        assert!(began.elapsed() < PATIENCE, "{} are kept", kept.len());
        sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn names(kept: &DeletedSet) -> Vec<String> {
    let stones = tombstone::read(&kept.set).expect("readable");
    let mut names: Vec<String> = stones.iter().map(|stone| stone.name().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_deleted_can_be_restored_with_its_applications() {
    let plane = start(3).await;
    // One is deleted before; what the set kept is kept further.
    let edit = json!({"spec": {"generators": generators(2)}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    count(&plane, 2).await;
    let began = Instant::now();
    while get(&plane).await["status"]["resourcesCount"] != 2 {
        assert!(began.elapsed() < PATIENCE, "{}", get(&plane).await);
        sleep(std::time::Duration::from_millis(20)).await;
    }
    plane.delete(&format!("{SETS}/set")).await;
    count(&plane, 0).await;
    let first = kept(&plane, 1).await.remove(0);
    assert_eq!(names(&first), ["app-n00", "app-n01", "app-n02"]);

    // As the server restores it: it makes its Applications again, and has what it kept.
    let mut set = serde_json::to_value(&first.set).expect("JSON");
    if let Some(fields) = set.as_object_mut() {
        fields.remove("status");
    }
    plane.create(SETS, &set).await;
    count(&plane, 2).await;
    plane.condition("set", "ResourcesUpToDate", "True").await;
    let set: ApplicationSet = serde_json::from_value(get(&plane).await).expect("a set");
    assert_eq!(tombstone::read(&set).expect("readable").len(), 3);
    assert_eq!(names(&kept(&plane, 1).await[0]), names(&first));

    // It goes by time.
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cmd-params-cm",
            "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": {"tiphys.applicationsetcontroller.deleted.keep": "0s"},
    });
    plane
        .create("/api/v1/namespaces/argocd/configmaps", &settings)
        .await;
    kept(&plane, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_that_outlive_their_set_are_not_among_the_deleted() {
    let plane = start(2).await;
    let edit = json!({
        "metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"syncPolicy": {"applicationsSync": "create-only"}},
    });
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane.delete(&format!("{SETS}/set")).await;
    let began = Instant::now();
    while plane.send(Call::get(format!("{SETS}/set"))).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "the set stays");
        sleep(std::time::Duration::from_millis(20)).await;
    }
    let first = kept(&plane, 1).await.remove(0);
    assert_eq!((names(&first), plane.names().await.len()), (Vec::new(), 2));
}
