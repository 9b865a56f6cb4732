//! The end of sessions, and rate limits for failed logins.

use crate::common;

use async_trait::async_trait;
use bytes::Bytes;
use common::{PASSWORD, World, app};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tiphys_api::{application::ApplicationWatchEvent, rpc::application::ApplicationQuery};
use tiphys_server::{
    ApiError, Options,
    auth::Claims,
    ports::{SecretRecord, SharedSessions, Store as _},
};
use tokio_stream::StreamExt as _;

/// Timeout to detect hangs.
const HANGS: Duration = Duration::from_secs(60);
const REVOKED: &str = "tiphys-revoked-sessions";
const WATCH: &str = "/application.ApplicationService/Watch";

/// Opens a watch over REST, runs `end`, and returns the last line.
async fn last_line(world: &World, end: impl Future<Output = ()>) -> String {
    let request = Request::get("/api/v1/stream/applications")
        .header("authorization", format!("Bearer {}", world.token));
    let response = world
        .send(request.body(Full::<Bytes>::default()).expect("a request"))
        .await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let first = body
        .frame()
        .await
        .expect("a message")
        .expect("it comes")
        .into_data()
        .expect("data");
    assert!(
        first.starts_with(b"{\"result\":{\"type\":\"ADDED\""),
        "{first:?}"
    );
    end.await;
    let rest = tokio::time::timeout(HANGS, body.collect())
        .await
        .expect("the stream ends")
        .expect("it is read")
        .to_bytes();
    String::from_utf8_lossy(&rest)
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

async fn with_an_app() -> World {
    let world = World::start().await;
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/applications", Some(app("a")))
            .await
            .0,
        200
    );
    world
}

#[tokio::test]
async fn logging_out_ends_streams() {
    let world = with_an_app().await;
    let mut grpc = world
        .grpc_stream::<ApplicationQuery, ApplicationWatchEvent>(WATCH, ApplicationQuery::default())
        .await;
    grpc.next().await.expect("a message").expect("it comes");
    let line = last_line(&world, async {
        assert_eq!(
            world.rest(Method::DELETE, "/api/v1/session", None).await.0,
            200
        );
    });
    let line: Value = serde_json::from_str(&line.await).expect("JSON");
    assert_eq!(
        line["error"]["message"], "invalid session: token is revoked, please re-login",
        "{line}"
    );
    let ended = tokio::time::timeout(HANGS, grpc.next())
        .await
        .expect("the stream ends")
        .expect("it says why");
    assert_eq!(
        ended.expect_err("an end").code(),
        tonic::Code::Unauthenticated
    );
}

#[tokio::test]
async fn a_new_password_ends_streams_and_tokens_at_once() {
    let mut world = with_an_app().await;
    let line = last_line(&world, async {
        let body = json!({"currentPassword": PASSWORD, "newPassword": "long enough"});
        assert_eq!(
            world
                .rest(Method::PUT, "/api/v1/account/password", Some(body))
                .await
                .0,
            200
        );
    });
    let line = line.await;
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        line["error"]["message"],
        "invalid session: account password has changed since token issued",
        "{line}"
    );
    assert_eq!(
        world
            .rest(Method::GET, "/api/v1/applications", None)
            .await
            .0,
        401
    );
    // A login in the same second is valid.
    let login = json!({"username": "admin", "password": "long enough"});
    let (_, session) = world
        .rest(Method::POST, "/api/v1/session", Some(login))
        .await;
    world.token = session["token"].as_str().expect("a token").to_owned();
    assert_eq!(
        world
            .rest(Method::GET, "/api/v1/applications", None)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn expiry_ends_streams() {
    let mut world = with_an_app().await;
    let claims = Claims::session("admin", 2, jiff::Timestamp::now());
    let key = jsonwebtoken::EncodingKey::from_secret(b"signing key");
    world.token =
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("it signs");
    let line: Value = serde_json::from_str(&last_line(&world, async {}).await).expect("JSON");
    assert_eq!(
        line["error"]["message"], "invalid session: token has invalid claims: token is expired",
        "{line}"
    );
}

#[tokio::test]
async fn a_logout_outlasts_a_restart_and_holds_for_other_replicas() {
    let first = World::start().await;
    let second = first.again(Options::default()).await;
    assert_eq!(
        second
            .rest(Method::GET, "/api/v1/applications", None)
            .await
            .0,
        200
    );
    assert_eq!(
        first.rest(Method::DELETE, "/api/v1/session", None).await.0,
        200
    );
    let third = first.again(Options::default()).await;
    let (status, body) = third.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (
            401,
            Some("invalid session: token is revoked, please re-login")
        )
    );
    // A running replica notices it when it reloads its settings; a login makes it do so.
    let login = json!({"username": "admin", "password": PASSWORD});
    assert_eq!(
        second
            .rest(Method::POST, "/api/v1/session", Some(login))
            .await
            .0,
        200
    );
    assert_eq!(
        second
            .rest(Method::GET, "/api/v1/applications", None)
            .await
            .0,
        401
    );
}

#[tokio::test]
async fn a_logout_that_cannot_be_recorded_at_once_is_recorded_later() {
    let world = World::start().await;
    *world.store.refused_secrets.lock().expect("not poisoned") = 1;
    let ended = world.rest(Method::DELETE, "/api/v1/session", None).await;
    assert_eq!(ended.0, 200, "{}", ended.1);
    let other = world.again(Options::default()).await;
    let refused = other.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(refused.0, 401, "{}", refused.1);
}

/// What still could not be recorded is recorded by a later round.
#[tokio::test]
async fn a_logout_that_could_not_be_recorded_at_all_is_recorded_in_the_end() {
    let world = World::start().await;
    *world.store.refused_secrets.lock().expect("not poisoned") = 3;
    let ended = world.rest(Method::DELETE, "/api/v1/session", None).await;
    assert_ne!(ended.0, 200, "{}", ended.1);
    let recorded = async {
        while world.store.secret(REVOKED).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let recorded = tokio::time::timeout(HANGS, recorded).await;
    assert!(recorded.is_ok(), "it is not recorded");
    let other = world.again(Options::default()).await;
    let refused = other.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(refused.0, 401, "{}", refused.1);
}

#[tokio::test]
async fn a_server_that_stops_records_what_it_could_not_record_before() {
    let mut world = World::start().await;
    *world.store.refused_secrets.lock().expect("not poisoned") = 3;
    let ended = world.rest(Method::DELETE, "/api/v1/session", None).await;
    assert_ne!(ended.0, 200, "{}", ended.1);
    world.stop.cancel();
    world.ended().await;
    assert!(world.store.secret(REVOKED).await.is_ok());
}

/// Here the logout is still under way when the server stops, and fails after that.
#[tokio::test]
async fn a_server_that_stops_records_what_the_last_logout_could_not_record() {
    let first = World::start().await;
    let options = Options {
        finish: HANGS,
        connections: tiphys_listen::Limits {
            drain: Duration::from_millis(1),
            ..Default::default()
        },
        ..Options::default()
    };
    let mut world = first.again(options).await;
    let store = world.store.clone();
    let refused = || *store.refused_secrets.lock().expect("not poisoned");
    *store.refused_secrets.lock().expect("not poisoned") = 3;
    let is_under_way = async {
        while refused() == 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let request = Request::delete("/api/v1/session")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", world.token))
        .body(Full::default());
    tokio::select! {
        answer = world.send(request.expect("a request")) => {
            panic!("it was answered: {}", answer.status());
        }
        begun = tokio::time::timeout(HANGS, is_under_way) => begun.expect("it begins"),
    }
    world.stop.cancel();
    world.ended().await;
    assert_eq!(refused(), 0);
    assert!(store.secret(REVOKED).await.is_ok());
}

/// A Redis that hangs.
struct Silent;

#[async_trait]
impl SharedSessions for Silent {
    fn is_revoked(&self, _: &str) -> bool {
        false
    }

    async fn revoke(&self, _: &str, _: i64) -> Result<(), ApiError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_logout_is_recorded_before_a_redis_that_hangs_is_told() {
    let first = World::start().await;
    let world = first.again_with_sessions(Arc::new(Silent)).await;
    let recorded = async {
        while world.store.secret(REVOKED).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        (status, body) = world.rest(Method::DELETE, "/api/v1/session", None) => {
            panic!("it was answered: {status} {body}");
        }
        recorded = tokio::time::timeout(HANGS, recorded) => {
            assert!(recorded.is_ok(), "it is not recorded");
        }
    }
    let other = first.again(Options::default()).await;
    let refused = other.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(refused.0, 401, "{}", refused.1);
}

#[tokio::test]
async fn logouts_at_several_servers_at_a_time_are_all_recorded() {
    let world = World::start().await;
    // Enough for those that are over to be removed.
    let mut data: BTreeMap<_, _> = (0..300)
        .map(|n| (format!("old-{n}"), b"1".to_vec()))
        .collect();
    data.insert("kept".to_owned(), i64::MAX.to_string().into_bytes());
    let record = SecretRecord {
        name: REVOKED.to_owned(),
        data,
        ..SecretRecord::default()
    };
    world.store.put_secret(&record).await.expect("it is stored");
    *world.store.conflicts.lock().expect("not poisoned") = 2;
    let ended = world.rest(Method::DELETE, "/api/v1/session", None).await;
    assert_eq!(ended.0, 200, "{}", ended.1);
    let record = world.store.secret(REVOKED).await.expect("a record").data;
    // One is of this logout.
    assert_eq!(record.len(), 4, "{:?}", record.keys());
    for id in ["kept", "other-0", "other-1"] {
        assert!(record.contains_key(id), "{id}");
    }
}

/// Anybody can begin logins, and those whose clients went away must not queue for their checks.
#[tokio::test]
async fn a_login_that_its_client_does_not_wait_for_goes_no_further() {
    let world = World::start().await;
    // Checked much slower than the client's timer runs.
    let hash = bcrypt::hash(PASSWORD, 10).expect("it hashes");
    let hash = BTreeMap::from([("admin.password".to_owned(), hash.into_bytes())]);
    let stored = world.store.set_in_secret("argocd-secret", &hash).await;
    stored.expect("it is stored");
    let body = json!({"username": "admin", "password": PASSWORD});
    let request = Request::post("/api/v1/session")
        .header("content-type", "application/json")
        .header("grpc-timeout", "1n")
        .body(Full::new(Bytes::from(body.to_string())));
    let cut = world.send(request.expect("a request")).await;
    assert_eq!(cut.status(), 504);
    let login = world.rest_as("", Method::POST, "/api/v1/session", Some(body));
    assert_eq!(login.await.0, 200);
    // The other one is that of the start.
    let text = world.server.metrics();
    let line = r#"argocd_login_request_total{status="success"} 2"#;
    assert!(text.lines().any(|l| l == line), "{text}");
}

/// A login that a proxy passes on.
async fn login(world: &World, client: &str, password: &str) -> u16 {
    let body = json!({"username": "admin", "password": password}).to_string();
    let request = Request::post("/api/v1/session")
        .header("content-type", "application/json")
        .header("x-forwarded-for", client);
    world
        .send(
            request
                .body(Full::new(Bytes::from(body)))
                .expect("a request"),
        )
        .await
        .status()
        .as_u16()
}

#[tokio::test]
async fn behind_a_trusted_proxy_wrong_passwords_lock_out_only_who_gave_them() {
    let options = Options {
        trusted_proxies: vec!["127.0.0.0/8".parse().expect("a network")],
        ..Options::default()
    };
    let world = World::start().await.again(options).await;
    for _ in 0..6 {
        assert_eq!(login(&world, "203.0.113.1", "wrong").await, 401);
    }
    assert_eq!(login(&world, "203.0.113.1", PASSWORD).await, 401);
    assert_eq!(login(&world, "203.0.113.2", PASSWORD).await, 200);
    // Addresses claimed by the client itself are not trusted.
    assert_eq!(
        login(&world, "203.0.113.2, 203.0.113.1", PASSWORD).await,
        401
    );
}

#[tokio::test]
async fn what_a_stranger_claims_to_be_is_not_believed() {
    let world = World::start().await;
    for n in 0..6 {
        assert_eq!(login(&world, &format!("203.0.113.{n}"), "wrong").await, 401);
    }
    assert_eq!(login(&world, "203.0.113.9", PASSWORD).await, 401);
}

#[tokio::test]
async fn calls_and_logins_are_counted() {
    let world = World::start().await;
    world.rest(Method::GET, "/api/v1/applications", None).await;
    world
        .rest(Method::GET, "/api/v1/applications/none", None)
        .await;
    let wrong = json!({"username": "admin", "password": "wrong"});
    world
        .rest(Method::POST, "/api/v1/session", Some(wrong))
        .await;
    let text = world.server.metrics();
    for line in [
        r#"grpc_server_handled_total{grpc_code="OK",grpc_method="List",grpc_service="application.ApplicationService",grpc_type="unary"} 1"#,
        r#"grpc_server_handled_total{grpc_code="PermissionDenied",grpc_method="Get",grpc_service="application.ApplicationService",grpc_type="unary"} 1"#,
        r#"grpc_server_msg_received_total{grpc_method="Create",grpc_service="session.SessionService",grpc_type="unary"} 2"#,
        r#"grpc_server_msg_sent_total{grpc_method="Create",grpc_service="session.SessionService",grpc_type="unary"} 2"#,
        r#"grpc_server_started_total{grpc_method="Create",grpc_service="session.SessionService",grpc_type="unary"} 2"#,
        r#"argocd_login_request_total{status="failure"} 1"#,
        r#"argocd_login_request_total{status="success"} 1"#,
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
}
