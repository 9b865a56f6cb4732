//! `ServerSideDiff`: whose dry run is made, and what is shown of it.

use crate::common::{World, app};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::{
    resource::ResourceDiff,
    rpc::application::{ApplicationServerSideDiffQuery, ApplicationServerSideDiffResponse},
};
use tiphys_apimachinery::patch::json_merge;
use tonic::Code;

const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";
const RPC: &str = "/application.ApplicationService/ServerSideDiff";

fn object(kind: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "data": data})
}

fn managed(kind: &str, name: &str, live: &Value) -> ResourceDiff {
    ResourceDiff {
        kind: kind.into(),
        namespace: "default".into(),
        name: name.into(),
        live_state: live.to_string(),
        ..ResourceDiff::default()
    }
}

async fn world() -> World {
    let hidden = ("resource.sensitive.mask.annotations", "token");
    let world = World::start_with(&[hidden], &[]).await;
    let created = world
        .rest(Method::POST, "/api/v1/applications", Some(app("web")))
        .await;
    assert_eq!(created.0, 200, "{}", created.1);
    let none = Value::Null;
    let all = vec![
        managed("ConfigMap", "a", &none),
        managed("ConfigMap", "b", &none),
        managed("Secret", "s", &none),
    ];
    *world.live.managed.lock().expect("not poisoned") = Some(Arc::new(all));
    world
}

async fn ask(
    world: &World,
    live: Vec<ResourceDiff>,
    targets: &[Value],
) -> Result<ApplicationServerSideDiffResponse, (Code, String)> {
    let query = ApplicationServerSideDiffQuery {
        app_name: "web".into(),
        live_resources: live,
        target_manifests: targets.iter().map(Value::to_string).collect(),
        ..Default::default()
    };
    let answer = world.grpc(RPC, query).await;
    answer.map_err(|e| (e.code(), e.message().to_owned()))
}

fn dry_runs(world: &World) -> Vec<String> {
    world.live.dry_runs.lock().expect("not poisoned").clone()
}

#[tokio::test]
async fn what_would_change_is_predicted() {
    let world = world().await;
    let (old, new) = (json!({"k": "old"}), json!({"k": "new"}));
    let live = vec![
        managed("ConfigMap", "a", &object("ConfigMap", "a", &old)),
        managed("ConfigMap", "b", &object("ConfigMap", "b", &old)),
        managed("ConfigMap", "gone", &Value::Null),
    ];
    let mut without_namespace = object("ConfigMap", "b", &old);
    without_namespace["metadata"]
        .as_object_mut()
        .expect("a map")
        .remove("namespace");
    let targets = [
        object("ConfigMap", "a", &new),
        without_namespace,
        object("ConfigMap", "gone", &new),
        object("ConfigMap", "more", &new),
    ];
    let found = ask(&world, live, &targets).await.expect("an answer");
    let names: Vec<_> = found
        .items
        .iter()
        .map(|item| (item.name.as_str(), item.modified))
        .collect();
    assert_eq!(
        names,
        [("a", true), ("b", false), ("gone", true), ("more", true)]
    );
    assert!(found.modified);
    let first: Value = serde_json::from_str(&found.items[0].target_state).expect("JSON");
    assert_eq!(first["data"]["k"], "new");
    assert_eq!(found.items[3].live_state, "null");
    // What is not there yet is not asked for.
    assert_eq!(dry_runs(&world), ["ConfigMap/a", "ConfigMap/b"]);
    let live = vec![managed("ConfigMap", "a", &object("ConfigMap", "a", &old))];
    let found = ask(&world, live, &[Value::Null]).await.expect("an answer");
    assert!(!found.modified && found.items[0].target_state == "null");
}

#[tokio::test]
async fn values_of_secrets_are_not_shown() {
    let world = world().await;
    let secret = |name: &str, value: &str| {
        let mut secret = object("Secret", name, &json!({"k": value}));
        secret["metadata"]["annotations"] = json!({"token": value, "kept": "yes"});
        let last = json!({LAST: secret.to_string()});
        json_merge::apply(&secret, &json!({"metadata": {"annotations": last}})).expect("a patch")
    };
    let live = vec![managed("Secret", "s", &secret("s", "Q0FOQVJZMQ=="))];
    let targets = [secret("s", "Q0FOQVJZMg=="), secret("new", "Q0FOQVJZMw==")];
    let found = ask(&world, live, &targets).await.expect("an answer");
    assert!(found.items.iter().all(|item| item.modified));
    assert!(!format!("{found:?}").contains("Q0FOQVJZ"), "{found:?}");
    let item = &found.items[0];
    assert_ne!(item.live_state, item.target_state);
    for state in [&item.live_state, &item.target_state] {
        let state: Value = serde_json::from_str(state).expect("JSON");
        let annotations = &state["metadata"]["annotations"];
        assert_eq!(annotations["kept"], "yes");
        let token = annotations["token"].as_str().expect("it is still there");
        assert!(token.starts_with("++++++++"), "{token}");
    }
}

/// The dry run returns the whole live object, so it is made for nobody else's.
#[tokio::test]
async fn only_what_the_application_manages_is_asked_for() {
    let world = world().await;
    let data = json!({});
    let map = |name: &str| object("ConfigMap", name, &data);
    let with = |field: &str, value: &str| {
        let mut changed = map("a");
        match field {
            "namespace" | "name" => changed["metadata"][field] = json!(value),
            _ => changed[field] = json!(value),
        }
        changed
    };
    let not_of = |got: &str| {
        format!("the target manifest {got} is not of the live resource ConfigMap/a beside it")
    };
    for (live, target, code, message) in [
        (
            managed("ConfigMap", "a", &map("b")),
            map("a"),
            Code::InvalidArgument,
            "name mismatch: expected a, got b for live resource /ConfigMap/a".to_owned(),
        ),
        (
            managed("ConfigMap", "a", &with("namespace", "other")),
            map("a"),
            Code::InvalidArgument,
            "namespace mismatch: expected default, got other for live resource /ConfigMap/a"
                .to_owned(),
        ),
        (
            managed("ConfigMap", "a", &with("apiVersion", "apps/v1")),
            map("a"),
            Code::InvalidArgument,
            "group mismatch: expected , got apps for live resource /ConfigMap/a".to_owned(),
        ),
        (
            managed("ConfigMap", "a", &with("kind", "Secret")),
            map("a"),
            Code::InvalidArgument,
            "kind mismatch: expected ConfigMap, got Secret for live resource /ConfigMap/a"
                .to_owned(),
        ),
        (
            managed("ConfigMap", "other", &map("other")),
            map("other"),
            Code::PermissionDenied,
            "/ConfigMap other not found as part of application web".to_owned(),
        ),
        (
            managed("ConfigMap", "a", &map("a")),
            map("other"),
            Code::InvalidArgument,
            not_of("ConfigMap/other"),
        ),
        (
            managed("ConfigMap", "a", &map("a")),
            with("kind", "Secret"),
            Code::InvalidArgument,
            not_of("Secret/a"),
        ),
        (
            managed("ConfigMap", "a", &map("a")),
            with("namespace", "kube-system"),
            Code::InvalidArgument,
            not_of("ConfigMap/a"),
        ),
        (
            managed("ConfigMap", "a", &map("a")),
            with("apiVersion", "apps/v1"),
            Code::InvalidArgument,
            not_of("ConfigMap/a"),
        ),
        (
            managed("ConfigMap", "a", &map("a")),
            json!(["no object"]),
            Code::Unknown,
            "error unmarshaling target manifest 0: ".to_owned(),
        ),
    ] {
        let refused = ask(&world, vec![live], &[target])
            .await
            .expect_err(&message);
        assert_eq!(refused.0, code, "{message}: {refused:?}");
        assert!(refused.1.starts_with(&message), "{message}: {refused:?}");
    }
    *world.live.managed.lock().expect("not poisoned") = None;
    let live = vec![managed("ConfigMap", "a", &map("a"))];
    let refused = ask(&world, live, &[map("a")])
        .await
        .expect_err("no comparison");
    assert_eq!(refused.0, Code::FailedPrecondition, "{refused:?}");
    assert!(dry_runs(&world).is_empty());
}
