//! The crate on the embedded API server and, with `TIPHYS_TEST_KUBECONFIG=<file>`, the same on a
//! real one.
//!
//! Without that variable the tests of `real` report that they have no cluster and pass.

use crate::step;

use http::Method;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use step::step;
use tiphys_apimachinery::{GroupKind, Gvk, Object, ResourceKey};
use tiphys_cluster::{
    CacheOptions, Cluster, ConnectOptions, Discovery, Executor, LiveCache, Records, RecordsOptions,
    records::{Event, EventTarget},
    request::{Call, MERGE_PATCH},
};
use tiphys_embedded_kube::EmbeddedKube;
use tiphys_engine::{
    sync::{
        Effect, Outcome, Propagation,
        effect::{ApplyMode, EffectOk, Write},
    },
    types::KindInfo,
};

/// A cluster for one test; its server runs as long as this value exists.
struct Ground {
    cluster: Cluster,
    embedded: Option<EmbeddedKube>,
}

impl Ground {
    async fn embedded() -> Self {
        let options = tiphys_embedded_kube::Options::default();
        let server = EmbeddedKube::start(options)
            .await
            .expect("the embedded server starts");
        let cluster =
            Cluster::connect_in_process(server.router(), "https://kubernetes.default.svc")
                .await
                .expect("it answers");
        Self {
            cluster,
            embedded: Some(server),
        }
    }

    async fn real() -> Option<Self> {
        let Ok(file) = std::env::var("TIPHYS_TEST_KUBECONFIG") else {
            tiphys_testkit::skip("real", "it needs a real control plane: make test-real");
            return None;
        };
        let cluster = Cluster::connect(ConnectOptions::kubeconfig(Some(file.into()), None))
            .await
            .expect("the test cluster answers");
        Some(Self {
            cluster,
            embedded: None,
        })
    }

    async fn cache(&self) -> LiveCache {
        let discovery = Discovery::new(self.cluster.clone())
            .await
            .expect("discovery");
        let cache = LiveCache::start(discovery, CacheOptions::default());
        cache.wait_ready().await;
        cache
    }
}

macro_rules! scenarios {
    ($($name:ident)*; only on a real server: $($real:ident)*) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let ground = super::Ground::embedded().await;
                super::$name(&ground).await;
                if let Some(server) = ground.embedded {
                    server.shutdown().await;
                }
            })*
        }
        mod real {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(ground) = super::Ground::real().await {
                    super::$name(&ground).await;
                }
            })*
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $real() {
                if let Some(ground) = super::Ground::real().await {
                    super::$real(&ground).await;
                }
            })*
        }
    };
}

scenarios! {
    discovery_knows_kinds_scopes_and_versions
    the_cache_follows_what_happens
    crds_come_and_go
    objects_are_written_as_kubectl_does
    finalizers_are_removed
    an_object_without_a_mark_is_read_once_and_then_kept
    what_the_watch_saw_deleted_does_not_come_back
    records_and_settings_are_followed;
    only on a real server:
    field_managers_are_migrated
    what_cannot_be_changed_in_place_is_made_anew
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a map")
}

fn apply(target: &Object, mode: ApplyMode, force: bool) -> Effect {
    Effect::Apply(Write {
        step: step(target),
        mode,
        force,
        validate: true,
    })
}

fn prune(target: &Object, uid: &str) -> Effect {
    Effect::Prune {
        step: step(target),
        uid: uid.to_owned(),
        propagation: Propagation::Foreground,
    }
}

/// The message of a success, or that of a failure in brackets.
fn said(outcome: &Outcome) -> String {
    match &outcome.result {
        Ok(ok) => ok.message.clone(),
        Err(e) => format!("[{}{}]", if e.not_found { "gone: " } else { "" }, e.message),
    }
}

async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn namespace(name: &str) -> Object {
    object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

fn config_map(ns: &str, name: &str, app: &str, data: Value) -> Object {
    let id = format!("{app}:/ConfigMap:{ns}/{name}");
    let metadata = json!({"name": name, "namespace": ns, "annotations": {"argocd.argoproj.io/tracking-id": id}});
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
}

async fn fresh_namespace(executor: &Executor, name: &str) {
    let gone = executor.run(0, &prune(&namespace(name), "")).await;
    if gone.result.is_ok() {
        let deadline = Instant::now() + Duration::from_secs(30);
        while executor
            .run(
                0,
                &Effect::Read {
                    step: step(&namespace(name)),
                },
            )
            .await
            .result
            .is_ok()
        {
            assert!(
                Instant::now() < deadline,
                "the namespace of an earlier run does not go"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let made = executor
        .run(0, &apply(&namespace(name), ApplyMode::ClientSide, false))
        .await;
    assert_eq!(said(&made), format!("namespace/{name} created"));
}

/// The answer to a request that the watch has overtaken, such as that to a deletion in the
/// foreground, shows an object that is gone.
async fn what_the_watch_saw_deleted_does_not_come_back(ground: &Ground) {
    let own = "overtaken".to_owned();
    for namespaces in [
        Vec::new(),
        vec![own.clone()],
        vec!["other".to_owned(), own.clone()],
    ] {
        let discovery = Discovery::new(ground.cluster.clone())
            .await
            .expect("discovery");
        let all = Executor::new(ground.cache().await);
        fresh_namespace(&all, &own).await;
        let options = CacheOptions {
            namespaces: namespaces.clone(),
            ..CacheOptions::default()
        };
        let cache = LiveCache::start(discovery, options);
        cache.wait_ready().await;
        let executor = Executor::new(cache.clone());
        let map = config_map(&own, "map", "app", json!({"a": "b"}));
        let made = executor
            .run(0, &apply(&map, ApplyMode::ClientSide, false))
            .await;
        assert_eq!(said(&made), "configmap/map created");
        let key = map.key();
        eventually("the map is seen", || cache.get(&key).is_some()).await;
        let answer = cache.get(&key).expect("just seen");
        let Ok(EffectOk {
            live: Some(answer), ..
        }) = executor
            .run(0, &Effect::Read { step: step(&map) })
            .await
            .result
        else {
            panic!("{answer:?} cannot be read");
        };
        let path = format!("/api/v1/namespaces/{own}/configmaps/map");
        let gone = ground
            .cluster
            .http()
            .send(&Call::new(Method::DELETE, &path))
            .await;
        gone.expect("it is deleted");
        eventually("the deletion is seen", || cache.get(&key).is_none()).await;
        cache.observe(&answer);
        assert!(cache.get(&key).is_none(), "{namespaces:?}");
        // What is made anew has another identity.
        let made = executor
            .run(0, &apply(&map, ApplyMode::ClientSide, false))
            .await;
        assert_eq!(said(&made), "configmap/map created");
        assert!(cache.get(&key).is_some(), "{namespaces:?}");
    }
}

async fn discovery_knows_kinds_scopes_and_versions(ground: &Ground) {
    let cluster = ground.cluster.clone();
    assert!(
        cluster.version().git_version.starts_with("v1."),
        "{:?}",
        cluster.version()
    );
    let discovery = Discovery::new(cluster).await.expect("discovery");
    let kinds = discovery.kinds();
    assert_eq!(
        kinds.is_namespaced(&GroupKind::new("apps", "Deployment")),
        Some(true)
    );
    assert_eq!(
        kinds.is_namespaced(&GroupKind::new("", "Namespace")),
        Some(false)
    );
    assert_eq!(
        kinds.is_namespaced(&GroupKind::new("nobody.example", "Nothing")),
        None
    );
    let hpa = kinds
        .preferred(&GroupKind::new("autoscaling", "HorizontalPodAutoscaler"))
        .expect("served");
    assert_eq!(
        (hpa.gvk.version.as_str(), hpa.has_subresource("status")),
        ("v2", true)
    );
    let versions = kinds.api_versions();
    assert!(
        ["v1", "v1/Pod", "apps/v1", "apps/v1/Deployment"]
            .iter()
            .all(|v| versions.contains(&(*v).to_owned())),
        "{versions:?}"
    );
    assert_eq!(
        kinds.find("deploy").map(|k| k.resource.as_str()),
        Some("deployments")
    );
    assert!(kinds.failures.is_empty(), "{:?}", kinds.failures);
}

async fn claims_are_shown_below_their_set(cache: &LiveCache, executor: &Executor) {
    let template = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let set = object(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "cluster-cache", "annotations": {"argocd.argoproj.io/tracking-id": "app-one:apps/StatefulSet:cluster-cache/db"}},
        "spec": {"replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "volumeClaimTemplates": [template],
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}},
    }));
    executor
        .run(0, &apply(&set, ApplyMode::ClientSide, false))
        .await;
    let uid = cache.get(&set.key()).expect("there").uid;
    eventually("the claim", || {
        cache
            .children(&uid)
            .iter()
            .any(|c| c.key.name == "data-db-0")
    })
    .await;
}

async fn the_cache_follows_what_happens(ground: &Ground) {
    let start = Instant::now();
    let cache = ground.cache().await;
    eprintln!("ready after {:?}: {:?}", start.elapsed(), cache.stats());
    assert!(cache.failures().is_empty(), "{:?}", cache.failures());
    let executor = Executor::new(cache.clone());
    fresh_namespace(&executor, "cluster-cache").await;
    let mut changes = cache.changes();
    let map = config_map("cluster-cache", "a", "app-one", json!({"k": "1"}));
    let made = executor
        .run(0, &apply(&map, ApplyMode::ClientSide, false))
        .await;
    assert_eq!(said(&made), "configmap/a created");
    // What was written is in the cache immediately.
    let managed = cache
        .managed("app-one", &[], &tiphys_cluster::Known::Nothing)
        .await
        .expect("readable");
    assert_eq!(managed.keys().cloned().collect::<Vec<_>>(), [map.key()]);
    // Others use the same cluster.
    let told = loop {
        let change = changes.recv().await.expect("told");
        if change.key == map.key() {
            break change;
        }
    };
    assert_eq!(told.apps, ["app-one".into()]);
    // A Deployment's Pods belong to its Application.
    let labels = json!({"app": "web"});
    let deployment = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "cluster-cache", "annotations": {"argocd.argoproj.io/tracking-id": "app-one:apps/Deployment:cluster-cache/web"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}},
    }));
    let made = executor
        .run(0, &apply(&deployment, ApplyMode::ClientSide, false))
        .await;
    assert_eq!(said(&made), "deployment.apps/web created");
    let uid = cache.get(&deployment.key()).expect("there").uid;
    let pods = || {
        cache
            .children(&uid)
            .iter()
            .flat_map(|rs| cache.children(&rs.uid))
            .filter(|p| p.key.kind == "Pod")
            .collect::<Vec<_>>()
    };
    eventually("two Pods", || pods().len() == 2).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let change = tokio::time::timeout_at(deadline, changes.recv())
            .await
            .expect("a Pod's change")
            .expect("told");
        if change.key.kind == "Pod" && change.key.namespace == "cluster-cache" {
            assert_eq!(
                (change.apps.as_slice(), change.managed),
                (["app-one".into()].as_slice(), false)
            );
            break;
        }
    }
    eventually("healthy", || {
        cache
            .get(&deployment.key())
            .and_then(|l| l.details)
            .and_then(|d| d.health.clone())
            .is_some_and(|h| h.status.as_str() == "Healthy")
    })
    .await;
    assert!(
        pods()
            .iter()
            .all(|p| p.details.as_ref().is_some_and(|d| d.health.is_some()))
    );
    claims_are_shown_below_their_set(&cache, &executor).await;
    // It is deleted, and gone from the cache when the call returns.
    let live = cache.get(&map.key()).expect("there");
    assert_eq!(
        said(
            &executor
                .run(0, &prune(&map, "00000000-0000-0000-0000-000000000000"))
                .await
        )
        .split(':')
        .next(),
        Some("[gone")
    );
    assert_eq!(
        said(&executor.run(0, &prune(&map, &live.uid)).await),
        "pruned"
    );
    eventually("the ConfigMap gone", || cache.get(&map.key()).is_none()).await;
    executor
        .run(0, &prune(&namespace("cluster-cache"), ""))
        .await;
}

async fn crds_come_and_go(ground: &Ground) {
    let cache = ground.cache().await;
    let executor = Executor::new(cache.clone());
    let crd = object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "boats.tiphys.test"},
        "spec": {"group": "tiphys.test", "scope": "Namespaced", "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }));
    executor.run(0, &prune(&crd, "")).await;
    eventually("no CRD left", || cache.get(&crd.key()).is_none()).await;
    assert_eq!(
        said(
            &executor
                .run(0, &apply(&crd, ApplyMode::ClientSide, false))
                .await
        ),
        "customresourcedefinition.apiextensions.k8s.io/boats.tiphys.test created"
    );
    let boat = object(
        json!({"apiVersion": "tiphys.test/v1", "kind": "Boat", "metadata": {"name": "argo", "namespace": "default",
        "annotations": {"argocd.argoproj.io/tracking-id": "fleet:tiphys.test/Boat:default/argo"}}, "spec": {"oars": 50}}),
    );
    let gk = GroupKind::new("tiphys.test", "Boat");
    eventually("the kind is served", || {
        cache.kinds().is_namespaced(&gk).is_some()
    })
    .await;
    let mut made = executor
        .run(0, &apply(&boat, ApplyMode::ClientSide, false))
        .await;
    for _ in 0..50 {
        if made.result.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        made = executor
            .run(0, &apply(&boat, ApplyMode::ClientSide, false))
            .await;
    }
    assert_eq!(said(&made), "boat.tiphys.test/argo created");
    eventually("the boat is seen", || cache.object(&boat.key()).is_some()).await;
    let mut faster = boat.clone();
    faster.0.insert("spec".into(), json!({"oars": 51}));
    assert_eq!(
        said(
            &executor
                .run(0, &apply(&faster, ApplyMode::ClientSide, false))
                .await
        ),
        "boat.tiphys.test/argo configured"
    );
    executor.run(0, &prune(&crd, "")).await;
    eventually("the kind is gone", || {
        cache.kinds().is_namespaced(&gk).is_none() && cache.get(&boat.key()).is_none()
    })
    .await;
}

async fn objects_are_written_as_kubectl_does(ground: &Ground) {
    let cache = ground.cache().await;
    let executor = Executor::new(cache.clone());
    fresh_namespace(&executor, "cluster-write").await;
    let map = |data: Value| config_map("cluster-write", "m", "w", data);
    let run = async |target: &Object, mode, force| {
        said(&executor.run(0, &apply(target, mode, force)).await)
    };
    use ApplyMode::{ClientSide, Create, Replace, ServerSide, Update};
    assert_eq!(
        run(&map(json!({"a": "1", "b": "1"})), ClientSide, false).await,
        "configmap/m created"
    );
    assert_eq!(
        run(&map(json!({"a": "1", "b": "1"})), ClientSide, false).await,
        "configmap/m unchanged"
    );
    // Another manager's field stays, the one that we removed is gone.
    let patch = json!({"data": {"theirs": "1"}}).to_string();
    let http = cache.discovery().cluster().http().clone();
    let call = tiphys_cluster::request::Call::new(
        http::Method::PATCH,
        "/api/v1/namespaces/cluster-write/configmaps/m",
    );
    http.send(&call.with_body(tiphys_cluster::request::MERGE_PATCH, patch))
        .await
        .expect("patched");
    // The cache may not have seen it yet: the write must not lose it.
    assert_eq!(
        run(&map(json!({"a": "2"})), ClientSide, false).await,
        "configmap/m configured"
    );
    let live = cache.object(&map(json!({})).key()).expect("kept");
    assert_eq!(live.0["data"], json!({"a": "2", "theirs": "1"}));
    assert!(
        live.annotation("kubectl.kubernetes.io/last-applied-configuration")
            .is_some_and(|t| t.ends_with('\n'))
    );
    let managers: BTreeSet<&str> = live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|e| e["manager"].as_str())
        .collect();
    assert!(managers.contains("argocd-controller"), "{managers:?}");
    assert_eq!(
        run(&map(json!({"c": "3"})), ServerSide, false).await,
        "configmap/m serverside-applied"
    );
    assert_eq!(
        run(&map(json!({"d": "4"})), Replace, false).await,
        "configmap/m replaced"
    );
    assert_eq!(
        cache.object(&live.key()).expect("kept").0["data"],
        json!({"d": "4"})
    );
    assert_eq!(
        run(&map(json!({"d": "4"})), Create, false).await,
        "[configmaps \"m\" already exists]"
    );
    assert_eq!(
        run(&map(json!({"e": "5"})), Update, false).await,
        "configmap/m updated"
    );
    let before = cache.get(&live.key()).expect("there").uid;
    assert_eq!(
        run(&map(json!({"f": "6"})), Replace, true).await,
        "configmap/m replaced"
    );
    assert_ne!(cache.get(&live.key()).expect("there").uid, before);
    let missing = config_map("nowhere-at-all", "m", "w", json!({}));
    assert_eq!(
        run(&missing, ClientSide, false).await,
        "[namespaces \"nowhere-at-all\" not found]"
    );
    let unknown = object(
        json!({"apiVersion": "nobody.example/v1", "kind": "Nothing", "metadata": {"name": "x", "namespace": "default"}}),
    );
    assert!(
        run(&unknown, ClientSide, false)
            .await
            .contains("Make sure the \"Nothing\" CRD is installed")
    );
    let pretended = executor
        .server_dry_run()
        .run(0, &apply(&map(json!({"g": "7"})), ClientSide, false))
        .await;
    assert_eq!(said(&pretended), "configmap/m configured (server dry run)");
    assert_eq!(
        cache.object(&live.key()).expect("kept").0["data"],
        json!({"f": "6"})
    );
    executor
        .run(0, &prune(&namespace("cluster-write"), ""))
        .await;
}

async fn what_cannot_be_changed_in_place_is_made_anew(ground: &Ground) {
    let cache = ground.cache().await;
    let executor = Executor::new(cache.clone());
    fresh_namespace(&executor, "cluster-anew").await;
    let run = async |target: &Object, force| {
        said(
            &executor
                .run(0, &apply(target, ApplyMode::ClientSide, force))
                .await,
        )
    };
    // An immutable field: refused with the server's message, recreated with force.
    let service = |ip: &str| {
        object(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "cluster-anew"}, "spec": {"clusterIP": ip, "ports": [{"port": 80}]}}),
        )
    };
    assert_eq!(
        run(&service("10.0.44.43"), false).await,
        "service/s created"
    );
    let refused = run(&service("10.0.44.44"), false).await;
    assert!(
        refused.starts_with("[Service \"s\" is invalid: spec.clusterIPs[0]: Invalid value"),
        "{refused}"
    );
    assert_eq!(
        run(&service("10.0.44.44"), true).await,
        "service/s configured"
    );
    // A binding's role is immutable, so the binding is recreated.
    let binding = |role: &str| {
        object(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b", "namespace": "cluster-anew"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": []}),
        )
    };
    let name = "rolebinding.rbac.authorization.k8s.io/b";
    assert_eq!(
        run(&binding("view"), false).await,
        format!("{name} reconciled. {name} created")
    );
    assert_eq!(
        run(&binding("edit"), false).await,
        format!("{name} reconciled. {name} created")
    );
    executor
        .run(0, &prune(&namespace("cluster-anew"), ""))
        .await;
}

async fn finalizers_are_removed(ground: &Ground) {
    let cache = ground.cache().await;
    let executor = Executor::new(cache.clone());
    fresh_namespace(&executor, "cluster-final").await;
    let mut map = config_map("cluster-final", "m", "f", json!({"a": "1"}));
    map.set_finalizers(vec![
        "example.com/other".into(),
        "argocd.argoproj.io/hook-finalizer".into(),
    ]);
    let made = executor
        .run(0, &apply(&map, ApplyMode::Create, false))
        .await;
    let uid = made
        .result
        .expect("created")
        .live
        .expect("answered")
        .uid()
        .to_owned();
    let left = executor
        .run(0, &prune(&map, &uid))
        .await
        .result
        .expect("accepted")
        .live
        .expect("held by finalizers");
    assert!(left.deletion_timestamp().is_some());
    for finalizer in ["argocd.argoproj.io/hook-finalizer", "example.com/other"] {
        let effect = Effect::RemoveFinalizer {
            step: step(&map),
            uid: uid.clone(),
            finalizer: finalizer.to_owned(),
        };
        assert!(executor.run(0, &effect).await.result.is_ok());
    }
    // A foreground deletion adds a finalizer of its own, which the server's garbage collector
    // removes.
    eventually("the object is gone", || cache.get(&map.key()).is_none()).await;
    let again = Effect::RemoveFinalizer {
        step: step(&map),
        uid,
        finalizer: "example.com/other".to_owned(),
    };
    assert!(
        executor
            .run(0, &again)
            .await
            .result
            .expect_err("gone")
            .not_found
    );
    executor
        .run(0, &prune(&namespace("cluster-final"), ""))
        .await;
}

async fn field_managers_are_migrated(ground: &Ground) {
    let cache = ground.cache().await;
    let executor = Executor::new(cache.clone());
    fresh_namespace(&executor, "cluster-migrate").await;
    let map = config_map("cluster-migrate", "m", "f", json!({"a": "1"}));
    let call = tiphys_cluster::request::Call::new(
        http::Method::POST,
        "/api/v1/namespaces/cluster-migrate/configmaps",
    )
    .query("fieldManager", "kubectl-client-side-apply");
    let body = serde_json::to_vec(&map).expect("JSON");
    cache
        .discovery()
        .cluster()
        .http()
        .send(&call.with_body(tiphys_cluster::request::JSON, body))
        .await
        .expect("created");
    let migrate = Effect::MigrateManagers {
        step: step(&map),
        uid: String::new(),
        manager: "kubectl-client-side-apply".to_owned(),
    };
    let live = executor
        .run(0, &migrate)
        .await
        .result
        .expect("migrated")
        .live
        .expect("answered");
    let entries = live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .expect("there")
        .clone();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["manager"], &entries[0]["operation"]),
        (&json!("argocd-controller"), &json!("Apply"))
    );
    executor
        .run(0, &prune(&namespace("cluster-migrate"), ""))
        .await;
}

async fn an_object_without_a_mark_is_read_once_and_then_kept(ground: &Ground) {
    let cache = ground.cache().await;
    let key = ResourceKey::new("", "ConfigMap", "default", "kube-root-ca.crt");
    eventually("every namespace has the map", || cache.get(&key).is_some()).await;
    assert!(cache.object(&key).is_none(), "nobody wanted its body yet");
    let found = cache
        .managed(
            "pinning",
            std::slice::from_ref(&key),
            &tiphys_cluster::Known::Nothing,
        )
        .await
        .expect("readable");
    assert_eq!(found.len(), 1);
    assert!(cache.object(&key).is_some());
    let absent = ResourceKey::new("", "ConfigMap", "kube-system", "no-such-map");
    assert!(
        cache
            .managed("pinning", &[absent], &tiphys_cluster::Known::Nothing)
            .await
            .expect("readable")
            .is_empty()
    );
    let unknown = Gvk::new("nobody.example", "v1", "Nothing");
    assert!(cache.get_as(&unknown, "", "x").await.is_err());
}

/// Installs our CRDs and waits until they are served.
async fn serve_our_kinds(cache: &LiveCache, executor: &Executor) {
    for file in ["application-crd.yaml", "appproject-crd.yaml"] {
        let path = format!("{}/../../deploy/crds/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(path).expect("the CRDs are in the repository");
        let documents =
            tiphys_gocompat::yaml::parse_documents(text, &tiphys_gocompat::yaml::Limits::default())
                .expect("YAML");
        let crd = object(documents[0].value.clone());
        let applied = executor
            .run(0, &apply(&crd, ApplyMode::ServerSide, false))
            .await;
        assert!(applied.result.is_ok(), "{}", said(&applied));
    }
    let served = |kind: &str| {
        cache
            .kinds()
            .is_namespaced(&GroupKind::new("argoproj.io", kind))
            .is_some()
    };
    eventually("our kinds are served", || {
        served("Application") && served("AppProject")
    })
    .await;
}

async fn many_writers_lose_nothing(records: &Records) {
    let writers = (0..8).map(|i| {
        let store = records.applications.clone();
        async move {
            let change = |o: &mut Object| {
                o.set_annotation(&format!("writer-{i}"), "was here");
                Ok(true)
            };
            store
                .modify("cluster-records", "web", change)
                .await
                .expect("written");
        }
    });
    futures::future::join_all(writers).await;
    let app = records
        .applications
        .get("cluster-records", "web")
        .expect("there");
    assert_eq!(app.object().expect("readable").annotations().len(), 8);
}

async fn events_are_kept(records: &Records) {
    let app = records
        .applications
        .get("cluster-records", "web")
        .expect("there");
    let project = object(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": "cluster-records",
            "labels": {"team": "platform", "env-stage": "live", "more": "y"}},
        "spec": {},
    }));
    records.projects.create(&project).await.expect("created");
    let events = records.events("argocd-server");
    events
        .write(
            &Event::new(
                EventTarget::application(&app.meta),
                "OperationStarted",
                "admin initiated sync",
            )
            .annotation("user", "admin"),
        )
        .await
        .expect("written");
    let about = events
        .about("cluster-records", "web", &app.meta.uid)
        .await
        .expect("readable");
    assert_eq!(
        about
            .iter()
            .map(|e| e.str_at("/source/component"))
            .collect::<Vec<_>>(),
        ["argocd-server"]
    );
    // The Application's label counts before its project's.
    let labels = json!({"team": "web", "env-stage": "live"});
    assert_eq!(about[0].0["metadata"]["labels"], labels);
}

/// A deleted Application disappears when its finalizer is removed.
async fn a_finalizer_holds_a_deletion(records: &Records) {
    let app = records
        .applications
        .get("cluster-records", "web")
        .expect("there");
    records
        .applications
        .delete("cluster-records", "web", &app.meta.uid, "")
        .await
        .expect("accepted");
    let after = records.applications.get("cluster-records", "web");
    assert!(
        after.is_some_and(|r| r.meta.is_deleting),
        "the deletion is seen at once"
    );
    let release = |o: &mut Object| {
        o.set_finalizers(Vec::new());
        Ok(true)
    };
    records
        .applications
        .modify("cluster-records", "web", release)
        .await
        .expect("released");
    assert!(
        records.applications.get("cluster-records", "web").is_none(),
        "gone at once"
    );
}

/// Whoever deletes an object does not see it any more, though the watch is behind; one that was
/// created meanwhile stays.
async fn a_deletion_is_seen_at_once(records: &Records) {
    let (namespace, secrets) = ("cluster-records", &records.secrets);
    let secret = |name: &str| {
        let labels = json!({"argocd.argoproj.io/secret-type": "repository"});
        Object::from_value(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace, "labels": labels}}))
            .expect("a Secret")
    };
    for round in 0..20 {
        let name = format!("gone-{}", round % 2);
        let created = secrets.create(&secret(&name)).await.expect("created");
        assert!(secrets.get(namespace, &name).is_some(), "{round}");
        let uid = &created.meta.uid;
        secrets
            .delete(namespace, &name, uid, "")
            .await
            .expect("deleted");
        assert!(secrets.get(namespace, &name).is_none(), "{round}");
        let again = secrets.create(&secret(&name)).await.expect("created again");
        let refused = secrets.delete(namespace, &name, uid, "").await;
        assert!(refused.is_err(), "it is another one");
        let kept = secrets.get(namespace, &name).map(|r| r.meta.uid.clone());
        assert_eq!(kept.as_ref(), Some(&again.meta.uid), "{round}");
        secrets
            .delete(namespace, &name, "", "")
            .await
            .expect("deleted");
    }
}

async fn records_and_settings_are_followed(ground: &Ground) {
    let cache = ground.cache().await;
    let executor = Executor::new(cache.clone());
    serve_our_kinds(&cache, &executor).await;
    fresh_namespace(&executor, "cluster-records").await;
    let records = Records::start(
        ground.cluster.clone(),
        RecordsOptions::new("cluster-records"),
    );
    records.wait_ready().await.expect("readable");
    assert!(records.applications.is_empty());
    let mut changes = records.applications.changes();
    let app = object(
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "cluster-records", "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "labels": {"team": "web", "env-note": "private", "other": "x"}},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example/a", "path": "."}, "destination": {"namespace": "x", "server": "https://kubernetes.default.svc"}}}),
    );
    let made = records.applications.create(&app).await.expect("created");
    assert_eq!(made.value().expect("typed").spec.project, "default");
    assert_eq!(changes.recv().await.expect("told").record.meta.name, "web");
    assert!(
        records.applications.get("cluster-records", "web").is_some(),
        "there at once"
    );
    many_writers_lose_nothing(&records).await;
    // Each state is reported once, by the response or by the watch; and so is a state written by
    // others.
    let by_another = Call::new(
        Method::PATCH,
        "/apis/argoproj.io/v1alpha1/namespaces/cluster-records/applications/web",
    )
    .with_body(
        MERGE_PATCH,
        json!({"metadata": {"annotations": {"another": "was here"}}}).to_string(),
    );
    ground
        .cluster
        .http()
        .send(&by_another)
        .await
        .expect("written");
    let mut told: Vec<u64> = Vec::new();
    while told.len() < 9 {
        let change = changes.recv().await.expect("told");
        told.push(
            change
                .record
                .meta
                .resource_version
                .parse()
                .expect("a number"),
        );
    }
    assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
    let last = records
        .applications
        .get("cluster-records", "web")
        .expect("there")
        .object()
        .expect("readable");
    assert_eq!(last.annotations().len(), 9);
    // Settings follow the ConfigMap.
    let mut settings = records.watch_settings();
    let method = json!({
        "application.resourceTrackingMethod": "label",
        "resource.includeEventLabelKeys": "team, env-*",
        "resource.excludeEventLabelKeys": "*-note",
    });
    records.config_maps.create(&object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "cluster-records"}, "data": method}))).await.expect("created");
    settings
        .wait_for(|s| s.get("application.resourceTrackingMethod") == "label")
        .await
        .expect("followed");
    events_are_kept(&records).await;
    a_deletion_is_seen_at_once(&records).await;
    a_finalizer_holds_a_deletion(&records).await;
    executor
        .run(0, &prune(&namespace("cluster-records"), ""))
        .await;
}
