//! What users can still see of an Application's cluster after its project permits less. The
//! controller has published a tree, but has not reconciled since.

use crate::common;

use common::{World, app};
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_api::{
    project::AppProjectSpec,
    resource::ApplicationTree,
    rpc::application::{ApplicationPodLogsQuery, LogEntry, ResourcesQuery},
};
use tiphys_server::ports::Store as _;

const APP: &str = "/api/v1/applications/a";
const DEPLOYMENT: &str = "namespace=n&resourceName=web&version=v1&group=apps&kind=Deployment";

async fn world() -> World {
    let world = World::start().await;
    furnish(&world).await;
    world
}

/// Makes an Application with a Deployment, its Pod, and a ConfigMap that does not exist yet.
async fn furnish(world: &World) {
    let (status, created) = world
        .rest(Method::POST, "/api/v1/applications", Some(app("a")))
        .await;
    assert_eq!(status, 200, "{created}");
    let owner = json!({"group": "apps", "kind": "Deployment", "version": "v1", "name": "web", "namespace": "n", "uid": "1"});
    let mut pod =
        json!({"kind": "Pod", "version": "v1", "name": "web-1", "namespace": "n", "uid": "2"});
    pod["parentRefs"] = json!([owner]);
    let missing = json!({"kind": "ConfigMap", "version": "v1", "name": "later", "namespace": "n"});
    let tree = json!({"nodes": [owner, pod, missing], "orphanedNodes": [{"kind": "Secret", "version": "v1", "name": "s", "namespace": "n", "uid": "3"}]});
    *world.live.tree.lock().expect("not poisoned") =
        Some(Arc::new(serde_json::from_value(tree).expect("a tree")));
    let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"}, "spec": {"replicas": 1}});
    world
        .live
        .objects
        .lock()
        .expect("not poisoned")
        .insert("web".into(), live.clone());
    let managed = json!([{"group": "apps", "kind": "Deployment", "namespace": "n", "name": "web", "liveState": live.to_string()}]);
    *world.live.managed.lock().expect("not poisoned") =
        Some(Arc::new(serde_json::from_value(managed).expect("a list")));
}

/// `server.rbac.disableApplicationFineGrainedRBACInheritance`, which is on where it is not set.
#[tokio::test]
async fn who_may_delete_an_application_may_delete_its_objects_where_that_is_configured() {
    let policy = "p, bob, applications, delete, default/*, allow\n\
                  p, ann, applications, delete/*/Deployment/n/*, default/*, allow\n";
    let config = [
        ("accounts.bob", "apiKey"),
        ("accounts.ann", "apiKey"),
        ("policy.csv", policy),
    ];
    let world = World::start_by_policy(&config, &[]).await;
    furnish(&world).await;
    let mut tokens = Vec::new();
    for account in ["bob", "ann"] {
        let at = format!("/api/v1/account/{account}/token");
        let body = json!({"name": account});
        let (status, made) = world.rest(Method::POST, &at, Some(body)).await;
        assert_eq!(status, 200, "{made}");
        tokens.push(made["token"].as_str().expect("a token").to_owned());
    }
    let resource = format!("{APP}/resource?{DEPLOYMENT}");
    for (disabled, of_bob, of_ann) in [
        ("", 403, 200),
        ("true", 403, 200),
        ("false", 200, 200),
        ("perhaps", 500, 500),
    ] {
        let key = "server.rbac.disableApplicationFineGrainedRBACInheritance";
        world.store.configure(key, disabled);
        for (token, want) in tokens.iter().zip([of_bob, of_ann]) {
            let (status, answer) = world.rest_as(token, Method::DELETE, &resource, None).await;
            assert_eq!(status, want, "{disabled:?}: {answer}");
        }
    }
}

async fn change(world: &World, change: impl FnOnce(&mut AppProjectSpec)) {
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("it is there");
    change(&mut project.spec);
    world.store.update_project(&project).await.expect("stored");
}

fn names(tree: &Value) -> Vec<String> {
    let nodes = ["nodes", "orphanedNodes"]
        .into_iter()
        .flat_map(|list| tree[list].as_array().cloned().unwrap_or_default());
    nodes
        .map(|n| n["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The visible part of the tree, and the replies to each call that accesses the cluster.
async fn seen(world: &World) -> (Vec<String>, Vec<(u16, String)>) {
    let error = |(status, body): (u16, Value)| {
        (
            status,
            body["error"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let (status, tree) = world
        .rest(Method::GET, &format!("{APP}/resource-tree"), None)
        .await;
    assert_eq!(status, 200, "{tree}");
    let actions = format!("{APP}/resource/actions?{DEPLOYMENT}");
    let resource = format!("{APP}/resource?{DEPLOYMENT}");
    let events = format!("{APP}/events?resourceName=web&resourceUID=1&resourceNamespace=n");
    let patch = format!("{resource}&patchType=application/merge-patch%2Bjson");
    let answers = vec![
        error(world.rest(Method::GET, &resource, None).await),
        error(world.rest(Method::GET, &actions, None).await),
        error(
            world
                .rest(Method::POST, &actions, Some(json!("restart")))
                .await,
        ),
        error(
            world
                .rest(
                    Method::POST,
                    &patch,
                    Some(json!("{\"spec\": {\"replicas\": 2}}")),
                )
                .await,
        ),
        error(world.rest(Method::GET, &events, None).await),
        error(world.rest(Method::DELETE, &resource, None).await),
    ];
    (names(&tree), answers)
}

/// All lines of a log.
async fn log(world: &World, pod: &str) -> Vec<LogEntry> {
    let query = ApplicationPodLogsQuery {
        name: "a".into(),
        namespace: Some("n".into()),
        pod_name: Some(pod.into()),
        follow: Some(true),
        ..Default::default()
    };
    let stream = world
        .grpc_stream::<_, LogEntry>("/application.ApplicationService/PodLogs", query)
        .await;
    tokio::time::timeout(
        Duration::from_secs(5),
        stream.map(|entry| entry.expect("no error")).collect(),
    )
    .await
    .expect("it ends")
}

async fn is_out_of_reach(world: &World) {
    let (_, answers) = seen(world).await;
    let absent = "Deployment apps web not found as part of application a";
    for (number, (status, error)) in answers.iter().enumerate() {
        let expected = if number == 4 {
            "web not found as part of application a"
        } else {
            absent
        };
        assert_eq!((*status, error.as_str()), (400, expected), "call {number}");
    }
    assert_eq!(
        log(world, "web-1").await,
        [],
        "it ends at once, without a last entry"
    );
    let (_, managed) = world
        .rest(Method::GET, &format!("{APP}/managed-resources"), None)
        .await;
    assert!(!managed.to_string().contains("web"), "{managed}");
    assert!(world.live.deleted.lock().expect("not poisoned").is_empty());
    assert!(world.live.written.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn what_is_permitted_can_be_reached() {
    let world = world().await;
    let (names, answers) = seen(&world).await;
    assert_eq!(names, ["web", "web-1", "later", "s"]);
    assert!(
        answers.iter().all(|(status, _)| *status == 200),
        "{answers:?}"
    );
    let lines = log(&world, "web-1").await;
    assert_eq!(
        lines
            .iter()
            .map(|l| (l.content.as_str(), l.last))
            .collect::<Vec<_>>(),
        [("hello", false), ("", true)]
    );
    let (_, managed) = world
        .rest(Method::GET, &format!("{APP}/managed-resources"), None)
        .await;
    assert_eq!(managed["items"][0]["name"], "web");
}

#[tokio::test]
async fn without_its_destination_nothing_of_an_application_can_be_reached() {
    let world = world().await;
    change(&world, |spec| spec.destinations.clear()).await;
    assert_eq!(
        seen(&world).await.0,
        ["later"],
        "there is nothing to see of what is not there"
    );
    is_out_of_reach(&world).await;
}

#[tokio::test]
async fn a_cluster_that_is_not_scoped_to_the_project_is_out_of_reach() {
    let world = world().await;
    change(&world, |spec| {
        spec.permit_only_project_scoped_clusters = true
    })
    .await;
    is_out_of_reach(&world).await;
}

#[tokio::test]
async fn a_kind_that_is_forbidden_is_out_of_reach_with_all_below_it() {
    let world = world().await;
    let kind = json!([{"group": "apps", "kind": "Deployment"}]);
    change(&world, |spec| {
        spec.namespace_resource_blacklist = serde_json::from_value(kind).expect("kinds")
    })
    .await;
    assert_eq!(seen(&world).await.0, ["later", "s"]);
    is_out_of_reach(&world).await;
}

#[tokio::test]
async fn an_application_that_names_its_cluster_is_permitted_what_the_project_says_of_its_server() {
    let world = world().await;
    world.store.control(
        "a",
        &json!({"spec": {"destination": {"server": null, "name": "in-cluster"}}}),
    );
    change(&world, |spec| {
        spec.destinations[0].server = "https://kubernetes.default.svc".into()
    })
    .await;
    let (names, answers) = seen(&world).await;
    assert_eq!(names, ["web", "web-1", "later", "s"]);
    assert!(
        answers.iter().all(|(status, _)| *status == 200),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_tree_that_is_watched_shows_what_is_permitted() {
    let world = world().await;
    change(&world, |spec| spec.destinations.clear()).await;
    let query = ResourcesQuery {
        application_name: "a".into(),
        ..Default::default()
    };
    let mut trees = world
        .grpc_stream::<_, ApplicationTree>(
            "/application.ApplicationService/WatchResourceTree",
            query,
        )
        .await;
    let tree = trees.next().await.expect("a tree").expect("no error");
    assert_eq!(names(&json!(tree)), ["later"]);
}
