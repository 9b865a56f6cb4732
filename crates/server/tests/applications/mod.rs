//! Applications through gRPC and REST.

mod deltas;
mod projects;
mod resources;
mod server_side_diff;
mod values;

use crate::common::{SHA, World, app};
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tiphys_api::{
    Application,
    application::{ApplicationList, ApplicationWatchEvent},
    rpc::application::{
        ApplicationDeleteRequest, ApplicationQuery, ApplicationResponse, ApplicationSyncRequest,
    },
};

const GET: &str = "/application.ApplicationService/Get";
const LIST: &str = "/application.ApplicationService/List";
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

/// What a list encodes is kept for those after it.
#[tokio::test]
async fn a_list_has_each_application_as_it_is_now() {
    let world = World::start().await;
    let mut names: Vec<String> = (10..30).map(|n| format!("app-{n}")).collect();
    for name in &names {
        create(&world, name).await;
    }
    for round in 0..3 {
        let (_, rest) = world.rest(Method::GET, APPS, None).await;
        let items = rest["items"].as_array().expect("a list");
        let found: Vec<&str> = items
            .iter()
            .filter_map(|app| app["metadata"]["name"].as_str())
            .collect();
        assert_eq!(found, names, "round {round}");
        let grpc: ApplicationList = world
            .grpc(LIST, ApplicationQuery::default())
            .await
            .expect("a list");
        assert_eq!(rest, serde_json::to_value(&grpc).expect("JSON"));
        let (_, one) = world
            .rest(Method::GET, &format!("{APPS}/app-20"), None)
            .await;
        assert!(items.contains(&one), "round {round}: {one}");

        let labels = json!({"metadata": {"labels": {"round": format!("after {round}")}}});
        let patch = json!({"name": "app-20", "patchType": "merge", "patch": labels.to_string()});
        let (status, patched) = world
            .rest(Method::PATCH, &format!("{APPS}/app-20"), Some(patch))
            .await;
        assert_eq!(status, 200, "{patched}");
        let new = format!("app-3{round}");
        create(&world, &new).await;
        names.push(new);
    }
}

#[tokio::test]
async fn a_list_in_pages() {
    let world = World::start().await;
    for name in ["c", "a", "b"] {
        create(&world, name).await;
    }
    let mut seen = Vec::new();
    let mut token = String::new();
    for left in [json!(2), json!(1), Value::Null] {
        let fields = "items.metadata.name,metadata.continue,metadata.remainingItemCount";
        let path = format!("{APPS}?limit=1&continue={token}&fields={fields}");
        let (status, list) = world.rest(Method::GET, &path, None).await;
        assert_eq!(status, 200, "{list}");
        assert_eq!(list["metadata"]["remainingItemCount"], left, "{list}");
        seen.push(list["items"][0]["metadata"]["name"].clone());
        token = list["metadata"]["continue"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
    }
    assert_eq!(seen, ["a", "b", "c"]);
    for wrong in ["limit=-1", "limit=1&continue=x"] {
        let path = format!("{APPS}?{wrong}");
        let (status, why) = world.rest(Method::GET, &path, None).await;
        assert_eq!(status, 400, "{why}");
    }
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

/// A user-supplied history could be rolled back to, and a user-supplied operation would be
/// unchecked.
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
        "another operation is already in progress"
    );
    assert!(world.store.recorded().contains(&format!(
        "OperationStarted a: admin initiated sync to  ({SHA})"
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
            .contains("unable to resolve 'nothing' to a commit SHA: revision not found"),
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
async fn a_watch_goes_on_where_another_one_ended() {
    let world = World::start().await;
    let delete = async |name: &str| {
        let path = format!("{APPS}/{name}?cascade=false");
        let (status, body) = world.rest(Method::DELETE, &path, None).await;
        assert_eq!(status, 200, "{body}");
    };
    for name in ["kept", "changed", "deleted"] {
        create(&world, name).await;
    }
    let (_, before) = world.rest(Method::GET, APPS, None).await;
    let newest = before["items"].as_array().into_iter().flatten();
    let newest = newest.filter_map(|app| app["metadata"]["resourceVersion"].as_str());
    let newest = newest
        .filter_map(|version| version.parse::<u64>().ok())
        .max();
    let since = newest.expect("versions").to_string();
    world.store.control(
        "changed",
        &json!({"status": {"health": {"status": "Healthy"}}}),
    );
    delete("deleted").await;
    create(&world, "brief").await;
    delete("brief").await;
    create(&world, "new").await;
    let query = ApplicationQuery {
        resource_version: Some(since),
        ..ApplicationQuery::default()
    };
    let mut stream = world
        .grpc_stream::<_, ApplicationWatchEvent>(WATCH, query)
        .await;
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    // What the index has not heard of yet is told later.
    let wanted = ["changed", "deleted", "new"];
    while wanted.iter().any(|name| !last.contains_key(*name)) {
        let event = tokio::time::timeout(Duration::from_secs(60), stream.next())
            .await
            .expect("in time")
            .expect("open")
            .expect("an event");
        last.insert(event.application.metadata.name.clone(), event.type_);
    }
    last.remove("brief");
    let last: Vec<_> = last.iter().map(|(name, kind)| (&**name, &**kind)).collect();
    assert_eq!(
        last,
        [
            ("changed", "MODIFIED"),
            ("deleted", "DELETED"),
            ("new", "ADDED")
        ]
    );
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
        json!({"metadata": {"labels": {"x": "y"}}, "spec": {"source": {"targetRevision": "main"}}}),
    );
    let renaming = patch("merge", json!({"metadata": {"name": "b"}}));
    let (status, refused) = world
        .rest(Method::PATCH, &format!("{APPS}/a"), Some(renaming))
        .await;
    assert_eq!(
        (status, &refused["message"]),
        (403, &json!("permission denied"))
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
    let none = "jqPathExpressions: null\njsonPointers: null\nmanagedFieldsManagers: null\n";
    let pointer = |path: &str| none.replace("Pointers: null", &format!("Pointers:\n- {path}"));
    assert_eq!(
        settings["resourceOverrides"],
        json!({
            "*/*": {"ignoreDifferences": pointer("/status"), "ignoreResourceUpdates": none},
            "apps/Deployment": {
                "ignoreDifferences": pointer("/spec/replicas"), "ignoreResourceUpdates": none,
            },
            "x.io/X": {
                "health.lua": "return {status = 'Healthy'}",
                "ignoreDifferences": none, "ignoreResourceUpdates": none,
            },
        })
    );
}

#[tokio::test]
async fn a_glob_of_values_files_may_match_nothing_yet() {
    let world = World::start().await;
    create(&world, "a").await;
    let mut spec = app("a")["spec"].clone();
    spec["source"]["helm"] = json!({"valueFiles": ["no/*.yaml"]});
    let (status, body) = world
        .rest(Method::PUT, &format!("{APPS}/a/spec"), Some(spec.clone()))
        .await;
    assert_eq!(
        (status, &body["source"]["helm"]["valueFiles"]),
        (200, &json!(["no/*.yaml"])),
        "{body}"
    );
    // Nothing else that is not found passes.
    spec["source"]["helm"] = json!({"valueFiles": ["$missing/a.yaml"]});
    let (status, body) = world
        .rest(Method::PUT, &format!("{APPS}/a/spec"), Some(spec))
        .await;
    assert_eq!(status, 400, "{body}");
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.contains("repository not found"), "{message}");
}

#[tokio::test]
async fn links_are_templates_of_the_settings() {
    let links = "- {url: '{{.managedByURL}}/applications/{{.app.metadata.name | upper}}', title: Managed, description: d, icon.class: fa}\n\
                 - {url: 'https://x/{{.project.metadata.name}}', title: Other, if: 'app.metadata.name == \"a\"'}\n\
                 - {url: 'https://y', title: Not, if: 'app.metadata.name == \"b\"'}\n\
                 - {url: 'https://y', title: Text, if: '\"1\"'}\n- {url: '{{', title: Broken}";
    let world = World::start_with(&[("application.links", links)], &[]).await;
    create(&world, "a").await;
    let annotate = |url: &str| json!({"metadata": {"annotations": {"argocd.argoproj.io/managed-by-url": url}}});
    world.store.control("a", &annotate("https://b.example.com"));
    let (status, body) = world
        .rest(Method::GET, &format!("{APPS}/a/links"), None)
        .await;
    let managed = json!({"title": "Managed", "url": "https://b.example.com/applications/A", "description": "d", "iconClass": "fa"});
    let other = json!({"title": "Other", "url": "https://x/default"});
    assert_eq!((status, &body["items"]), (200, &json!([managed, other])));
    world.store.control("a", &annotate("javascript:alert(1)"));
    let (_, body) = world
        .rest(Method::GET, &format!("{APPS}/a/links"), None)
        .await;
    assert_eq!(body["items"][0]["url"], "<no value>/applications/A");
}
