//! How the crate behaves when an API server misbehaves, on a small scriptable one.

mod gone;

use crate::step;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};
use step::step;
use tiphys_apimachinery::{GroupKind, Object, ResourceKey};
use tiphys_cluster::{
    CacheOptions, ChangeType, Cluster, Discovery, Executor, Known, LiveCache, request::Call,
};
use tiphys_engine::{
    sync::{Effect, Propagation},
    types::KindInfo,
};
use tokio::sync::{Barrier, mpsc};

const MAPS: &str = "/api/v1/configmaps";
const SECRETS: &str = "/api/v1/secrets";
/// A kind in two versions; this one is preferred, and is watched.
const GOODS: &str = "/apis/two.example/v2/goods";
/// Path prefix of a single ConfigMap.
const NAMED: &str = "/api/v1/namespaces/ns/configmaps/";

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    watches: Vec<mpsc::UnboundedSender<Bytes>>,
    /// Path to its scripted responses, first to last.
    refusals: HashMap<String, Vec<(u16, Value)>>,
    /// Watches from an older version are refused as too old.
    oldest: u64,
    /// Secrets may be listed, but not watched.
    unwatched: bool,
    requests: Vec<String>,
    old_discovery: bool,
    /// This many patches fail with a conflict.
    races: usize,
    /// The one Good; while there is none, its kind is not served.
    good: Option<Value>,
    /// Deletions are answered once this many have arrived.
    together: Option<Arc<Barrier>>,
}

/// A server with ConfigMaps and Secrets.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<State>>);

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

fn answer(code: u16, content: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    let frames = content.map(|b| Ok::<_, Infallible>(http_body::Frame::data(b)));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).expect("a status");
    response
}

fn plain(code: u16, value: &Value) -> Answer {
    answer(code, stream::iter([Bytes::from(value.to_string())]))
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while holding it")
    }

    async fn cluster(&self) -> Cluster {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = fake.handle(&request);
            let together = fake
                .state()
                .together
                .clone()
                .filter(|_| request.method() == Method::DELETE);
            async move {
                if let Some(together) = together {
                    together.wait().await;
                }
                Ok::<_, Infallible>(answer)
            }
        });
        Cluster::connect_in_process(service, "https://fake")
            .await
            .expect("it answers")
    }

    async fn cache(&self) -> LiveCache {
        let discovery = Discovery::new(self.cluster().await)
            .await
            .expect("discovery");
        let cache = LiveCache::start(discovery, CacheOptions::default());
        cache.wait_ready().await;
        cache
    }

    fn handle(&self, request: &Request<Body>) -> Answer {
        let (path, query) = (
            request.uri().path().to_owned(),
            request.uri().query().unwrap_or("").to_owned(),
        );
        let mut s = self.state();
        let body = request
            .headers()
            .get(http::header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        s.requests
            .push(format!("{} {path}?{query} {body}", request.method()));
        if let Some(refusals) = s.refusals.get_mut(&path)
            && !refusals.is_empty()
        {
            let (code, body) = refusals.remove(0);
            return plain(code, &body);
        }
        match path.as_str() {
            "/version" => plain(
                200,
                &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"}),
            ),
            "/apis" if s.good.is_some() => plain(200, &two_versions()),
            "/api" | "/apis" | "/api/v1" | "/apis/good.example/v1" | "/apis/bad.example/v1" => {
                plain(200, &discovery(&path, s.old_discovery))
            }
            SECRETS if s.unwatched && query.contains("watch=true") => {
                plain(403, &status(403, "Forbidden", "it may not be watched"))
            }
            MAPS | SECRETS | GOODS if query.contains("watch=true") => watch(&mut s, &path, &query),
            MAPS | SECRETS | GOODS => list(&s, &path),
            _ if path.ends_with("/namespaces/ns/goods/g") => good(&mut s, request.method(), &path),
            _ if path.starts_with(NAMED) => named(&mut s, request.method(), &path[NAMED.len()..]),
            _ => plain(
                404,
                &status(
                    404,
                    "NotFound",
                    "the server could not find the requested resource",
                ),
            ),
        }
    }

    /// Stores a ConfigMap that belongs to `app` and sends it to the watches.
    fn put(&self, name: &str, app: &str) -> Object {
        let mut s = self.state();
        s.version += 1;
        let kind = if s.objects.contains_key(name) {
            "MODIFIED"
        } else {
            "ADDED"
        };
        let id = format!("{app}:/ConfigMap:ns/{name}");
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "resourceVersion": s.version.to_string(), "annotations": {"argocd.argoproj.io/tracking-id": id}}});
        s.objects.insert(name.to_owned(), object.clone());
        tell(&mut s, kind, &object);
        Object::from_value(object).expect("a map")
    }

    /// Removes it and sends the deletion to the remaining watches.
    fn remove(&self, name: &str) {
        let mut s = self.state();
        s.version += 1;
        let mut object = s.objects.remove(name).expect("there");
        object["metadata"]["resourceVersion"] = s.version.to_string().into();
        tell(&mut s, "DELETED", &object);
    }

    fn bookmark(&self, version: u64) {
        let mut s = self.state();
        s.version = version;
        tell(
            &mut s,
            "BOOKMARK",
            &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": version.to_string()}}),
        );
    }

    /// Breaks every watch.
    fn cut(&self) {
        self.state().watches.clear();
    }

    fn asked(&self, what: &str) -> usize {
        self.state()
            .requests
            .iter()
            .filter(|r| r.contains(what))
            .count()
    }
}

fn tell(s: &mut State, kind: &str, object: &Value) {
    let line = Bytes::from(format!("{}\n", json!({"type": kind, "object": object})));
    s.watches.retain(|w| w.send(line.clone()).is_ok());
}

fn watch(s: &mut State, path: &str, query: &str) -> Answer {
    let from: u64 = query
        .split('&')
        .find_map(|p| p.strip_prefix("resourceVersion="))
        .and_then(|v| v.parse().ok())
        .unwrap_or(0);
    if from < s.oldest {
        let gone =
            json!({"type": "ERROR", "object": status(410, "Expired", "too old resource version")});
        return answer(200, stream::iter([Bytes::from(format!("{gone}\n"))]));
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    if path == MAPS {
        let version = |o: &Value| {
            o["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|v| v.parse::<u64>().ok())
                .unwrap_or(0)
        };
        for object in s.objects.values().filter(|o| version(o) > from) {
            let _ = sender.send(Bytes::from(format!(
                "{}\n",
                json!({"type": "MODIFIED", "object": object})
            )));
        }
    }
    s.watches.push(sender);
    let lines = stream::unfold(receiver, |mut r| async move {
        r.recv().await.map(|line| (line, r))
    });
    // Lines do not arrive in one piece each.
    answer(
        200,
        lines.flat_map(|line| {
            stream::iter([line.slice(..line.len() / 3), line.slice(line.len() / 3..)])
        }),
    )
}

/// One ConfigMap; the content of a patch is ignored.
fn named(s: &mut State, method: &Method, name: &str) -> Answer {
    if *method == Method::DELETE {
        return plain(
            200,
            &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
        );
    }
    if *method == Method::PATCH && s.races > 0 {
        s.races -= 1;
        return plain(
            409,
            &status(409, "Conflict", "the object has been modified"),
        );
    }
    s.objects.get(name).map_or_else(
        || plain(404, &status(404, "NotFound", "there is none")),
        |object| plain(200, object),
    )
}

/// The Good in the version of the path. A patch removes its finalizers, and no watch tells it.
fn good(s: &mut State, method: &Method, path: &str) -> Answer {
    let State { good, version, .. } = s;
    let Some(good) = good else {
        return plain(404, &status(404, "NotFound", "there is none"));
    };
    if *method == Method::PATCH {
        *version += 1;
        good["metadata"]["resourceVersion"] = version.to_string().into();
        good["metadata"]["finalizers"] = json!([]);
    }
    let mut answer = good.clone();
    let written = if path.contains("/v1/") { "v1" } else { "v2" };
    answer["apiVersion"] = format!("two.example/{written}").into();
    plain(200, &answer)
}

fn list(s: &State, path: &str) -> Answer {
    let items: Vec<&Value> = match path {
        MAPS => s.objects.values().collect(),
        GOODS => s.good.iter().collect(),
        _ => Vec::new(),
    };
    plain(
        200,
        &json!({"kind": "List", "metadata": {"resourceVersion": s.version.to_string()}, "items": items}),
    )
}

fn discovery(path: &str, old: bool) -> Value {
    let verbs = ["get", "list", "watch"];
    match (path, old) {
        ("/api", true) => json!({"kind": "APIVersions", "versions": ["v1"]}),
        ("/apis", true) => json!({"kind": "APIGroupList", "groups": [
            {"name": "bad.example", "versions": [{"version": "v1"}]}, {"name": "good.example", "versions": [{"version": "v1"}]}]}),
        ("/api/v1", _) => json!({"kind": "APIResourceList", "resources": [
            {"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": verbs},
            {"name": "configmaps/status", "namespaced": true, "kind": "ConfigMap", "verbs": verbs}]}),
        ("/apis/good.example/v1", _) => {
            json!({"kind": "APIResourceList", "resources": [{"name": "goods", "namespaced": false, "kind": "Good", "verbs": ["get"]}]})
        }
        ("/api", false) => {
            let resource = |name: &str, kind: &str| json!({"resource": name, "scope": "Namespaced", "verbs": verbs, "responseKind": {"group": "", "version": "", "kind": kind}});
            json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": ""}, "versions": [
                {"version": "v1", "freshness": "Current", "resources": [resource("configmaps", "ConfigMap"), resource("secrets", "Secret")]}]}]})
        }
        _ => json!({"kind": "APIGroupDiscoveryList", "items": []}),
    }
}

/// The kind Good in two versions.
fn two_versions() -> Value {
    let verbs = ["get", "list", "watch", "patch"];
    let version = |version: &str| {
        json!({"version": version, "freshness": "Current", "resources": [
            {"resource": "goods", "scope": "Namespaced", "verbs": verbs, "responseKind": {"group": "", "version": "", "kind": "Good"}}]})
    };
    json!({"kind": "APIGroupDiscoveryList", "items": [
        {"metadata": {"name": "two.example"}, "versions": [version("v2"), version("v1")]}]})
}

/// A Good that belongs to an Application and has a finalizer.
fn a_good(version: &str) -> Value {
    json!({"kind": "Good", "apiVersion": format!("two.example/{version}"), "metadata": {"name": "g", "namespace": "ns", "uid": "uid-g",
        "resourceVersion": "1", "finalizers": ["example.org/hold"],
        "annotations": {"argocd.argoproj.io/tracking-id": "app:two.example/Good:ns/g"}}})
}

fn good_key() -> ResourceKey {
    ResourceKey::new("two.example", "Good", "ns", "g")
}

async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::new("", "ConfigMap", "ns", name)
}

#[tokio::test]
async fn what_happened_while_the_watch_was_cut_is_found_out() {
    let fake = Fake::default();
    fake.put("stays", "app");
    fake.put("goes", "app");
    let cache = fake.cache().await;
    assert_eq!(
        cache
            .managed("app", &[], &Known::Nothing)
            .await
            .expect("readable")
            .len(),
        2
    );
    let mut changes = cache.changes();
    // No watch sees this change, and its history is discarded.
    fake.cut();
    fake.remove("goes");
    fake.put("new", "app");
    let version = fake.state().version;
    fake.state().oldest = version;
    eventually("the relist", || {
        cache.get(&key("new")).is_some() && cache.get(&key("goes")).is_none()
    })
    .await;
    let mut seen = BTreeMap::new();
    while let Ok(change) = changes.try_recv() {
        seen.insert(change.key.name.clone(), change.change_type);
    }
    assert_eq!(
        seen,
        BTreeMap::from([
            ("goes".to_owned(), ChangeType::Deleted),
            ("new".to_owned(), ChangeType::Added)
        ]),
        "what stayed was no change"
    );
}

#[tokio::test]
async fn a_cut_watch_goes_on_from_the_bookmark_without_listing() {
    let fake = Fake::default();
    fake.put("a", "app");
    let cache = fake.cache().await;
    eventually("the watches", || fake.state().watches.len() == 2).await;
    let lists = fake.asked(&format!("{MAPS}?limit"));
    fake.bookmark(50);
    fake.put("b", "app");
    eventually("the event", || cache.get(&key("b")).is_some()).await;
    fake.bookmark(60);
    tokio::time::sleep(Duration::from_millis(20)).await;
    fake.cut();
    eventually("a watch from the bookmark", || {
        fake.asked(&format!("{MAPS}?resourceVersion=60&")) == 1
    })
    .await;
    fake.put("c", "app");
    eventually("the event", || cache.get(&key("c")).is_some()).await;
    assert_eq!(fake.asked(&format!("{MAPS}?limit")), lists);
}

#[tokio::test]
async fn a_first_list_that_fails_and_then_does_not_is_waited_for() {
    let fake = Fake::default();
    fake.put("a", "app");
    fake.state().refusals.insert(
        SECRETS.to_owned(),
        vec![(503, status(503, "ServiceUnavailable", "in a moment")); 2],
    );
    let cache = fake.cache().await;
    assert_eq!(cache.failures().len(), 1);
    assert_eq!(
        cache
            .managed("app", &[], &Known::Nothing)
            .await
            .expect("it was listed")
            .len(),
        1
    );
}

#[tokio::test]
async fn a_kind_that_fails_does_not_hold_up_the_others() {
    let fake = Fake::default();
    fake.put("a", "app");
    let broken = (500, status(500, "InternalError", "the store is away"));
    fake.state()
        .refusals
        .insert(SECRETS.to_owned(), vec![broken; 100]);
    let cache = fake.cache().await;
    assert!(cache.get(&key("a")).is_some());
    assert_eq!(
        cache.failures(),
        [(GroupKind::new("", "Secret"), "the store is away".to_owned())]
    );
    // Not listed is not the same as missing, whether the object is desired, existed before, or may
    // exist.
    let secret = ResourceKey::new("", "Secret", "ns", "s");
    let (others, had) = (
        Known::Resources(vec![key("a")]),
        Known::Resources(vec![secret.clone()]),
    );
    assert_eq!(
        cache
            .managed("app", &[], &others)
            .await
            .expect("it has nothing of that kind")
            .len(),
        1
    );
    let wanted = std::slice::from_ref(&secret);
    for (also, known) in [
        (wanted, &others),
        (&[][..], &had),
        (&[][..], &Known::Nothing),
    ] {
        let error = cache
            .managed("app", also, known)
            .await
            .expect_err("unknown is an error");
        assert_eq!(
            error.to_string(),
            "failed to load state of resource Secret: the store is away"
        );
    }
    assert_eq!(cache.namespace_objects("ns").0.len(), 1);
    assert!(
        cache.namespace_objects("ns").1.is_err(),
        "there may be more"
    );
    fake.state().refusals.clear();
    eventually("the kind is followed in the end", || {
        cache.failures().is_empty()
    })
    .await;
    assert!(cache.managed("app", wanted, &Known::Nothing).await.is_ok());
    assert!(cache.namespace_objects("ns").1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_be_listed_and_not_watched_is_listed_rarely_and_stays_readable() {
    let fake = Fake::default();
    fake.state().unwatched = true;
    let cache = fake.cache().await;
    let wanted = [ResourceKey::new("", "Secret", "ns", "s")];
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cache
            .managed("app", &wanted, &Known::Nothing)
            .await
            .expect("it was listed a moment ago");
    }
    // The longest delay is between 8 and 16 seconds.
    let lists = fake.asked(&format!("{SECRETS}?limit"));
    assert!((35..=85).contains(&lists), "{lists}");
    // As soon as watching is permitted it is watched, and no longer listed.
    fake.state().unwatched = false;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let lists = fake.asked(&format!("{SECRETS}?limit"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fake.asked(&format!("{SECRETS}?limit")), lists);
}

#[tokio::test]
async fn old_news_are_dropped() {
    let fake = Fake::default();
    let first = fake.put("a", "app");
    let cache = fake.cache().await;
    fake.put("a", "app");
    eventually("the second state", || {
        cache
            .get(&key("a"))
            .is_some_and(|l| l.resource_version == "2")
    })
    .await;
    cache.observe(&first);
    assert_eq!(
        cache.get(&key("a")).expect("there").resource_version,
        "2",
        "it never goes backwards"
    );
    fake.remove("a");
    eventually("the deletion", || cache.get(&key("a")).is_none()).await;
    cache.observe(&first);
    assert!(
        cache.get(&key("a")).is_none(),
        "an answer that the watch has overtaken does not bring it back"
    );
    // Our own deletion holds against a watch that lags behind.
    let b = fake.put("b", "app");
    eventually("it is there", || cache.get(&key("b")).is_some()).await;
    cache.observe_deleted(&key("b"), b.uid());
    fake.put("b", "app");
    fake.put("c", "app");
    eventually("the watch went on", || cache.get(&key("c")).is_some()).await;
    assert!(cache.get(&key("b")).is_none());
}

#[tokio::test]
async fn a_server_that_is_busy_is_given_the_time_it_asks_for() {
    let fake = Fake::default();
    let cluster = fake.cluster().await;
    let mut busy = status(429, "TooManyRequests", "slow down");
    busy["details"] = json!({"retryAfterSeconds": 1});
    fake.state()
        .refusals
        .insert(MAPS.to_owned(), vec![(429, busy)]);
    let start = Instant::now();
    cluster
        .http()
        .send(&Call::get(MAPS))
        .await
        .expect("answered in the end");
    assert!(
        start.elapsed() >= Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(fake.asked(MAPS), 2);
}

#[tokio::test]
async fn a_group_that_fails_does_not_hide_the_others() {
    let fake = Fake::default();
    fake.state().old_discovery = true;
    let away = (503, status(503, "ServiceUnavailable", "nobody answers"));
    fake.state()
        .refusals
        .insert("/apis/bad.example/v1".to_owned(), vec![away]);
    let discovery = Discovery::new(fake.cluster().await)
        .await
        .expect("the rest is there");
    let kinds = discovery.kinds();
    assert_eq!(
        kinds.is_namespaced(&GroupKind::new("good.example", "Good")),
        Some(false)
    );
    assert!(
        kinds
            .find("configmap")
            .is_some_and(|k| k.has_subresource("status"))
    );
    assert_eq!(
        kinds.failures,
        [("bad.example/v1".to_owned(), "nobody answers".to_owned())]
    );
    assert_eq!(
        *kinds.api_versions(),
        ["v1".to_owned(), "v1/ConfigMap".to_owned()]
    );
}

#[tokio::test]
async fn s23_of_a_kind_whose_group_fails_it_is_told_why_it_is_not_known() {
    let fake = Fake::default();
    fake.state().old_discovery = true;
    let away = (503, status(503, "ServiceUnavailable", "nobody answers"));
    fake.state()
        .refusals
        .insert("/apis/bad.example/v1".to_owned(), vec![away.clone()]);
    let discovery = Discovery::new(fake.cluster().await)
        .await
        .expect("the rest is there");
    let failure = |gk: GroupKind| discovery.failure(&gk);
    assert_eq!(
        failure(GroupKind::new("bad.example", "Bad")).as_deref(),
        Some("nobody answers")
    );
    assert_eq!(
        [
            failure(GroupKind::new("good.example", "Better")),
            failure(GroupKind::new("", "ConfigMap"))
        ],
        [None, None]
    );
    fake.state().refusals.insert("/apis".to_owned(), vec![away]);
    discovery.refresh().await.expect("the core group answers");
    assert_eq!(
        discovery
            .failure(&GroupKind::new("new.example", "New"))
            .as_deref(),
        Some("nobody answers")
    );
    assert_eq!(
        discovery.failure(&GroupKind::new("good.example", "Good")),
        None,
        "known from before"
    );
}

#[tokio::test]
async fn s24_what_is_refused_as_unauthorized_is_asked_five_times() {
    let asked = |times: usize, code: u16, reason: &'static str| async move {
        let fake = Fake::default();
        fake.state().refusals.insert(
            "/apis".to_owned(),
            vec![(code, status(code, reason, "not now")); times],
        );
        let discovery = Discovery::new(fake.cluster().await)
            .await
            .expect("the core group is there");
        (fake.asked("/apis"), discovery.kinds().failures.len())
    };
    assert_eq!(asked(4, 401, "Unauthorized").await, (5, 0));
    assert_eq!(asked(9, 401, "Unauthorized").await, (5, 1));
    assert_eq!(
        asked(1, 403, "Forbidden").await,
        (1, 1),
        "any other refusal is final"
    );
}

/// What was read before the race was lost is not written a second time.
#[tokio::test]
async fn s36_a_migration_that_loses_a_race_begins_with_what_is_there_now() {
    let migrated = async |races: usize| {
        let fake = Fake::default();
        let map = fake.put("m", "app");
        let managers = json!([{"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "fieldsV1": {}}]);
        fake.state().objects.get_mut("m").expect("put")["metadata"]["managedFields"] = managers;
        let executor = Executor::new(fake.cache().await);
        fake.state().races = races;
        let migrate = Effect::MigrateManagers {
            step: step(&map),
            uid: String::new(),
            manager: "kubectl-client-side-apply".to_owned(),
        };
        let result = executor.run(0, &migrate).await.result;
        let asked = |method: &str| fake.asked(&format!("{method} {NAMED}m"));
        let other =
            |r: &&String| r.starts_with("PATCH ") && !r.ends_with(" application/json-patch+json");
        assert_eq!(
            fake.state().requests.iter().find(other),
            None,
            "managers are only handed over by JSON patches"
        );
        (
            result.map(drop).map_err(|e| e.message),
            asked("GET"),
            asked("PATCH"),
        )
    };
    assert_eq!(migrated(0).await, (Ok(()), 1, 1));
    assert_eq!(migrated(3).await, (Ok(()), 4, 4));
    let (gives_up, _, _) = migrated(100).await;
    assert!(gives_up.is_err_and(|why| why.contains("the object has been modified")));
}

#[tokio::test]
async fn s37_what_comes_together_is_done_at_once() {
    let fake = Fake::default();
    let maps: Vec<Object> = ["a", "b", "c"]
        .iter()
        .map(|name| fake.put(name, "app"))
        .collect();
    let executor = Executor::new(fake.cache().await);
    fake.state().together = Some(Arc::new(Barrier::new(maps.len())));
    let prune = |map: &Object| Effect::Prune {
        step: step(map),
        uid: String::new(),
        propagation: Propagation::Foreground,
    };
    let effects: Vec<Effect> = maps.iter().map(prune).collect();
    let outcomes = tokio::time::timeout(Duration::from_secs(10), executor.run_batch(4, &effects))
        .await
        .expect("none waits for another");
    assert!(outcomes.iter().all(|o| o.result.is_ok()));
    assert_eq!(
        outcomes.iter().map(|o| o.effect).collect::<Vec<_>>(),
        [4, 5, 6],
        "in the order of what was to be done"
    );
}

/// A server with the Good, and what its watch tells.
async fn with_good() -> (Fake, LiveCache) {
    let fake = Fake::default();
    {
        let mut state = fake.state();
        (state.version, state.good) = (1, Some(a_good("v2")));
    }
    let cache = fake.cache().await;
    (fake, cache)
}

/// A write in another version than the one that is watched.
fn release_good() -> Effect {
    let in_v1 = Object::from_value(a_good("v1")).expect("a map");
    Effect::RemoveFinalizer {
        step: step(&in_v1),
        uid: "uid-g".to_owned(),
        finalizer: "example.org/hold".to_owned(),
    }
}

/// Its answer is of no use to the cache, whose watch is of the other version and lags behind.
#[tokio::test]
async fn what_is_written_in_another_version_than_the_watched_one_is_seen_at_once() {
    let (fake, cache) = with_good().await;
    let held = |cache: &LiveCache| {
        let object = cache.object(&good_key()).expect("it is tracked");
        object.finalizers().len()
    };
    assert_eq!(held(&cache), 1);
    let executor = Executor::new(cache.clone());
    let released = executor.run(0, &release_good()).await;
    released.result.expect("released");
    assert_eq!(fake.asked("PATCH /apis/two.example/v1/"), 1);
    assert_eq!(held(&cache), 0);
}

/// The server's answers that an object does not exist, and that its kind is not served, which says
/// nothing about the object.
fn not_found(kind: &str, name: &str) -> [(Value, bool); 2] {
    let mut absent = status(404, "NotFound", &format!("{kind} \"{name}\" not found"));
    absent["details"] = json!({"kind": kind, "name": name});
    let what = "the server could not find the requested resource";
    [(absent, false), (status(404, "NotFound", what), true)]
}

/// Its last finalizer may have been removed by the very write.
#[tokio::test]
async fn what_is_gone_when_it_is_read_again_after_a_write_is_not_kept() {
    for (told, stays) in not_found("goods", "g") {
        let (fake, cache) = with_good().await;
        let read = "/apis/two.example/v2/namespaces/ns/goods/g";
        let answers = vec![(404, told.clone())];
        fake.state().refusals.insert(read.to_owned(), answers);
        let released = Executor::new(cache.clone()).run(0, &release_good()).await;
        released.result.expect("released");
        assert_eq!(fake.asked(&format!("GET {read}")), 1);
        assert_eq!(cache.get(&good_key()).is_some(), stays, "{told}");
    }
}

#[tokio::test]
async fn what_cannot_be_deleted_because_its_kind_is_not_served_is_still_there() {
    for (told, stays) in not_found("configmaps", "a") {
        let fake = Fake::default();
        let object = fake.put("a", "app");
        let cache = fake.cache().await;
        eventually("it is listed", || cache.get(&key("a")).is_some()).await;
        let answers = vec![(404, told.clone())];
        let path = format!("{NAMED}a");
        fake.state().refusals.insert(path.clone(), answers);
        let executor = Executor::new(cache.clone());
        let removed = executor
            .remove(&object.gvk(), &key("a"), object.uid(), "Background")
            .await;
        assert_eq!(removed.is_err(), stays, "{told}");
        assert_eq!(fake.asked(&format!("DELETE {path}")), 1);
        assert_eq!(cache.get(&key("a")).is_some(), stays, "{told}");
    }
}
