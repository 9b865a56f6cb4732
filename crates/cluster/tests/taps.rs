//! Objects that one watch in this process covers are not watched a second time; on an embedded API
//! server.

use crate::common;

use common::{DEFINITIONS, definitions};
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tiphys_apimachinery::{Object, ResourceKey};
use tiphys_cluster::{
    CacheOptions, Cluster, Discovery, Error, LiveCache, Records, RecordsOptions, Settings,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tokio::time::{Instant, sleep};
use tower::Service;

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const MAPS: &str = "/api/v1/namespaces/argocd/configmaps";
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, a connection to it, and the watches that were requested.
struct Ground {
    _kube: EmbeddedKube,
    own: Cluster,
    watches: Arc<Mutex<Vec<String>>>,
    /// No one may read Applications.
    broken: Arc<AtomicBool>,
    /// What every patch is answered with, and 404.
    missing: Arc<Mutex<Option<Value>>>,
    /// The responses to patches wait until it is false.
    held: Arc<AtomicBool>,
}

impl Ground {
    async fn new() -> Self {
        let kube = EmbeddedKube::start(Options::default())
            .await
            .expect("it starts");
        let (router, watches) = (kube.router(), Arc::new(Mutex::new(Vec::new())));
        let (seen, broken) = (watches.clone(), Arc::new(AtomicBool::new(false)));
        let breaks = broken.clone();
        let missing: Arc<Mutex<Option<Value>>> = Arc::default();
        let says = missing.clone();
        let held: Arc<AtomicBool> = Arc::default();
        let holds = held.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let uri = request.uri().to_string();
            if uri.contains("watch=true") {
                seen.lock()
                    .expect("no test panics while holding it")
                    .push(uri);
            }
            let (mut router, holds) = (router.clone(), holds.clone());
            let is_patch = request.method() == http::Method::PATCH;
            let said = says
                .lock()
                .expect("no test panics while holding it")
                .clone();
            let said = said.filter(|_| is_patch);
            let broken =
                breaks.load(Ordering::SeqCst) && request.uri().path().ends_with("/applications");
            let wanted = if broken || said.is_some() {
                Request::get("/none")
                    .body(Body::empty())
                    .expect("a request")
            } else {
                request
            };
            async move {
                let mut response = router.call(wanted).await?;
                while is_patch && holds.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(10)).await;
                }
                if let Some(status) = said {
                    *response.body_mut() = status.to_string().into();
                    response.headers_mut().remove(http::header::CONTENT_LENGTH);
                    *response.status_mut() = http::StatusCode::NOT_FOUND;
                }
                if broken {
                    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                }
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let own = Cluster::connect_in_process(service, "https://kubernetes.default.svc")
            .await
            .expect("it answers");
        let ground = Self {
            _kube: kube,
            own,
            watches,
            broken,
            missing,
            held,
        };
        for crd in definitions() {
            ground.create(DEFINITIONS, &crd).await;
        }
        for name in ["argocd", "team"] {
            ground
                .create(
                    "/api/v1/namespaces",
                    &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
                )
                .await;
        }
        let metadata =
            json!({"name": "argocd-cm", "labels": {"app.kubernetes.io/part-of": "argocd"}});
        ground
            .create(
                MAPS,
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
            )
            .await;
        ground
    }

    async fn create(&self, path: &str, object: &Value) {
        let call = Call::new(http::Method::POST, path).with_body(JSON, object.to_string());
        self.own.http().send(&call).await.expect("created");
    }

    async fn application(&self, namespace: &str, name: &str) {
        let spec = json!({"project": "default", "destination": {}, "source": {"repoURL": "https://git.example.com/a"}});
        let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        self.create(&APPLICATIONS.replace("argocd", namespace), &object)
            .await;
    }

    async fn cache(&self) -> LiveCache {
        let cache = LiveCache::start(
            Discovery::new(self.own.clone()).await.expect("discovery"),
            CacheOptions::default(),
        );
        cache.wait_ready().await;
        cache
    }

    fn watches_of(&self, resource: &str) -> usize {
        self.watches
            .lock()
            .expect("no test panics while holding it")
            .iter()
            .filter(|uri| uri.contains(resource))
            .count()
    }
}

fn application(namespace: &str, name: &str) -> ResourceKey {
    ResourceKey::new("argoproj.io", "Application", namespace, name)
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn applications_are_watched_once() {
    let ground = Ground::new().await;
    ground.application("argocd", "before").await;
    let records = Records::start(ground.own.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records can be read");
    let cache = ground.cache().await;
    assert!(cache.get(&application("argocd", "before")).is_some());
    ground.application("argocd", "own").await;
    ground.application("team", "other").await;
    until("both are known", || {
        cache.get(&application("argocd", "own")).is_some()
            && cache.get(&application("team", "other")).is_some()
    })
    .await;
    let version = || {
        cache
            .get(&application("argocd", "own"))
            .map(|live| live.resource_version)
    };
    let before = version();
    let patch = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    let path = format!("{APPLICATIONS}/own");
    ground
        .own
        .http()
        .send(&Call::new(http::Method::PATCH, &path).with_body(MERGE_PATCH, patch))
        .await
        .expect("patched");
    until("the change is known", || version() != before).await;
    ground
        .own
        .http()
        .send(&Call::new(http::Method::DELETE, &path))
        .await
        .expect("deleted");
    until("the deletion is known", || {
        cache.get(&application("argocd", "own")).is_none()
    })
    .await;
    assert_eq!(
        ground.watches_of("/applications?"),
        2,
        "one of the namespace, one of the others"
    );
    assert_eq!(
        ground.watches_of("/applications?fieldSelector=metadata.namespace"),
        1
    );
    // Without the records the cache starts its own watch.
    drop(records);
    until("there is a watch more", || {
        ground.watches_of("/namespaces/argocd/applications?") == 2
    })
    .await;
    ground.application("argocd", "after").await;
    until("it is known", || {
        cache.get(&application("argocd", "after")).is_some()
    })
    .await;
    assert!(
        cache.get(&application("argocd", "before")).is_some()
            && cache.get(&application("team", "other")).is_some()
    );
}

#[tokio::test]
async fn what_was_not_told_is_listed() {
    let ground = Ground::new().await;
    let tap = ground.own.taps().tap("/api/v1/configmaps", "argocd");
    let cache = ground.cache().await;
    let named = |name: &str| ResourceKey::new("", "ConfigMap", "argocd", name);
    assert!(cache.get(&named("argocd-cm")).is_some());
    ground
        .create(
            MAPS,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}),
        )
        .await;
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
    ground.create(&MAPS.replace("argocd", "team"), &other).await;
    until("the other one is known", || {
        cache
            .get(&ResourceKey::new("", "ConfigMap", "team", "new"))
            .is_some()
    })
    .await;
    assert!(cache.get(&named("new")).is_none(), "nobody told of it");
    tap.anew("");
    until("it is known", || cache.get(&named("new")).is_some()).await;
    assert!(
        cache
            .get(&ResourceKey::new("", "ConfigMap", "team", "new"))
            .is_some(),
        "the list was not of its namespace"
    );
}

#[tokio::test]
async fn records_that_cannot_be_followed_are_a_problem_until_they_can() {
    let ground = Ground::new().await;
    ground.broken.store(true, Ordering::SeqCst);
    let records = Records::start(ground.own.clone(), RecordsOptions::new("argocd"));
    until("it is said", || {
        records
            .problem()
            .is_some_and(|why| why.starts_with("applications cannot be followed: "))
    })
    .await;
    ground.broken.store(false, Ordering::SeqCst);
    records.wait_ready().await.expect("the records can be read");
    assert_eq!(records.problem(), None);
}

/// Whoever decides by the records would write to it again and again.
#[tokio::test]
async fn a_record_that_the_server_does_not_have_is_forgotten() {
    let ground = Ground::new().await;
    ground.application("argocd", "a").await;
    let records = Records::start(ground.own.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records can be read");
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let status = |details: Value| {
        json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
            "reason": "NotFound", "message": "not found", "details": details,
        })
    };
    for (details, stays) in [
        (json!({}), true),
        (json!({"kind": "namespaces", "name": "argocd"}), true),
        (json!({"kind": "applications", "name": "b"}), true),
        (json!({"kind": "applications", "name": "a"}), false),
    ] {
        *ground.missing.lock().expect("no panic") = Some(status(details.clone()));
        let answer = records.applications.merge_patch("argocd", "a", &patch);
        assert!(answer.await.is_err_and(|e| e.is_not_found()));
        let known = records.applications.get("argocd", "a");
        assert_eq!(known.is_some(), stays, "{details}");
    }
}

/// It is not read a second time: whoever wrote it gets the record that the watch has stored.
#[tokio::test]
async fn a_response_that_the_watch_has_overtaken_is_the_record_that_is_known() {
    let ground = Ground::new().await;
    ground.application("argocd", "a").await;
    let records = Records::start(ground.own.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records can be read");
    let applications = &records.applications;
    let known = || applications.get("argocd", "a").expect("it is known");
    let before = known();
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    ground.held.store(true, Ordering::SeqCst);
    let told = async {
        until("the watch has told it", || !Arc::ptr_eq(&known(), &before)).await;
        ground.held.store(false, Ordering::SeqCst);
        known()
    };
    let (written, told) = tokio::join!(applications.merge_patch("argocd", "a", &patch), told);
    let written = written.expect("it is written");
    assert_eq!(written.meta.labels.get("a").map(String::as_str), Some("b"));
    assert!(Arc::ptr_eq(&written, &told), "it was read again");
    assert!(Arc::ptr_eq(&written, &known()), "it was stored again");
    // A patch that changes nothing has the same version as what was known before it.
    let same = applications.merge_patch("argocd", "a", &patch).await;
    let same = same.expect("it is accepted");
    assert_eq!(same.meta.resource_version, told.meta.resource_version);
    assert!(Arc::ptr_eq(&told, &known()), "nothing has changed");
}

/// The path of a record without a name is that of all of them.
#[tokio::test]
async fn what_has_no_name_is_neither_read_nor_deleted() {
    let ground = Ground::new().await;
    ground.application("argocd", "a").await;
    let records = Records::start(ground.own.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records can be read");
    let applications = &records.applications;
    let read = applications.fetch("argocd", "").await;
    assert!(read.expect("nothing is asked").is_none());
    let deleted = applications.delete("argocd", "", "", "").await;
    assert!(
        matches!(&deleted, Err(Error::Invalid { key, .. }) if key == "metadata.name"),
        "{deleted:?}"
    );
    let left = applications.fetch("argocd", "a").await;
    assert!(left.expect("it can be read").is_some());
}

/// Who adds a repository and then an Application of it must not find the repository unknown.
#[tokio::test]
async fn settings_contain_what_was_written_before() {
    let ground = Ground::new().await;
    let records = Records::start(ground.own.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records can be read");
    let url = |round: usize| format!("https://git.example/{round}.git");
    let secret = |round: usize| {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": format!("repo-{round}"), "namespace": "argocd",
                "labels": {"argocd.argoproj.io/secret-type": "repository"},
            },
            "stringData": {"url": url(round), "password": "p"},
        }))
        .expect("a map")
    };
    // Again and again: the reading that follows a change must not be taken for a later one's.
    for round in 0..5 {
        let created = records.secrets.create(&secret(round)).await;
        created.expect("it can be created");
        records.settle().await;
        let known = |settings: &Settings| settings.repository(&url(round), "").is_some();
        assert!(known(&records.settings()), "{round}");
        let name = format!("repo-{round}");
        let deleted = records.secrets.delete("argocd", &name, "", "").await;
        deleted.expect("it can be deleted");
        records.settle().await;
        assert!(!known(&records.settings()), "{round}");
    }
}
