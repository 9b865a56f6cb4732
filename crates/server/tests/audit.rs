//! The audit log: what is recorded of calls, and what is not.

use crate::common;

use bytes::Bytes;
use common::{World, app};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;
use std::{fs, io::BufReader, path::Path, time::Duration};
use tiphys_server::{
    Options,
    audit::{AuditOptions, Record, Verdict, chain},
};

const POLICY: &str = "p, role:dev, applications, *, default/*, allow\n\
                      p, role:dev, applications, delete, default/*, deny\n\
                      g, dev, role:dev\n\
                      g, admin, role:admin\n";
const CANARY: &str = "c4n4ry-of-a-secret";

fn options(path: &Path) -> AuditOptions {
    AuditOptions {
        file: Some(path.to_owned()),
        events: true,
    }
}

async fn world(path: &Path) -> World {
    let config = [("accounts.dev", "login, apiKey"), ("policy.csv", POLICY)];
    World::start_audited(&config, options(path)).await
}

fn records(path: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    let log = BufReader::new(fs::File::open(path).expect("a log"));
    chain::verify(log, |record, _| records.push(record)).expect("the chain holds");
    records
}

/// The last record of a call.
fn last(path: &Path, call: &str) -> Record {
    let mut records = records(path).into_iter().rev();
    let found = records.find(|record| record.call.ends_with(call));
    found.unwrap_or_else(|| panic!("no record of {call}"))
}

async fn token_of_dev(world: &World) -> String {
    let path = "/api/v1/account/dev/token";
    let body = json!({"name": "dev", "id": "ci"});
    let created = world.rest(Method::POST, path, Some(body)).await;
    created.1["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn a_change_and_a_refusal_are_one_record_each() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let world = world(&path).await;
    let token = token_of_dev(&world).await;
    let created = world
        .rest_as(
            &token,
            Method::POST,
            "/api/v1/applications",
            Some(app("web")),
        )
        .await;
    assert_eq!(created.0, 200, "{}", created.1);
    let record = last(&path, "/Create");
    let (who, asked) = (&record.who, &record.asked[0]);
    assert_eq!((who.user.as_str(), who.how.as_str()), ("dev", "token"));
    assert_eq!((who.token.as_str(), who.from.as_str()), ("ci", "127.0.0.1"));
    assert_eq!(
        (record.verdict, record.code.as_str()),
        (Verdict::Allowed, "OK")
    );
    assert_eq!(
        [&asked.resource, &asked.action, &asked.object],
        ["applications", "create", "default/web"]
    );
    let rule = "p, role:dev, applications, *, default/*, allow";
    assert_eq!(asked.rule.as_deref(), Some(rule));
    let change = &record.changes[0];
    assert_eq!(
        [&change.done, &change.kind, &change.name],
        ["created", "Application", "web"]
    );
    let project = change.diff.iter().find(|d| d.path == "spec.project");
    assert_eq!(project.map(|d| &d.to), Some(&json!("default")));

    let before = records(&path).len();
    let url = "/api/v1/applications/web";
    let refused = world.rest_as(&token, Method::DELETE, url, None).await;
    assert_eq!(refused.0, 403);
    let record = last(&path, "/Delete");
    assert_eq!(record.verdict, Verdict::Denied);
    let asked = record.asked.last().expect("a permission");
    let rule = "p, role:dev, applications, delete, default/*, deny";
    assert_eq!(
        (asked.permitted, asked.rule.as_deref()),
        (false, Some(rule))
    );
    assert_eq!(
        (records(&path).len(), record.changes.len()),
        (before + 1, 0)
    );

    // What only reads and is permitted is not recorded.
    let read = world.rest_as(&token, Method::GET, url, None).await;
    assert_eq!((read.0, records(&path).len()), (200, before + 1));
    let spec = json!({"destination": {"server": "https://kubernetes.default.svc"},
        "project": "default", "source": {"repoURL": "https://git.example.com/r.git", "path": "other"}});
    let updated = world
        .rest_as(&token, Method::PUT, &format!("{url}/spec"), Some(spec))
        .await;
    assert_eq!(updated.0, 200, "{}", updated.1);
    let record = last(&path, "/UpdateSpec");
    let changed = record.changes[0]
        .diff
        .iter()
        .find(|d| d.path == "spec.source.path");
    assert_eq!(changed.map(|d| d.to.clone()), Some(json!("other")));
}

/// A client cannot cut a change in half, nor keep it from being recorded, by not waiting for it.
#[tokio::test]
async fn a_change_that_its_client_does_not_wait_for_is_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let world = world(&path).await;
    let request = Request::post("/api/v1/applications")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", world.token))
        .header("grpc-timeout", "1n")
        .body(Full::new(Bytes::from(app("web").to_string())));
    world.send(request.expect("a request")).await;
    // Its Event comes last.
    let is_recorded = || {
        let mut events = world.store.recorded().into_iter();
        events.any(|event| event.contains("/application.ApplicationService/Create"))
    };
    let recorded = async {
        while !is_recorded() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let recorded = tokio::time::timeout(Duration::from_secs(60), recorded).await;
    recorded.expect("it is recorded");
    let record = last(&path, "ApplicationService/Create");
    assert_eq!(record.verdict, Verdict::Allowed);
    assert_eq!(record.changes[0].name, "web");
    assert!(world.store.exists("web"));
}

/// Creates `web` until that waits in the store; then the client goes away.
async fn begin_to_create(world: &World) {
    let request = Request::post("/api/v1/applications")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", world.token))
        .body(Full::new(Bytes::from(app("web").to_string())));
    tokio::select! {
        answer = world.send(request.expect("a request")) => {
            panic!("it was answered: {}", answer.status());
        }
        () = world.store.asked_to_create.notified() => {}
    }
}

/// A server that gives what is under way this long when it ends, and its clients hardly any time.
async fn world_that_ends(path: &Path, finish: Duration) -> World {
    let options = Options {
        finish,
        // A test machine may be slow.
        recording: Duration::from_secs(600),
        connections: tiphys_listen::Limits {
            drain: Duration::from_millis(50),
            ..Default::default()
        },
        ..Options::default()
    };
    let config = [("policy.csv", POLICY)];
    World::start_audited_with(&config, self::options(path), options).await
}

#[tokio::test]
async fn a_server_ends_after_the_changes_that_are_under_way() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let mut world = world_that_ends(&path, Duration::from_secs(600)).await;
    let store = world.store.clone();
    let held = store.creating.write().await;
    begin_to_create(&world).await;
    world.stop.cancel();
    let early = tokio::time::timeout(Duration::from_secs(1), &mut world.serving).await;
    assert!(early.is_err(), "the server did not wait: {early:?}");
    drop(held);
    world.ended().await;
    let record = last(&path, "ApplicationService/Create");
    assert_eq!(record.verdict, Verdict::Allowed);
    assert!(world.store.exists("web"));
}

#[tokio::test]
async fn a_change_that_takes_too_long_is_cut_off_and_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let mut world = world_that_ends(&path, Duration::from_millis(10)).await;
    let store = world.store.clone();
    let _held = store.creating.write().await;
    begin_to_create(&world).await;
    world.stop.cancel();
    world.ended().await;
    let record = last(&path, "ApplicationService/Create");
    assert_eq!(record.verdict, Verdict::Failed);
    assert_eq!(record.code, "Aborted");
    assert_eq!(record.who.user, "admin");
    assert!(!world.store.exists("web"));
}

#[tokio::test]
async fn logins_and_strangers_are_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let world = world(&path).await;
    let login = last(&path, "SessionService/Create");
    assert_eq!(
        (login.who.user.as_str(), login.verdict),
        ("admin", Verdict::Allowed)
    );
    let body = json!({"username": "admin", "password": CANARY});
    let refused = world
        .rest_as("", Method::POST, "/api/v1/session", Some(body))
        .await;
    assert_eq!(refused.0, 401);
    let login = last(&path, "SessionService/Create");
    assert_eq!(
        (login.who.user.as_str(), login.verdict),
        ("admin", Verdict::Denied)
    );
    let refused = world
        .rest_as("", Method::GET, "/api/v1/applications", None)
        .await;
    assert_eq!(refused.0, 401);
    let stranger = last(&path, "ApplicationService/List");
    assert_eq!(
        (stranger.who.user.as_str(), stranger.who.how.as_str()),
        ("", "none")
    );
    assert_eq!(stranger.code, "Unauthenticated");
    // And no end of them.
    for _ in 0..100 {
        world
            .rest_as("", Method::GET, "/api/v1/applications", None)
            .await;
    }
    assert!(records(&path).len() < 80, "{}", records(&path).len());
}

#[tokio::test]
async fn no_secret_is_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let world = world(&path).await;
    let url = format!("https://user:{CANARY}@git.example.com/r.git");
    let mut with_secrets = app("web");
    with_secrets["spec"]["source"]["helm"] = json!({
        "values": format!("password: {CANARY}"),
        "parameters": [{"name": "password", "value": CANARY}],
    });
    with_secrets["spec"]["source"]["repoURL"] = url.into();
    for (method, path, body) in [
        (
            Method::POST,
            "/api/v1/repositories",
            json!({"repo": "https://git.example.com/r.git", "username": "u", "password": CANARY}),
        ),
        (
            Method::POST,
            "/api/v1/repocreds",
            json!({"url": "https://git.example.com", "sshPrivateKey": CANARY}),
        ),
        (Method::POST, "/api/v1/applications", with_secrets),
        (
            Method::PUT,
            "/api/v1/account/password",
            json!({"name": "admin", "currentPassword": CANARY, "newPassword": CANARY}),
        ),
        (
            Method::POST,
            "/api/v1/session",
            json!({"username": "admin", "password": CANARY}),
        ),
    ] {
        world.rest(method, path, Some(body)).await;
    }
    let token = token_of_dev(&world).await;
    let text = fs::read_to_string(&path).expect("a log");
    assert!(text.contains("RepositoryService") && text.contains("UpdatePassword"));
    assert!(!text.contains(CANARY), "{text}");
    assert!(
        !text.contains(&token) && !text.contains(&world.token),
        "{text}"
    );
}

#[tokio::test]
async fn events_are_the_second_witness() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let world = world(&path).await;
    world
        .rest(Method::POST, "/api/v1/applications", Some(app("web")))
        .await;
    let log = BufReader::new(fs::File::open(&path).expect("a log"));
    let head = chain::verify(log, |_, _| {}).expect("the chain holds");
    let events = world.store.recorded();
    let mut audited = events.iter().rev();
    let event = audited.find(|e| e.starts_with("AuditAllowed argocd-cm: admin"));
    let event = event.expect("an Event");
    assert!(
        event.contains("/application.ApplicationService/Create"),
        "{event}"
    );
    assert!(
        event.contains(&format!("{}:{}", head.seq, head.hash)),
        "{event}"
    );
}

#[tokio::test]
async fn no_server_starts_without_its_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("audit");
    let _world = world(&path).await;
    // Another server's.
    let begun = World::try_audited(options(&path));
    assert!(begun.is_err_and(|e| e.to_string().contains("in use by another process")));
    let begun = World::try_audited(options(dir.path()));
    assert!(begun.is_err_and(|e| e.to_string().contains("cannot be opened")));
}
