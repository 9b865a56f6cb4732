//! Which answers say that an object is gone, and which say nothing of it.

use super::{Fake, MAPS, a_good, eventually, good_key, key, not_found, status, with_good};
use crate::step::step;
use http::Method;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tiphys_apimachinery::{GroupKind, Object, ResourceKey};
use tiphys_cluster::{
    CacheOptions, Cluster, Discovery, Error, Executor, Known, LiveCache,
    apply::{Applier, Settings, set::ApplySet},
    manager::Manager,
    request::{Call, JSON},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_engine::sync::{
    Effect, Propagation,
    effect::{ApplyMode, Write},
};

/// Path of the Good.
const GOOD: &str = "/apis/two.example/v2/namespaces/ns/goods/g";

/// Answers of 404 about the Good, whether its kind is served afterwards, and whether the Good counts
/// as gone.
fn answers_of_404() -> Vec<(Value, bool, bool)> {
    let [(absent, _), (generic, _)] = not_found("goods", "g");
    let mut another = absent.clone();
    another["details"]["name"] = json!("other");
    let mut refused = absent.clone();
    let why = "admission webhook \"w.example\" denied the request: owners \"g\" not found";
    refused["message"] = json!(why);
    let short = status(404, "NotFound", "goods.two.example \"g\" not found");
    let without_reason = status(404, "", "goods.two.example \"g\" not found");
    let of_a_proxy = json!("404 page not found");
    vec![
        (absent, true, true),
        (short, true, true),
        (another, true, false),
        (refused, true, false),
        (without_reason, true, false),
        (generic.clone(), true, false),
        (of_a_proxy.clone(), true, false),
        (generic, false, true),
        (of_a_proxy, false, true),
    ]
}

/// Removes the Good in one of several ways; whether it counts as gone.
async fn counts_as_gone(executor: &Executor, what: &str) -> bool {
    let good = Object::from_value(a_good("v2")).expect("a map");
    let uid = good.uid().to_owned();
    let effect = match what {
        "remove" => {
            let (gvk, key) = (good.gvk(), good.key());
            return executor
                .remove(&gvk, &key, &uid, "Background")
                .await
                .is_ok();
        }
        "remove as seen" => return executor.remove_as_seen(&good, "Background").await.is_ok(),
        "release" => return executor.release(&good, "example.org/hold").await.is_ok(),
        "prune" => Effect::Prune {
            step: step(&good),
            uid,
            propagation: Propagation::Background,
        },
        "delete a hook" => Effect::DeleteHook {
            step: step(&good),
            uid,
            propagation: Propagation::Background,
        },
        "release a hook" => Effect::RemoveFinalizer {
            step: step(&good),
            uid,
            finalizer: "example.org/hold".to_owned(),
        },
        "read" => Effect::Read { step: step(&good) },
        other => unreachable!("{other}"),
    };
    let outcome = executor.run(0, &effect).await;
    outcome.result.is_err_and(|e| e.not_found)
}

#[tokio::test]
async fn not_found_means_gone_if_it_names_the_object_or_its_kind_is_gone() {
    for (told, is_served, gone) in answers_of_404() {
        for what in [
            "remove",
            "remove as seen",
            "release",
            "prune",
            "delete a hook",
            "release a hook",
            "read",
        ] {
            let (fake, cache) = with_good().await;
            {
                let mut state = fake.state();
                let answers = vec![(404, told.clone()); 2];
                state.refusals.insert(GOOD.to_owned(), answers);
                if !is_served {
                    state.good = None;
                }
            }
            let done = counts_as_gone(&Executor::new(cache), what).await;
            assert_eq!(done, gone, "{what}, served: {is_served}, {told}");
        }
    }
}

/// Nothing is asked of a kind that is not served.
#[tokio::test]
async fn what_is_of_a_kind_that_was_gone_before_is_gone() {
    for what in ["remove", "remove as seen", "release"] {
        let (fake, cache) = with_good().await;
        fake.state().good = None;
        cache.discovery().refresh().await.expect("it answers");
        assert!(counts_as_gone(&Executor::new(cache), what).await, "{what}");
        assert_eq!(fake.asked(GOOD), 0, "{what}");
    }
}

/// Whoever decides by what is there would take an object for missing.
#[tokio::test]
async fn what_cannot_be_read_is_not_missing() {
    let nothing = Known::Resources(Vec::new());
    for (told, is_served, gone) in answers_of_404() {
        for how in ["in its version", "alone", "with others"] {
            let fake = Fake::default();
            let mut unmarked = a_good("v2");
            unmarked["metadata"]["annotations"] = json!({});
            {
                let mut state = fake.state();
                (state.version, state.good) = (1, Some(unmarked.clone()));
            }
            let cache = fake.cache().await;
            {
                let mut state = fake.state();
                let answers = vec![(404, told.clone())];
                state.refusals.insert(GOOD.to_owned(), answers);
                if !is_served {
                    state.good = None;
                }
            }
            let gvk = Object::from_value(unmarked).expect("a map").gvk();
            let is_missing = match how {
                "in its version" => matches!(cache.get_as(&gvk, "ns", "g").await, Ok(None)),
                "alone" => matches!(cache.fetch(&good_key()).await, Ok(None)),
                _ => {
                    let also = [good_key()];
                    let all = cache.managed("app", &also, &nothing).await;
                    all.is_ok_and(|all| all.is_empty())
                }
            };
            assert_eq!(is_missing, gone, "{how}, served: {is_served}, {told}");
        }
    }
}

/// A discovery that fails does not say that a kind is gone.
#[tokio::test]
async fn while_discovery_fails_no_kind_is_gone() {
    let (fake, cache) = with_good().await;
    let away = (503, status(503, "ServiceUnavailable", "nobody is there"));
    {
        let mut state = fake.state();
        let [_, (generic, _)] = not_found("goods", "g");
        state.refusals.insert(GOOD.to_owned(), vec![(404, generic)]);
        for root in ["/api", "/apis"] {
            let answers = vec![away.clone(); 100];
            state.refusals.insert(root.to_owned(), answers);
        }
        state.good = None;
    }
    let executor = Executor::new(cache);
    assert!(!counts_as_gone(&executor, "remove").await);
}

/// What is deleted to be made anew is made when it is gone, and not before.
#[tokio::test]
async fn an_object_is_made_anew_only_when_the_old_one_is_gone() {
    let deleted = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
    for (told, is_served, gone) in answers_of_404() {
        if !is_served {
            continue;
        }
        let is_read = vec![(404, told.clone())];
        let is_awaited = vec![
            (200, a_good("v2")),
            (200, deleted.clone()),
            (404, told.clone()),
        ];
        for answers in [is_read, is_awaited] {
            let (fake, cache) = with_good().await;
            fake.state().refusals.insert(GOOD.to_owned(), answers);
            let good = Object::from_value(a_good("v2")).expect("a map");
            let replace = Effect::Apply(Write {
                step: step(&good),
                mode: ApplyMode::Replace,
                force: true,
                validate: true,
            });
            let result = Executor::new(cache).run(0, &replace).await.result;
            assert!(result.is_err(), "this server makes nothing");
            assert_eq!(fake.asked("POST ") > 0, gone, "{told}");
        }
    }
}

/// Such as an answer of a proxy: the cluster would look empty.
#[tokio::test]
async fn what_is_not_a_list_does_not_say_that_nothing_is_there() {
    let fake = Fake::default();
    fake.put("a", "app");
    let other = (200, json!({"message": "welcome"}));
    fake.state()
        .refusals
        .insert(MAPS.to_owned(), vec![other; 100]);
    let cache = fake.cache().await;
    assert_eq!(cache.failures().len(), 1);
    let known = Known::Resources(vec![key("a")]);
    assert!(cache.managed("app", &[], &known).await.is_err());
    fake.state().refusals.clear();
    eventually("it is listed", || cache.get(&key("a")).is_some()).await;
}

/// A set whose parent counts as missing would be begun anew, without the members it had.
#[tokio::test]
async fn the_parent_of_a_set_is_made_only_if_there_is_none() {
    let [(absent, _), (generic, _)] = not_found("configmaps", "set");
    for (told, is_made) in [(absent, true), (generic, false)] {
        let fake = Fake::default();
        let path = "/api/v1/namespaces/ns/configmaps/set";
        fake.state()
            .refusals
            .insert(path.to_owned(), vec![(404, told.clone())]);
        let discovery = Discovery::new(fake.cluster().await).await;
        let discovery = discovery.expect("discovery");
        let set = ApplySet::new(&discovery, "configmaps/set", Some("ns")).await;
        let mut set = set.expect("a built-in kind");
        let applier = Applier::new(discovery, Settings::new("kubectl", Arc::new(|_: &str| {})));
        // This server stores nothing.
        assert!(applier.begin_set(&mut set, &[]).await.is_err());
        let written = fake.asked(&format!("PATCH {path}"));
        assert_eq!(written > 0, is_made, "{told}");
    }
}

/// Rights that are left behind would be called missing.
#[tokio::test]
async fn rights_that_are_not_found_are_missing_only_if_the_answer_names_them() {
    let fake = Fake::default();
    let cluster = fake.cluster().await;
    let said = Mutex::new(Vec::new());
    let say = |line: String| said.lock().expect("no panic").push(line);
    let manager = Manager {
        http: cluster.http(),
        namespace: "kube-system",
        say: &say,
    };
    // This server knows no such path.
    assert!(manager.uninstall().await.is_err());
    assert!(said.lock().expect("no panic").is_empty());
}

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Creates an object. A definition is served a moment after it was created.
async fn create(cluster: &Cluster, path: &str, object: &Value) {
    let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
    let began = Instant::now();
    while let Err(e) = cluster.http().send(&call).await {
        let may_come = e.is_not_found() && began.elapsed() < PATIENCE;
        assert!(may_come, "{path}: {e}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Deletes an object and waits for an answer like this about another path.
async fn delete_until(cluster: &Cluster, path: &str, asked: &str, is_it: impl Fn(&Error) -> bool) {
    let call = Call::new(Method::DELETE, path);
    cluster.http().send(&call).await.expect(path);
    let began = Instant::now();
    loop {
        let answer: Result<Value, Error> = cluster.http().json(&Call::get(asked)).await;
        if answer.as_ref().is_err_and(&is_it) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{asked}: {answer:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn embedded() -> (EmbeddedKube, Cluster) {
    let kube = EmbeddedKube::start(Options::default()).await;
    let kube = kube.expect("the embedded server starts");
    let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc");
    (kube, cluster.await.expect("it answers"))
}

async fn cache_of(cluster: &Cluster) -> LiveCache {
    let discovery = Discovery::new(cluster.clone()).await.expect("discovery");
    let cache = LiveCache::start(discovery, CacheOptions::default());
    cache.wait_ready().await;
    cache
}

/// An API server answers for ever that it does not find the path, which names no object.
#[tokio::test(flavor = "multi_thread")]
async fn objects_go_with_the_definition_of_their_kind() {
    let (kube, cluster) = embedded().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let boats = "/apis/tiphys.test/v1/namespaces/default/boats";
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    let names =
        json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.tiphys.test"},
        "spec": {"group": "tiphys.test", "scope": "Namespaced", "names": names, "versions": [version]},
    });
    let id = "fleet:tiphys.test/Boat:default/argo";
    let boat = json!({"apiVersion": "tiphys.test/v1", "kind": "Boat", "metadata": {
        "name": "argo", "namespace": "default", "finalizers": ["example.org/hold"],
        "annotations": {"argocd.argoproj.io/tracking-id": id}}});
    create(&cluster, definitions, &definition).await;
    let mut unheld = boat.clone();
    unheld["metadata"]["finalizers"] = json!([]);
    create(&cluster, boats, &unheld).await;
    let cache = cache_of(&cluster).await;
    let boat = Object::from_value(boat).expect("a map");
    eventually("the boat is seen", || cache.get(&boat.key()).is_some()).await;

    let definition = format!("{definitions}/boats.tiphys.test");
    let says_nothing = |e: &Error| e.is_not_found() && !e.is_absent("argo");
    let argo = format!("{boats}/argo");
    delete_until(&cluster, &definition, &argo, says_nothing).await;
    let gk = GroupKind::new("tiphys.test", "Boat");
    let group = ("apiextensions.k8s.io", "CustomResourceDefinition");
    let definition = ResourceKey::new(group.0, group.1, "", "boats.tiphys.test");
    eventually("the kind is gone", || {
        cache.kinds().preferred(&gk).is_none() && cache.get(&definition).is_none()
    })
    .await;
    let executor = Executor::new(cache);
    let (gvk, key) = (boat.gvk(), boat.key());
    let removed = executor.remove(&gvk, &key, "", "Background").await;
    removed.expect("it is gone with its kind");
    let released = executor.release(&boat, "example.org/hold").await;
    released.expect("it is gone with its kind");
    drop(executor);
    kube.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_go_with_their_namespace() {
    let (kube, cluster) = embedded().await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "map", "namespace": "harbour"}});
    create(&cluster, "/api/v1/namespaces", &namespace).await;
    let path = "/api/v1/namespaces/harbour";
    create(&cluster, &format!("{path}/configmaps"), &map).await;
    let executor = Executor::new(cache_of(&cluster).await);
    delete_until(&cluster, path, path, |e| e.is_absent("harbour")).await;
    for object in [map, namespace] {
        let object = Object::from_value(object).expect("a map");
        let (gvk, key) = (object.gvk(), object.key());
        let removed = executor.remove(&gvk, &key, "", "Background").await;
        removed.expect("it is gone");
        let prune = Effect::Prune {
            step: step(&object),
            uid: String::new(),
            propagation: Propagation::Background,
        };
        let outcome = executor.run(0, &prune).await;
        assert!(outcome.result.is_err_and(|e| e.not_found));
    }
    drop(executor);
    kube.shutdown().await;
}
