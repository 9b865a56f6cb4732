//! Watches that send only what changes, and go on where another one ended.

use super::{APPS, WATCH, create};
use crate::common::{World, app};
use futures::StreamExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tiphys_api::{
    application::{ApplicationDelta, ApplicationWatchEvent},
    rpc::application::ApplicationQuery,
};
use tiphys_server::Options;
use tonic::Streaming;

/// Timeout to detect hangs.
const HANGS: Duration = Duration::from_secs(60);
const DEV_PASSWORD: &str = "another password";

struct Watch(Streaming<ApplicationWatchEvent>);

impl Watch {
    async fn begin(world: &World, token: &str, resume: Option<&str>) -> Self {
        let query = ApplicationQuery {
            delta: Some(true),
            resume: resume.map(str::to_owned),
            ..ApplicationQuery::default()
        };
        Self(world.grpc_stream_as(token, WATCH, query).await)
    }

    async fn next(&mut self) -> ApplicationWatchEvent {
        tokio::time::timeout(HANGS, self.0.next())
            .await
            .expect("in time")
            .expect("open")
            .expect("an event")
    }

    /// The next event as type and name, and what it says about changes.
    async fn said(&mut self) -> (String, ApplicationDelta) {
        let event = self.next().await;
        let name = &event.application.metadata.name;
        let said = format!("{} {name}", event.type_).trim_end().to_owned();
        (said, event.delta.expect("a delta"))
    }

    /// Reads the whole state and returns the token after it.
    async fn whole(&mut self, names: &[&str]) -> String {
        for name in names {
            let (said, delta) = self.said().await;
            assert_eq!(said, format!("ADDED {name}"));
            assert_eq!(delta, ApplicationDelta::default());
        }
        self.bookmark().await
    }

    async fn bookmark(&mut self) -> String {
        let (said, delta) = self.said().await;
        assert_eq!(said, "BOOKMARK");
        assert_ne!(delta.resume, "");
        delta.resume
    }
}

fn healthy() -> Value {
    json!({"status": {"health": {"status": "Healthy"}}})
}

async fn delete(world: &World, name: &str) {
    let path = format!("{APPS}/{name}?cascade=false");
    let (status, body) = world.rest(Method::DELETE, &path, None).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn after_the_whole_state_only_changes_come() {
    let world = World::start().await;
    create(&world, "a").await;
    create(&world, "b").await;
    let mut watch = Watch::begin(&world, &world.token, None).await;
    let first = watch.next().await;
    assert_eq!(first.application.spec.project, "default");
    watch.whole(&["b"]).await;
    world.store.control("a", &healthy());
    let event = watch.next().await;
    let delta = event.delta.expect("a delta");
    assert_eq!(event.type_, "MODIFIED");
    assert_eq!(delta.changed, ["metadata.resourceVersion", "status.health"]);
    assert_ne!(delta.resume, "");
    let app = event.application;
    assert_eq!(app.status.health.status, "Healthy");
    assert_eq!((&*app.metadata.name, &*app.spec.project), ("a", ""));
    // What is unset is named, and absent.
    world
        .store
        .control("a", &json!({"metadata": {"labels": null}}));
    let event = watch.next().await;
    let delta = event.delta.expect("a delta");
    let changed = ["metadata.labels", "metadata.resourceVersion"];
    let mut sorted = delta.changed;
    sorted.sort_unstable();
    assert_eq!(sorted, changed);
    assert!(event.application.metadata.labels.is_empty());
    create(&world, "c").await;
    let event = watch.next().await;
    assert_eq!(event.type_, "ADDED");
    assert_eq!(event.application.spec.project, "default");
    delete(&world, "b").await;
    loop {
        // A finalizer may go first.
        let event = watch.next().await;
        assert_eq!(event.application.metadata.name, "b");
        assert_eq!(event.application.spec.project, "");
        if event.type_ == "DELETED" {
            break;
        }
    }
}

#[tokio::test]
async fn another_watch_goes_on_with_what_was_missed() {
    let world = World::start().await;
    for name in ["changed", "deleted", "kept"] {
        create(&world, name).await;
    }
    let mut watch = Watch::begin(&world, &world.token, None).await;
    let resume = watch.whole(&["changed", "deleted", "kept"]).await;
    drop(watch);
    world.store.control("changed", &healthy());
    delete(&world, "deleted").await;
    create(&world, "new").await;
    let mut watch = Watch::begin(&world, &world.token, Some(&resume)).await;
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    // What the server has not heard of yet is told later.
    while told.get("deleted").is_none_or(|word| word != "DELETED") || told.len() < 3 {
        let event = watch.next().await;
        let delta = event.delta.expect("a delta");
        let app = event.application;
        match event.type_.as_str() {
            "BOOKMARK" => continue,
            "ADDED" => assert_eq!(app.metadata.name, "new"),
            _ => assert_eq!(app.spec.project, "", "{delta:?}"),
        }
        if app.metadata.name == "changed" {
            assert!(delta.changed.contains(&"status.health".to_owned()));
            assert!(!delta.changed.contains(&"status.resources".to_owned()));
        }
        told.insert(app.metadata.name.clone(), event.type_);
    }
    let told: Vec<_> = told.iter().map(|(name, word)| (&**name, &**word)).collect();
    let want = [
        ("changed", "MODIFIED"),
        ("deleted", "DELETED"),
        ("new", "ADDED"),
    ];
    assert_eq!(told, want);
}

#[tokio::test]
async fn a_watch_that_missed_nothing_is_told_so() {
    let world = World::start().await;
    create(&world, "a").await;
    let mut watch = Watch::begin(&world, &world.token, None).await;
    let resume = watch.whole(&["a"]).await;
    drop(watch);
    let mut watch = Watch::begin(&world, &world.token, Some(&resume)).await;
    assert_eq!(watch.bookmark().await, resume);
}

#[tokio::test]
async fn a_place_that_is_not_known_is_expired() {
    let world = World::start().await;
    create(&world, "a").await;
    let mut watch = Watch::begin(&world, &world.token, None).await;
    let resume = watch.whole(&["a"]).await;
    let other = world.again(Options::default()).await;
    create(&other, "b").await;
    let mut watch = Watch::begin(&other, &other.token, Some(&resume)).await;
    let (said, delta) = watch.said().await;
    assert_eq!((&*said, &*delta.resume), ("EXPIRED", ""));
    assert_eq!(watch.said().await.0, "ADDED a");
    // Other names than the client knew: the query is another one.
    let query = ApplicationQuery {
        name: Some("b".into()),
        resume: Some(resume),
        ..ApplicationQuery::default()
    };
    let mut watch = Watch(world.grpc_stream(WATCH, query).await);
    assert_eq!(watch.said().await.0, "EXPIRED");
    let path = "/api/v1/stream/applications?resume=nonsense";
    let (status, refused) = world.rest(Method::GET, path, None).await;
    assert_eq!(status, 400, "{refused}");
}

/// A server whose `dev` may see Applications of the project `default`, and a session of theirs.
async fn with_dev() -> (World, String) {
    let hash = bcrypt::hash(DEV_PASSWORD, 4).expect("it hashes");
    let config = [
        ("accounts.dev", "login"),
        (
            "policy.csv",
            "p, dev, applications, get, default/*, allow\n",
        ),
    ];
    let secrets = [("accounts.dev.password", hash.as_str())];
    let world = World::start_by_policy(&config, &secrets).await;
    let body = json!({"username": "dev", "password": DEV_PASSWORD});
    let session = world.rest_as("", Method::POST, "/api/v1/session", Some(body));
    let dev = session.await.1["token"]
        .as_str()
        .expect("a token")
        .to_owned();
    (world, dev)
}

#[tokio::test]
async fn what_one_loses_sight_of_looks_deleted() {
    let (world, dev) = with_dev().await;
    for name in ["db", "moved", "web"] {
        create(&world, name).await;
    }
    let mut watch = Watch::begin(&world, &dev, None).await;
    let before = watch.whole(&["db", "moved", "web"]).await;
    world
        .store
        .control("moved", &json!({"spec": {"project": "other"}}));
    let event = watch.next().await;
    assert_eq!(event.type_, "DELETED");
    assert_eq!(event.application.metadata.name, "moved");
    assert_eq!(event.application.spec.project, "");
    // It stays out of sight.
    world.store.control("moved", &healthy());
    let policy = "p, dev, applications, get, default/web, allow\n";
    world.store.configure("policy.csv", policy);
    let (_, list) = world.rest_as(&dev, Method::GET, APPS, None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    // The next change of anything shows that the policy is another one.
    world
        .store
        .control("moved", &json!({"metadata": {"labels": null}}));
    assert_eq!(watch.said().await.0, "DELETED db");
    let mut resumed = Watch::begin(&world, &dev, Some(&before)).await;
    assert_eq!(resumed.said().await.0, "EXPIRED");
    assert_eq!(resumed.said().await.0, "ADDED web");
}

/// The lines of a stream over REST.
struct Lines {
    body: hyper::body::Incoming,
    read: Vec<u8>,
}

impl Lines {
    async fn of(world: &World, path: &str) -> Self {
        let request = http::Request::get(path)
            .header("authorization", format!("Bearer {}", world.token))
            .body(Default::default());
        let response = world.send(request.expect("a request")).await;
        assert_eq!(response.status(), 200);
        Self {
            body: response.into_body(),
            read: Vec::new(),
        }
    }

    /// The event of the next line.
    async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let mut line: Value = serde_json::from_slice(&line).expect("JSON");
                return line["result"].take();
            }
            let frame = tokio::time::timeout(HANGS, self.body.frame()).await;
            let frame = frame.expect("in time").expect("open").expect("a frame");
            self.read.extend(frame.into_data().expect("data"));
        }
    }
}

#[tokio::test]
async fn fields_select_from_changes_as_from_whole_applications() {
    let world = World::start().await;
    let mut wanted = app("a");
    wanted["metadata"]["annotations"] = json!({"kept": "1"});
    let (status, created) = world.rest(Method::POST, APPS, Some(wanted)).await;
    assert_eq!(status, 200, "{created}");
    let path = "/api/v1/stream/applications?delta=true&fields=result.type,result.delta,\
                result.application.metadata.name,result.application.status.health.status";
    let mut lines = Lines::of(&world, path).await;
    let first = lines.next().await;
    assert_eq!(first["type"], "ADDED");
    assert_eq!(first["application"]["metadata"], json!({"name": "a"}));
    assert_eq!(first["application"].get("spec"), None);
    let second = lines.next().await;
    assert_eq!(second["type"], "BOOKMARK");
    assert_eq!(second["application"], json!({}));
    world.store.control("a", &healthy());
    let third = lines.next().await;
    assert_eq!(third["type"], "MODIFIED");
    let application = json!({
        "metadata": {"name": "a"}, "status": {"health": {"status": "Healthy"}},
    });
    assert_eq!(third["application"], application);
    let changed = json!(["metadata.resourceVersion", "status.health"]);
    assert_eq!(third["delta"]["changed"], changed);
    let token = third["delta"]["resume"].as_str().expect("a token");
    // Without `fields`, a change has nothing but what is named.
    world.store.control("a", &json!({"spec": {"project": "p"}}));
    let path = format!("/api/v1/stream/applications?resume={token}");
    let mut lines = Lines::of(&world, &path).await;
    let mut event = lines.next().await;
    while event["type"] == "BOOKMARK" {
        event = lines.next().await;
    }
    let app = &event["application"];
    assert_eq!(app["spec"], json!({"project": "p"}), "{event}");
    assert_eq!(app.get("status"), None, "{event}");
}
