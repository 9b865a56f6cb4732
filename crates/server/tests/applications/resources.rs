//! The objects of an Application: what is shown, and which actions can be run.

use super::{APPS, GET, create, named};
use crate::common::World;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::Application;
use tiphys_server::ports::Propagation;

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

    // Nobody has looked for it, or could.
    let missing = async || {
        let read: Application = world.grpc(GET, named("a")).await.expect("it is there");
        read.status.resources[1].health.clone()
    };
    let status = |status: &str| json!({"status": {"sync": {"status": status}}});
    world.store.control("a", &status("Unknown"));
    assert_eq!(missing().await, None);
    world.store.control("a", &status("OutOfSync"));
    assert!(missing().await.is_some());
    for (group, kind, is_told) in [
        ("apps", "*", true),
        ("", "Service", false),
        ("", "*", false),
    ] {
        let mut tree = world.live.tree.lock().expect("not poisoned").clone();
        let tree = Arc::make_mut(tree.as_mut().expect("a tree"));
        let of = json!([{"group": group, "kind": kind, "message": "forbidden"}]);
        tree.unreadable_kinds = serde_json::from_value(of).expect("kinds");
        *world.live.tree.lock().expect("not poisoned") = Some(Arc::new(tree.clone()));
        assert_eq!(missing().await.is_some(), is_told, "{group} {kind}");
    }
}

/// What was not found has no uid, and neither has what was not asked for.
#[tokio::test]
async fn events_are_of_resources_that_were_found() {
    let world = World::start().await;
    create(&world, "a").await;
    let tree = json!({"nodes": [
        {"kind": "Pod", "version": "v1", "name": "p", "namespace": "n", "uid": "1"},
        {"kind": "Service", "version": "v1", "name": "s", "namespace": "n"}
    ]});
    let tree = serde_json::from_value(tree).expect("a tree");
    *world.live.tree.lock().expect("not poisoned") = Some(Arc::new(tree));
    for (query, want) in [
        ("resourceName=p&resourceUID=1", 200),
        ("resourceName=s&resourceUID=", 400),
    ] {
        let path = format!("{APPS}/a/events?{query}&resourceNamespace=n");
        let (status, body) = world.rest(Method::GET, &path, None).await;
        assert_eq!(status, want, "{query}: {body}");
    }
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

/// Adds objects with actions to the tree, and one without.
fn place_objects(world: &World) {
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
}

/// The URL of an object's actions.
fn actions(kind: &str, group: &str) -> String {
    format!(
        "{APPS}/a/resource/actions?namespace=n&resourceName={kind}&version=v1&group={group}&kind={kind}"
    )
}

async fn run(world: &World, kind: &str, group: &str, action: &str) -> (u16, Value) {
    let path = actions(kind, group);
    world.rest(Method::POST, &path, Some(json!(action))).await
}

#[tokio::test]
async fn actions_are_listed_and_run() {
    let world = World::start().await;
    create(&world, "a").await;
    place_objects(&world);
    let (status, found) = world
        .rest(Method::GET, &actions("Deployment", "apps"), None)
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

    // The old call has the action's name as its body, the new one has parameters.
    assert_eq!(run(&world, "Deployment", "apps", "pause").await.0, 200);
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
    assert_eq!(run(&world, "Rollout", "argoproj.io", "resume").await.0, 200);
    assert_eq!(run(&world, "CronJob", "batch", "create-job").await.0, 200);
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

    let (status, body) = run(&world, "Deployment", "apps", "explode").await;
    assert_eq!(
        (
            status,
            body["error"]
                .as_str()
                .is_some_and(|e| e.contains("built-in script does not exist"))
        ),
        (500, true),
        "{body}"
    );
    assert_eq!(
        run(&world, "Deployment", "batch", "pause").await.0,
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
