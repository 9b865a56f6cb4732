//! Applications through gRPC and REST.

use crate::common;

use common::{SHA, World, app};
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_api::{
    Application,
    application::ApplicationWatchEvent,
    rpc::application::{
        ApplicationDeleteRequest, ApplicationQuery, ApplicationResponse, ApplicationSyncRequest,
    },
};
use tiphys_server::ports::{Propagation, Store as _};

const GET: &str = "/application.ApplicationService/Get";
const SYNC: &str = "/application.ApplicationService/Sync";
const WATCH: &str = "/application.ApplicationService/Watch";
const APPS: &str = "/api/v1/applications";

async fn create(world: &World, name: &str) -> Value {
    let (status, created) = world.rest(Method::POST, APPS, Some(app(name))).await;
    assert_eq!(status, 200, "{created}");
    created
}

fn named(name: &str) -> ApplicationQuery {
    ApplicationQuery {
        name: Some(name.into()),
        ..Default::default()
    }
}

fn sync(name: &str, revision: &str) -> ApplicationSyncRequest {
    ApplicationSyncRequest {
        name: name.into(),
        revision: Some(revision.into()),
        ..Default::default()
    }
}

#[tokio::test]
async fn grpc_and_rest_give_the_same() {
    let world = World::start().await;
    create(&world, "a").await;
    let (_, rest) = world.rest(Method::GET, &format!("{APPS}/a"), None).await;
    let grpc: Application = world.grpc(GET, named("a")).await.expect("it is there");
    assert_eq!(rest, serde_json::to_value(&grpc).expect("JSON"));
    let (_, list) = world
        .rest(
            Method::GET,
            &format!("{APPS}?projects=x&projects=default&selector=team%3Da"),
            None,
        )
        .await;
    assert_eq!(list["items"], json!([rest]));
    let (_, none) = world
        .rest(Method::GET, &format!("{APPS}?projects=x"), None)
        .await;
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn what_is_not_there_looks_forbidden() {
    let world = World::start().await;
    create(&world, "a").await;
    let error = |path: &str| {
        let (world, path) = (&world, format!("{APPS}/{path}"));
        async move {
            let (status, body) = world.rest(Method::GET, &path, None).await;
            (
                status,
                body["error"].as_str().unwrap_or_default().to_owned(),
            )
        }
    };
    assert_eq!(error("b").await, (403, "permission denied".into()));
    assert_eq!(
        error("b?project=default").await,
        (404, "applications.argoproj.io \"b\" not found".into())
    );
    assert_eq!(
        error("a?project=other").await,
        (404, "applications.argoproj.io \"a\" not found".into())
    );
    assert_eq!(
        error("a?appNamespace=elsewhere").await,
        (403, "permission denied".into())
    );
}

#[tokio::test]
async fn creating_is_validated_and_idempotent() {
    let world = World::start().await;
    create(&world, "a").await;
    create(&world, "a").await;
    let mut other = app("a");
    other["spec"]["source"]["path"] = "q".into();
    let (status, refused) = world.rest(Method::POST, APPS, Some(other.clone())).await;
    assert_eq!(
        (status, refused["error"].as_str()),
        (
            400,
            Some("existing application spec is different, use upsert flag to force update")
        )
    );
    let (status, updated) = world
        .rest(Method::POST, &format!("{APPS}?upsert=true"), Some(other))
        .await;
    assert_eq!(
        (status, updated["spec"]["source"]["path"].as_str()),
        (200, Some("q"))
    );
    for (change, want) in [
        (
            json!({"spec": {"project": "p"}}),
            "app is not allowed in project \"p\", or the project does not exist",
        ),
        (
            json!({"spec": {"source": {"path": null}}}),
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required",
        ),
        (
            json!({"spec": {"source": {"repoURL": "https://unreachable.example"}}}),
            "it does not answer",
        ),
        (
            json!({"spec": {"destination": {"server": "https://other"}}}),
            "application destination spec for b is invalid",
        ),
    ] {
        let bad =
            tiphys_apimachinery::patch::json_merge::apply(&app("b"), &change).expect("a patch");
        let (status, body) = world.rest(Method::POST, APPS, Some(bad)).await;
        assert_eq!(status, 400, "{body}");
        assert!(
            body["error"].as_str().expect("text").contains(want),
            "{body}"
        );
    }
}

/// A history that a user brings would be something to roll back to, and an operation one that
/// nobody checked.
#[tokio::test]
async fn nobody_brings_a_status_or_an_operation() {
    let world = World::start().await;
    let history = json!([{"id": 7, "revision": SHA, "source": {"repoURL": "https://elsewhere.example.org/x.git", "path": "."}}]);
    let forged = |name: &str, label: &str| {
        let mut forged = app(name);
        forged["metadata"]["labels"] = json!({"forged": label});
        forged["status"] = json!({"history": history, "sync": {"status": "Synced"}});
        forged["operation"] = json!({"sync": {"revision": SHA, "source": {"repoURL": "https://elsewhere.example.org/x.git"}}});
        forged
    };
    let clean = |answer: &Value| {
        answer["status"].get("history").is_none_or(|h| h.is_null())
            && answer.get("operation").is_none_or(|o| o.is_null())
    };
    let (status, created) = world
        .rest(Method::POST, APPS, Some(forged("a", "created")))
        .await;
    assert!(status == 200 && clean(&created), "{created}");
    let (status, upserted) = world
        .rest(
            Method::POST,
            &format!("{APPS}?upsert=true"),
            Some(forged("a", "upserted")),
        )
        .await;
    assert!(status == 200 && clean(&upserted), "{upserted}");
    let (status, updated) = world
        .rest(
            Method::PUT,
            &format!("{APPS}/a"),
            Some(forged("a", "updated")),
        )
        .await;
    assert!(status == 200 && clean(&updated), "{updated}");
    let patch =
        json!({"name": "a", "patchType": "merge", "patch": forged("a", "patched").to_string()});
    let (status, patched) = world
        .rest(Method::PATCH, &format!("{APPS}/a"), Some(patch))
        .await;
    assert!(status == 200 && clean(&patched), "{patched}");
    assert_eq!(patched["metadata"]["labels"]["forged"], "patched");
    let (_, now) = world.rest(Method::GET, &format!("{APPS}/a"), None).await;
    assert!(clean(&now), "{now}");
}

#[tokio::test]
async fn a_sync_sets_the_operation_once() {
    let world = World::start().await;
    create(&world, "a").await;
    world.store.control(
        "a",
        &json!({"status": {"operationState": {"phase": "Failed"}}}),
    );
    *world.store.conflicts.lock().expect("not poisoned") = 2;
    let started: Application = world.grpc(SYNC, sync("a", "")).await.expect("it starts");
    let operation = started.operation.expect("an operation");
    assert_eq!(operation.initiated_by.username, "admin");
    assert_eq!(operation.sync.expect("a sync").revision, SHA);
    assert!(started.status.operation_state.is_none());
    let refused = world
        .grpc::<_, Application>(SYNC, sync("a", ""))
        .await
        .expect_err("one is under way");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    assert_eq!(
        refused.message(),
        "error setting app operation: rpc error: code = FailedPrecondition desc = another operation is already in progress"
    );
    assert!(world.store.recorded().contains(&format!(
        "OperationStarted a: admin initiated sync to HEAD ({SHA})"
    )));
}

#[tokio::test]
async fn revisions_are_resolved_or_refused() {
    let world = World::start().await;
    create(&world, "a").await;
    let full = "f".repeat(40);
    let started: Application = world
        .grpc(SYNC, sync("a", &full))
        .await
        .expect("a full SHA is kept");
    assert_eq!(
        started
            .operation
            .and_then(|o| o.sync)
            .expect("a sync")
            .revision,
        full
    );
    assert!(
        world
            .store
            .recorded()
            .last()
            .expect("an event")
            .ends_with(&format!("initiated sync to {full}"))
    );
    world.store.control("a", &json!({"operation": null}));
    let unknown = world
        .grpc::<_, Application>(SYNC, sync("a", "nothing"))
        .await
        .expect_err("no such revision");
    assert_eq!(unknown.code(), tonic::Code::FailedPrecondition);
    assert!(
        unknown
            .message()
            .contains("unable to resolve 'nothing' to a commit SHA"),
        "{}",
        unknown.message()
    );
    world.store.control(
        "a",
        &json!({"spec": {"syncPolicy": {"automated": {}}, "source": {"targetRevision": "main"}}}),
    );
    let pinned = world
        .grpc::<_, Application>(SYNC, sync("a", "v1"))
        .await
        .expect_err("auto-sync says otherwise");
    assert_eq!(
        pinned.message(),
        "Cannot sync to v1: auto-sync currently set to main"
    );
}

#[tokio::test]
async fn a_refresh_waits_for_the_controller() {
    let world = World::start().await;
    create(&world, "a").await;
    let store = world.store.clone();
    let controller = tokio::spawn(async move {
        loop {
            let marked = tiphys_server::ports::Store::get_app(store.as_ref(), "argocd", "a")
                .await
                .expect("it is there");
            if marked
                .metadata
                .annotations
                .get("argocd.argoproj.io/refresh")
                .is_some_and(|v| v == "hard")
            {
                store.control("a", &json!({"metadata": {"annotations": null}, "status": {"sync": {"status": "Synced"}}}));
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let (status, refreshed) = world
        .rest(Method::GET, &format!("{APPS}/a?refresh=hard"), None)
        .await;
    assert_eq!(
        (status, refreshed["status"]["sync"]["status"].as_str()),
        (200, Some("Synced"))
    );
    controller.await.expect("it ends");
}

#[tokio::test]
async fn a_watch_tells_all_and_then_changes() {
    let world = World::start().await;
    create(&world, "a").await;
    let mut stream = world
        .grpc_stream::<_, ApplicationWatchEvent>(WATCH, ApplicationQuery::default())
        .await;
    let mut next = async || {
        let event = tokio::time::timeout(Duration::from_secs(5), stream.next())
            .await
            .expect("in time")
            .expect("open")
            .expect("an event");
        format!("{} {}", event.type_, event.application.metadata.name)
    };
    assert_eq!(next().await, "ADDED a");
    create(&world, "b").await;
    assert_eq!(next().await, "ADDED b");
    world
        .store
        .control("a", &json!({"status": {"health": {"status": "Healthy"}}}));
    assert_eq!(next().await, "MODIFIED a");
    let _: ApplicationResponse = world
        .grpc(
            "/application.ApplicationService/Delete",
            ApplicationDeleteRequest {
                name: "b".into(),
                cascade: Some(false),
                ..Default::default()
            },
        )
        .await
        .expect("deleted");
    assert_eq!(next().await, "DELETED b");
}

#[tokio::test]
async fn a_rest_stream_has_results_as_lines_or_events() {
    let world = World::start().await;
    create(&world, "a").await;
    for (accept, kind, start) in [
        ("*/*", "application/json", "{\"result\":{"),
        (
            "text/event-stream",
            "text/event-stream",
            "data: {\"result\":{",
        ),
    ] {
        let request = http::Request::get("/api/v1/stream/applications?name=a&resourceVersion=1")
            .header("accept", accept)
            .header("authorization", format!("Bearer {}", world.token));
        let response = world
            .send(request.body(Default::default()).expect("a request"))
            .await;
        assert_eq!(response.headers()["content-type"], kind);
        let first = http_body_util::BodyExt::frame(&mut response.into_body())
            .await
            .expect("a frame")
            .expect("no error")
            .into_data()
            .expect("data");
        let text = String::from_utf8_lossy(&first).into_owned();
        assert!(
            text.starts_with(start) && text.contains("\"type\":\"ADDED\""),
            "{text}"
        );
    }
}

#[tokio::test]
async fn deleting_says_how_in_finalizers() {
    let world = World::start().await;
    create(&world, "a").await;
    let (status, body) = world
        .rest(
            Method::DELETE,
            &format!("{APPS}/a?cascade=false&propagationPolicy=background"),
            None,
        )
        .await;
    assert_eq!(
        (status, body["error"].as_str()),
        (
            400,
            Some("cannot set propagation policy when cascading is disabled")
        )
    );
    assert_eq!(
        world
            .rest(
                Method::DELETE,
                &format!("{APPS}/a?propagationPolicy=sideways"),
                None
            )
            .await
            .0,
        400
    );
    assert_eq!(
        world.rest(Method::DELETE, &format!("{APPS}/a"), None).await,
        (200, json!({}))
    );
    assert!(!world.store.exists("a"));
}

#[tokio::test]
async fn patches_change_only_this_application() {
    let world = World::start().await;
    create(&world, "a").await;
    let patch = |kind: &str, patch: Value| json!({"patch": patch.to_string(), "patchType": kind});
    let merge = patch(
        "merge",
        json!({"metadata": {"name": "b", "labels": {"x": "y"}}, "spec": {"source": {"targetRevision": "main"}}}),
    );
    let (status, patched) = world
        .rest(Method::PATCH, &format!("{APPS}/a"), Some(merge))
        .await;
    assert_eq!(status, 200, "{patched}");
    assert_eq!(
        (
            patched["metadata"]["name"].as_str(),
            patched["metadata"]["labels"]["x"].as_str()
        ),
        (Some("a"), Some("y"))
    );
    let replace = patch(
        "json",
        json!([{"op": "replace", "path": "/spec/source/path", "value": "z"}]),
    );
    assert_eq!(
        world
            .rest(Method::PATCH, &format!("{APPS}/a"), Some(replace))
            .await
            .1["spec"]["source"]["path"],
        "z"
    );
    let (status, body) = world
        .rest(
            Method::PATCH,
            &format!("{APPS}/a"),
            Some(patch("strategic", json!({}))),
        )
        .await;
    assert_eq!(
        (status, body["error"].as_str()),
        (400, Some("Patch type 'strategic' is not supported"))
    );
    let spec = json!({"project": "default", "source": {"repoURL": "r", "path": "w"}, "destination": {"name": "in-cluster", "namespace": "n"}});
    let (status, stored) = world
        .rest(
            Method::PUT,
            &format!("{APPS}/a/spec?validate=false"),
            Some(spec),
        )
        .await;
    assert_eq!(
        (status, stored["destination"]["name"].as_str()),
        (200, Some("in-cluster"))
    );
}

#[tokio::test]
async fn only_the_trees_objects_can_be_reached() {
    let world = World::start().await;
    create(&world, "a").await;
    let tree = json!({"nodes": [{"kind": "Secret", "version": "v1", "name": "s", "namespace": "n", "uid": "1"}]});
    *world.live.tree.lock().expect("not poisoned") = Some(std::sync::Arc::new(
        serde_json::from_value(tree).expect("a tree"),
    ));
    world.live.objects.lock().expect("not poisoned").insert(
        "s".into(),
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"p": "c2VjcmV0"}}),
    );
    let resource = |name: &str| {
        format!("{APPS}/a/resource?resourceName={name}&namespace=n&kind=Secret&version=v1")
    };
    let (status, found) = world.rest(Method::GET, &resource("s"), None).await;
    assert_eq!(status, 200);
    assert!(
        !found["manifest"]
            .as_str()
            .expect("text")
            .contains("c2VjcmV0")
    );
    let (status, body) = world.rest(Method::GET, &resource("t"), None).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (400, Some("Secret  t not found as part of application a"))
    );
    assert_eq!(
        world
            .rest(
                Method::DELETE,
                &format!("{}&orphan=true", resource("s")),
                None
            )
            .await
            .0,
        200
    );
    assert_eq!(
        *world.live.deleted.lock().expect("not poisoned"),
        [("s".to_owned(), Propagation::Orphan)]
    );
    let (_, manifests) = world
        .rest(Method::GET, &format!("{APPS}/a/manifests"), None)
        .await;
    assert!(!manifests.to_string().contains("dmFsdWU="), "{manifests}");
    let manifest: Value =
        serde_json::from_str(manifests["manifests"][0].as_str().expect("text")).expect("JSON");
    assert_eq!(
        manifest["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"], "a:/Secret:n/s",
        "as it would be in the cluster"
    );
}

#[tokio::test]
async fn settings_tell_what_is_said_about_kinds() {
    let config = [
        (
            "resource.customizations.ignoreDifferences.apps_Deployment",
            "jsonPointers: [/spec/replicas]",
        ),
        (
            "resource.customizations.health.x.io_X",
            "return {status = 'Healthy'}",
        ),
    ];
    let world = World::start_with(&config, &[]).await;
    let (_, settings) = world.rest(Method::GET, "/api/v1/settings", None).await;
    assert_eq!(
        settings["resourceOverrides"]["apps/Deployment"]["ignoreDifferences"]["jsonPointers"],
        json!(["/spec/replicas"])
    );
    assert_eq!(
        settings["resourceOverrides"]["x.io/X"],
        json!({"healthLua": "return {status = 'Healthy'}"})
    );
}

#[tokio::test]
async fn health_of_resources_comes_from_the_tree() {
    let world = World::start().await;
    create(&world, "a").await;
    let tree = json!({"nodes": [
        {"kind": "Pod", "version": "v1", "name": "p", "namespace": "n", "uid": "1", "health": {"status": "Healthy"}},
        {"kind": "Service", "version": "v1", "name": "s", "namespace": "n"}
    ]});
    *world.live.tree.lock().expect("not poisoned") = Some(std::sync::Arc::new(
        serde_json::from_value(tree).expect("a tree"),
    ));
    let resources = json!([{"kind": "Pod", "name": "p", "namespace": "n"}, {"kind": "Service", "name": "s", "namespace": "n"}, {"kind": "Job", "name": "j"}]);
    world.store.control(
        "a",
        &json!({"status": {"resourceHealthSource": "appTree", "resources": resources}}),
    );
    let read: Application = world.grpc(GET, named("a")).await.expect("it is there");
    let health: Vec<_> = read
        .status
        .resources
        .iter()
        .map(|r| r.health.as_ref().map(|h| h.status.as_str()))
        .collect();
    assert_eq!(health, [Some("Healthy"), Some("Missing"), None]);
}

#[tokio::test]
async fn before_a_comparison_the_reason_is_told() {
    let world = World::start().await;
    create(&world, "a").await;
    world.store.control("a", &json!({"status": {"conditions": [{"type": "ComparisonError", "message": "no such path"}]}}));
    let (status, body) = world
        .rest(Method::GET, &format!("{APPS}/a/managed-resources"), None)
        .await;
    assert_eq!(
        (status, body["error"].as_str()),
        (
            500,
            Some("error getting cached app managed resources: ComparisonError: no such path")
        )
    );
}

#[tokio::test]
async fn repositories_and_projects() {
    let world = World::start().await;
    let repo = json!({"repo": "https://example.org/r.git", "username": "u", "password": "secret"});
    let (status, created) = world
        .rest(Method::POST, "/api/v1/repositories", Some(repo))
        .await;
    assert_eq!(
        (status, created["repo"].as_str()),
        (200, Some("https://example.org/r.git"))
    );
    let (_, list) = world.rest(Method::GET, "/api/v1/repositories", None).await;
    assert!(!list.to_string().contains("secret"), "{list}");
    assert_eq!(list["items"][0]["connectionState"]["status"], "Successful");
    let (_, refs) = world
        .rest(
            Method::GET,
            "/api/v1/repositories/https%3A%2F%2Fexample.org%2Fr.git/refs",
            None,
        )
        .await;
    assert_eq!(refs["branches"], json!(["main"]));
    let unreachable = json!({"repo": "https://unreachable.example/r"});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/repositories", Some(unreachable))
            .await
            .0,
        500
    );
    assert_eq!(
        world
            .rest(
                Method::DELETE,
                "/api/v1/repositories/https%3A%2F%2Fexample.org%2Fr.git",
                None
            )
            .await
            .0,
        200
    );
    let project = json!({"project": {"metadata": {"name": "p"}, "spec": {"sourceRepos": ["*"]}}});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/projects", Some(project))
            .await
            .0,
        200
    );
    assert_eq!(
        world
            .rest(Method::DELETE, "/api/v1/projects/default", None)
            .await
            .0,
        400
    );
    assert_eq!(
        world
            .rest(Method::DELETE, "/api/v1/projects/p", None)
            .await
            .0,
        200
    );
    let (_, clusters) = world.rest(Method::GET, "/api/v1/clusters", None).await;
    assert_eq!(clusters["items"][0]["name"], "in-cluster");
}

#[tokio::test]
async fn actions_are_listed_and_run() {
    let world = World::start().await;
    create(&world, "a").await;
    let node = |kind: &str, group: &str| json!({"group": group, "kind": kind, "version": "v1", "name": kind, "namespace": "n", "uid": kind});
    let tree = json!({"nodes": [node("Deployment", "apps"), node("Rollout", "argoproj.io"), node("CronJob", "batch"), node("ConfigMap", "")]});
    *world.live.tree.lock().expect("not poisoned") = Some(std::sync::Arc::new(
        serde_json::from_value(tree).expect("a tree"),
    ));
    let object = |kind: &str, group: &str, spec: serde_json::Value| {
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": kind, "namespace": "n"},
            "spec": spec, "status": {"pauseConditions": [{}], "currentPodHash": "a", "stableRS": "b"}});
        world
            .live
            .objects
            .lock()
            .expect("not poisoned")
            .insert(kind.into(), object);
    };
    object("Deployment", "apps", json!({"replicas": 1}));
    object(
        "Rollout",
        "argoproj.io",
        json!({"paused": true, "strategy": {}}),
    );
    object(
        "CronJob",
        "batch",
        json!({"jobTemplate": {"spec": {"x": 1}}}),
    );
    let path = |kind: &str, group: &str| {
        format!(
            "{APPS}/a/resource/actions?namespace=n&resourceName={kind}&version=v1&group={group}&kind={kind}"
        )
    };
    let (status, found) = world
        .rest(Method::GET, &path("Deployment", "apps"), None)
        .await;
    let names: Vec<&str> = found["actions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|a| a["name"].as_str())
        .collect();
    assert_eq!(
        (status, names),
        (200, vec!["restart", "pause", "resume", "scale"])
    );

    // The old call has the action's name as body, the new one parameters.
    assert_eq!(
        world
            .rest(
                Method::POST,
                &path("Deployment", "apps"),
                Some(json!("pause"))
            )
            .await
            .0,
        200
    );
    let parameters = json!([{"name": "replicas", "value": "3"}]);
    let scale = json!({"namespace": "n", "resourceName": "Deployment", "version": "v1", "group": "apps", "kind": "Deployment",
        "action": "scale", "resourceActionParameters": parameters});
    assert_eq!(
        world
            .rest(
                Method::POST,
                &format!("{APPS}/a/resource/actions/v2"),
                Some(scale)
            )
            .await
            .0,
        200
    );
    assert_eq!(
        world
            .rest(
                Method::POST,
                &path("Rollout", "argoproj.io"),
                Some(json!("resume"))
            )
            .await
            .0,
        200
    );
    assert_eq!(
        world
            .rest(
                Method::POST,
                &path("CronJob", "batch"),
                Some(json!("create-job"))
            )
            .await
            .0,
        200
    );
    let mut written = world.live.written.lock().expect("not poisoned").clone();
    written
        .iter_mut()
        .for_each(|w| drop(w.as_object_mut().map(|w| w.remove("name"))));
    let expected = [
        json!({"spec": {"paused": true}}),
        json!({"spec": {"replicas": 3}}),
        json!({"status": {"pauseConditions": null}}),
        json!({"spec": {"paused": false}}),
        json!({"dryRun": true, "kind": "Job"}),
        json!({"dryRun": false, "kind": "Job"}),
    ];
    assert_eq!(written, expected);

    let (status, body) = world
        .rest(
            Method::POST,
            &path("Deployment", "apps"),
            Some(json!("explode")),
        )
        .await;
    assert_eq!(
        (
            status,
            body["error"]
                .as_str()
                .is_some_and(|e| e.contains("built-in script does not exist"))
        ),
        (404, true),
        "{body}"
    );
    assert_eq!(
        world
            .rest(
                Method::POST,
                &path("Deployment", "batch"),
                Some(json!("pause"))
            )
            .await
            .0,
        400,
        "what is not in the tree cannot be reached"
    );
    // The Application itself.
    let own = format!(
        "{APPS}/a/resource/actions?resourceName=a&version=v1alpha1&group=argoproj.io&kind=Application"
    );
    assert_eq!(
        world
            .rest(Method::POST, &own, Some(json!("toggle-auto-sync")))
            .await
            .0,
        200
    );
    let read: Application = world.grpc(GET, named("a")).await.expect("it is there");
    assert!(
        read.spec
            .sync_policy
            .as_ref()
            .is_some_and(|p| p.automated.is_some())
    );
}

#[tokio::test]
async fn c80_applications_in_permitted_namespaces_are_served_like_our_own() {
    let world = World::start().await;
    let mut elsewhere = app("a");
    elsewhere["metadata"]["namespace"] = "team".into();
    let refused = world
        .rest(Method::POST, APPS, Some(elsewhere.clone()))
        .await;
    assert_eq!(
        (refused.0, refused.1["error"].as_str()),
        (403, Some("namespace 'team' is not permitted"))
    );

    world
        .store
        .permitted
        .lock()
        .expect("not poisoned")
        .push("team".into());
    let (status, body) = world
        .rest(Method::POST, APPS, Some(elsewhere.clone()))
        .await;
    let foreign = "app is not allowed in project \"default\", or the project does not exist";
    assert_eq!(
        (status, body["error"].as_str()),
        (400, Some(foreign)),
        "the project does not take Applications from there"
    );
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("it is there");
    project.spec.source_namespaces = vec!["other".into(), "/^te/".into()];
    world.store.update_project(&project).await.expect("stored");
    let (status, created) = world.rest(Method::POST, APPS, Some(elsewhere)).await;
    assert_eq!(
        (status, created["metadata"]["namespace"].as_str()),
        (200, Some("team")),
        "{created}"
    );

    create(&world, "b").await;
    assert_eq!(
        world.rest(Method::GET, &format!("{APPS}/a"), None).await.0,
        403,
        "there is none of that name in our namespace"
    );
    let at = |call: &str| format!("{APPS}/a{call}?appNamespace=team");
    assert_eq!(
        world.rest(Method::GET, &at(""), None).await.1["metadata"]["name"],
        "a"
    );
    let names = |list: Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|a| {
                format!("{}/{}", a["metadata"]["namespace"], a["metadata"]["name"]).replace('"', "")
            })
            .collect()
    };
    assert_eq!(
        names(world.rest(Method::GET, APPS, None).await.1),
        ["team/a", "argocd/b"]
    );
    assert_eq!(
        names(
            world
                .rest(Method::GET, &format!("{APPS}?appNamespace=team"), None)
                .await
                .1
        ),
        ["team/a"]
    );
    let query = ApplicationQuery {
        name: Some("a".into()),
        app_namespace: Some("team".into()),
        ..Default::default()
    };
    let mut watch: tonic::Streaming<ApplicationWatchEvent> = world.grpc_stream(WATCH, query).await;
    let seen = watch.next().await.expect("an event").expect("no error");
    assert_eq!(seen.application.metadata.namespace, "team");
    let (status, synced) = world
        .rest(
            Method::POST,
            &format!("{APPS}/a/sync"),
            Some(json!({"appNamespace": "team"})),
        )
        .await;
    assert_eq!(
        (
            status,
            synced["operation"]["initiatedBy"]["username"].as_str()
        ),
        (200, Some("admin")),
        "{synced}"
    );
    let (_, rendered) = world.rest(Method::GET, &at("/manifests"), None).await;
    assert!(rendered.to_string().contains("team_a"), "{rendered}");
    assert_eq!(world.rest(Method::DELETE, &at(""), None).await.0, 200);
    assert_eq!(
        names(world.rest(Method::GET, APPS, None).await.1),
        ["argocd/b"]
    );
}

#[tokio::test]
async fn what_a_global_project_permits_is_permitted() {
    let world = World::start().await;
    let project =
        |name: &str, spec: Value| json!({"project": {"metadata": {"name": name}, "spec": spec}});
    let narrow = project("p", json!({"sourceRepos": ["https://example.org/*"]}));
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/projects", Some(narrow))
            .await
            .0,
        200
    );
    let mut wanted = app("a");
    wanted["spec"]["project"] = "p".into();
    assert_eq!(
        world.rest(Method::POST, APPS, Some(wanted.clone())).await.0,
        400,
        "it has no destinations"
    );
    let wide = project(
        "global",
        json!({"destinations": [{"server": "*", "namespace": "*"}]}),
    );
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/projects", Some(wide))
            .await
            .0,
        200
    );
    let (status, created) = world.rest(Method::POST, APPS, Some(wanted)).await;
    assert_eq!(status, 200, "{created}");
    let (_, globals) = world
        .rest(Method::GET, "/api/v1/projects/p/globalprojects", None)
        .await;
    assert_eq!(globals["items"][0]["metadata"]["name"], "global");
    let (_, detailed) = world
        .rest(Method::GET, "/api/v1/projects/p/detailed", None)
        .await;
    assert_eq!(
        detailed["globalProjects"][0]["metadata"]["name"], "global",
        "{detailed}"
    );
}

#[tokio::test]
async fn a_glob_of_values_files_may_match_nothing_yet() {
    let world = World::start().await;
    create(&world, "a").await;
    let mut spec = app("a")["spec"].clone();
    spec["source"]["helm"] = json!({"valueFiles": ["no/*.yaml"]});
    let (status, body) = world
        .rest(Method::PUT, &format!("{APPS}/a/spec"), Some(spec))
        .await;
    assert_eq!(
        (status, &body["source"]["helm"]["valueFiles"]),
        (200, &json!(["no/*.yaml"])),
        "{body}"
    );
}

#[tokio::test]
async fn the_log_of_no_pod_is_empty() {
    let world = World::start().await;
    create(&world, "a").await;
    *world.live.tree.lock().expect("not poisoned") = Some(std::sync::Arc::default());
    assert_eq!(
        world
            .rest(Method::GET, &format!("{APPS}/a/logs"), None)
            .await,
        (200, Value::String(String::new()))
    );
}

#[tokio::test]
async fn links_are_templates_of_the_settings() {
    let links = "- {url: '{{.managedByURL}}/applications/{{.app.metadata.name | upper}}', title: Managed, description: d, icon.class: fa}\n\
                 - {url: 'https://x/{{.project.metadata.name}}', title: Other, if: 'true'}\n- {url: '{{', title: Broken}";
    let world = World::start_with(&[("application.links", links)], &[]).await;
    create(&world, "a").await;
    let annotate = |url: &str| json!({"metadata": {"annotations": {"argocd.argoproj.io/managed-by-url": url}}});
    world.store.control("a", &annotate("https://b.example.com"));
    let (status, body) = world
        .rest(Method::GET, &format!("{APPS}/a/links"), None)
        .await;
    let managed = json!({"title": "Managed", "url": "https://b.example.com/applications/A", "description": "d", "iconClass": "fa"});
    assert_eq!((status, &body["items"]), (200, &json!([managed])));
    world.store.control("a", &annotate("javascript:alert(1)"));
    let (_, body) = world
        .rest(Method::GET, &format!("{APPS}/a/links"), None)
        .await;
    assert_eq!(body["items"][0]["url"], "<no value>/applications/A");
}
