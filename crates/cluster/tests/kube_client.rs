//! kube-rs's own client, over TLS with a token, against the embedded API server: the library that
//! other people's controllers are built on.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::api::{
    Api, AttachParams, DeleteParams, DynamicObject, EvictParams, ListParams, LogParams, ObjectMeta,
    Patch, PatchParams, PostParams, ResourceExt,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::discovery::Discovery;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event as Finalize, finalizer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{Controller, WatchStreamExt, reflector, wait};
use kube::{Client, Config};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_secs(20);

async fn start() -> (EmbeddedKube, Client) {
    let kube = EmbeddedKube::start(Options::default())
        .await
        .expect("it starts");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    kube.serve(listener);
    let kubeconfig = Kubeconfig::from_yaml(&kube.kubeconfig(address)).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a configuration");
    (kube, Client::try_from(config).expect("a client"))
}

fn map(name: &str, value: &str) -> ConfigMap {
    let labels = BTreeMap::from([("set".to_owned(), "s".to_owned())]);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    ConfigMap {
        metadata,
        data: Some(BTreeMap::from([("k".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn only() -> ListParams {
    ListParams::default().labels("set=s")
}

fn watched() -> watcher::Config {
    watcher::Config::default().labels("set=s")
}

async fn create_and_replace(maps: &Api<ConfigMap>) {
    let post = PostParams::default();
    maps.create(&post, &map("a", "1")).await.expect("created");
    let again = maps
        .create(&post, &map("a", "1"))
        .await
        .expect_err("it is there");
    assert!(
        matches!(again, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
    );
    let mut found = maps.get("a").await.expect("found");
    let stale = found.clone();
    found.data = Some(BTreeMap::from([("k".to_owned(), "2".to_owned())]));
    maps.replace("a", &post, &found).await.expect("replaced");
    let conflict = maps
        .replace("a", &post, &stale)
        .await
        .expect_err("it is old");
    assert!(
        matches!(conflict, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict")
    );
}

/// Patches one object and applies another, as two conflicting managers.
async fn patch_and_apply(maps: &Api<ConfigMap>) {
    maps.patch(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"data": {"l": "3"}})),
    )
    .await
    .expect("patched");
    maps.patch(
        "a",
        &PatchParams::default(),
        &Patch::Strategic(json!({"data": {"m": "4"}})),
    )
    .await
    .expect("patched");
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "labels": {"set": "s"}}, "data": {"k": "5"}});
    maps.patch("b", &PatchParams::apply("tests"), &Patch::Apply(&applied))
        .await
        .expect("applied");
    let clash = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "6"}});
    let refused = maps
        .patch("b", &PatchParams::apply("others"), &Patch::Apply(&clash))
        .await
        .expect_err("a conflict");
    assert!(
        refused.to_string().contains("conflict with \"tests\""),
        "{refused}"
    );
    maps.patch(
        "b",
        &PatchParams::apply("others").force(),
        &Patch::Apply(&clash),
    )
    .await
    .expect("forced");
}

async fn list_and_delete(maps: &Api<ConfigMap>) {
    let names: Vec<String> = maps
        .list(&only())
        .await
        .expect("listed")
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(
        maps.list_metadata(&only().limit(1))
            .await
            .expect("listed")
            .metadata
            .remaining_item_count,
        None,
        "a selector hides it"
    );
    assert!(maps.get_opt("none").await.expect("asked").is_none());
    assert_eq!(maps.get_metadata("a").await.expect("found").name_any(), "a");
    maps.delete("a", &DeleteParams::default())
        .await
        .expect("deleted");
    maps.delete_collection(&DeleteParams::default(), &only())
        .await
        .expect("deleted");
    assert!(maps.list(&only()).await.expect("listed").items.is_empty());
}

/// Creates an object of a kind known only through discovery, in dry run.
async fn try_a_discovered_kind(client: &Client) {
    let discovery = Discovery::new(client.clone())
        .run()
        .await
        .expect("discovered");
    let (resource, _) = discovery
        .groups()
        .flat_map(|g| g.recommended_resources())
        .find(|(r, _)| r.kind == "Secret")
        .expect("secrets");
    let secrets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let secret = DynamicObject::new("s", &resource).data(json!({"stringData": {"p": "w"}}));
    let secret = secrets
        .create(
            &PostParams {
                dry_run: true,
                ..PostParams::default()
            },
            &secret,
        )
        .await
        .expect("tried");
    assert_eq!(secret.data["data"]["p"], "dw==");
}

#[tokio::test]
async fn every_verb_of_its_api_works() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    create_and_replace(&maps).await;
    patch_and_apply(&maps).await;
    list_and_delete(&maps).await;
    try_a_discovered_kind(&client).await;
    server.shutdown().await;
}

#[tokio::test]
async fn its_subresources_work_and_exec_is_refused_with_a_reason() {
    let (server, client) = start().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let web: Deployment = serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}}
    }))
    .expect("a deployment");
    deployments
        .create(&PostParams::default(), &web)
        .await
        .expect("created");
    let ready = |d: Option<&Deployment>| {
        d.and_then(|d| d.status.as_ref())
            .and_then(|s| s.ready_replicas)
            == Some(1)
    };
    let awaited = wait::await_condition(deployments.clone(), "web", ready);
    tokio::time::timeout(PATIENCE, awaited)
        .await
        .expect("in time")
        .expect("it is watched");
    assert_eq!(
        deployments
            .get_scale("web")
            .await
            .expect("a scale")
            .spec
            .and_then(|s| s.replicas),
        Some(1)
    );
    let two = json!({"spec": {"replicas": 2}});
    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(&two))
        .await
        .expect("scaled");
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}});
    let applied = deployments
        .patch_scale(
            "web",
            &PatchParams::apply("scaler").force(),
            &Patch::Apply(&scale),
        )
        .await
        .expect("applied");
    assert_eq!(applied.spec.and_then(|s| s.replicas), Some(3));
    assert!(
        deployments
            .get_status("web")
            .await
            .expect("a status")
            .status
            .is_some()
    );

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = pods
        .list(
            &ListParams::default()
                .labels("app=web")
                .fields("status.phase=Running"),
        )
        .await
        .expect("listed")
        .items
        .remove(0)
        .name_any();
    assert!(
        !pods
            .logs(&pod, &LogParams::default())
            .await
            .expect("a log")
            .is_empty()
    );
    let refused = match pods.exec(&pod, ["ls"], &AttachParams::default()).await {
        Ok(_) => panic!("there is no container"),
        Err(error) => error.to_string(),
    };
    assert!(
        refused.contains("501") || refused.contains("no container"),
        "{refused}"
    );
    pods.evict(&pod, &EvictParams::default())
        .await
        .expect("evicted");

    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let request: TokenRequest =
        serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 600}}))
            .expect("a request");
    let answer = accounts
        .create_token_request("default", &PostParams::default(), &request)
        .await
        .expect("a token");
    assert_eq!(
        answer
            .status
            .and_then(|s| s.token)
            .map(|t| t.split('.').count()),
        Some(3)
    );
    server.shutdown().await;
}

/// The events that a watcher reports, until there are `n`.
async fn told(client: &Client, config: watcher::Config, n: usize) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let writer = maps.clone();
    let mut changed = false;
    let mut told = Vec::new();
    let mut events = Box::pin(watcher(maps, config));
    let follow = async {
        while told.len() < n {
            match events
                .try_next()
                .await
                .expect("a good stream")
                .expect("it goes on")
            {
                Event::Init => told.push("init".to_owned()),
                Event::InitApply(o) => told.push(format!("there {}", o.name_any())),
                Event::InitDone => {
                    told.push("done".to_owned());
                    if !changed {
                        changed = true;
                        writer
                            .create(&PostParams::default(), &map("later", "1"))
                            .await
                            .expect("created");
                        writer
                            .delete("later", &DeleteParams::default())
                            .await
                            .expect("deleted");
                    }
                }
                Event::Apply(o) => told.push(format!("set {}", o.name_any())),
                Event::Delete(o) => told.push(format!("gone {}", o.name_any())),
            }
        }
    };
    tokio::time::timeout(PATIENCE, follow)
        .await
        .expect("in time");
    told
}

#[tokio::test]
async fn its_watchers_tell_the_list_and_then_every_change() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &map(name, "1"))
            .await
            .expect("created");
    }
    let wanted = [
        "init",
        "there a",
        "there b",
        "there c",
        "done",
        "set later",
        "gone later",
    ];
    assert_eq!(told(&client, watched(), wanted.len()).await, wanted);
    assert_eq!(
        told(&client, watched().page_size(2), wanted.len()).await,
        wanted,
        "in pages"
    );
    assert_eq!(
        told(&client, watched().streaming_lists(), wanted.len()).await,
        wanted,
        "as one stream"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn its_reflector_holds_what_the_server_holds() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let (reader, writer) = reflector::store();
    let stream = reflector(writer, watcher(maps.clone(), watched()))
        .default_backoff()
        .applied_objects();
    let task = tokio::spawn(async move { stream.for_each(|_| async {}).await });
    tokio::time::timeout(PATIENCE, reader.wait_until_ready())
        .await
        .expect("in time")
        .expect("it is ready");
    for i in 0..20 {
        maps.create(&PostParams::default(), &map(&format!("m{i:02}"), "1"))
            .await
            .expect("created");
    }
    maps.delete("m07", &DeleteParams::default())
        .await
        .expect("deleted");
    maps.patch(
        "m08",
        &PatchParams::default(),
        &Patch::Merge(json!({"data": {"k": "new"}})),
    )
    .await
    .expect("patched");
    let same = || {
        let held = reader.state();
        held.len() == 19
            && held
                .iter()
                .any(|m| m.name_any() == "m08" && m.data.as_ref().is_some_and(|d| d["k"] == "new"))
    };
    let settled = async {
        while !same() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, settled)
        .await
        .expect("it holds the same");
    task.abort();
    server.shutdown().await;
}

/// State of the test's controller.
struct Shared {
    client: Client,
    cleaned: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

/// Creates a Secret for each ConfigMap, and counts the cleanups.
async fn reconcile(object: Arc<ConfigMap>, shared: Arc<Shared>) -> Result<Action, Failed> {
    let maps: Api<ConfigMap> = Api::default_namespaced(shared.client.clone());
    let act = |event: Finalize<ConfigMap>| async {
        match event {
            Finalize::Apply(object) => {
                let owner = kube::Resource::controller_owner_ref(object.as_ref(), &());
                let metadata = json!({"name": object.name_any(), "ownerReferences": [owner]});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"from": "controller"}});
                let secrets: Api<Secret> = Api::default_namespaced(shared.client.clone());
                secrets
                    .patch(
                        &object.name_any(),
                        &PatchParams::apply("controller").force(),
                        &Patch::Apply(secret),
                    )
                    .await?;
                Ok::<_, kube::Error>(Action::await_change())
            }
            Finalize::Cleanup(_) => {
                shared.cleaned.fetch_add(1, Ordering::SeqCst);
                Ok(Action::await_change())
            }
        }
    };
    finalizer(&maps, "tests.tiphys.dev/cleanup", object, act)
        .await
        .map_err(|e| Failed(e.to_string()))
}

#[tokio::test]
async fn its_controller_creates_heals_and_finalizes() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let shared = Arc::new(Shared {
        client: client.clone(),
        cleaned: AtomicUsize::new(0),
    });
    let controller =
        Controller::new(maps.clone(), watched()).owns(secrets.clone(), watcher::Config::default());
    let run = controller.run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_millis(50)),
        shared.clone(),
    );
    let task = tokio::spawn(run.for_each(|_| async {}));
    for i in 0..5 {
        maps.create(&PostParams::default(), &map(&format!("c{i}"), "1"))
            .await
            .expect("created");
    }
    let has = |n: usize| {
        let secrets = secrets.clone();
        async move {
            while secrets
                .list(&ListParams::default())
                .await
                .expect("listed")
                .items
                .iter()
                .filter(|s| s.name_any().starts_with('c'))
                .count()
                != n
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, has(5))
        .await
        .expect("a Secret for each");
    secrets
        .delete("c3", &DeleteParams::default())
        .await
        .expect("deleted");
    tokio::time::timeout(PATIENCE, has(5))
        .await
        .expect("it comes back");
    for i in 0..5 {
        maps.delete(&format!("c{i}"), &DeleteParams::default())
            .await
            .expect("deleted");
    }
    // The finalizer keeps each object until the controller has cleaned up; then the garbage
    // collector deletes the Secret.
    let emptied = async {
        while !maps.list(&only()).await.expect("listed").items.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, emptied)
        .await
        .expect("nothing is left");
    assert_eq!(shared.cleaned.load(Ordering::SeqCst), 5);
    tokio::time::timeout(PATIENCE, has(0))
        .await
        .expect("their Secrets go, too");
    task.abort();
    server.shutdown().await;
}
