//! Which calls are public and which need a login.

use crate::common;

use bytes::Bytes;
use common::{PASSWORD, World};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tiphys_api::{meta::Empty, rpc::version::VersionMessage};
use tiphys_rpc::table::Rest;
use tiphys_server::{access::Access, auth::Claims, table::table};

fn expired() -> String {
    let claims = Claims::session(
        "admin",
        60,
        jiff::Timestamp::now() - jiff::SignedDuration::from_hours(2),
    );
    let key = jsonwebtoken::EncodingKey::from_secret(b"signing key");
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("it signs")
}

/// An example path of the call, with a value for each variable.
fn example_path(rest: &Rest) -> String {
    rest.pattern
        .to_string()
        .split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[tokio::test]
async fn every_route_wants_a_session_that_is_valid() {
    let world = World::start().await;
    let expired = expired();
    let mut checked = 0;
    for call in table()
        .calls()
        .iter()
        .filter(|c| c.access != Access::Public)
    {
        for rest in &call.rest {
            for (token, why) in [
                (None, "no session information"),
                (Some("garbage.garbage.garbage"), "invalid session"),
                (Some(&*expired), "expired"),
            ] {
                let mut request = Request::builder()
                    .method(rest.method.clone())
                    .uri(example_path(rest))
                    .header("content-type", "application/json");
                if let Some(token) = token {
                    request = request.header("authorization", format!("Bearer {token}"));
                }
                let response = world
                    .send(
                        request
                            .body(Full::new(Bytes::from("{}")))
                            .expect("a request"),
                    )
                    .await;
                assert_eq!(response.status(), 401, "{} {token:?}", call.rpc);
                let body: Value = serde_json::from_slice(
                    &response
                        .into_body()
                        .collect()
                        .await
                        .expect("a body")
                        .to_bytes(),
                )
                .expect("JSON");
                // Streams have an error of their own form.
                let of_stream = &body["error"];
                let (code, error) = match of_stream["grpc_code"].is_null() {
                    true => (&body["code"], of_stream),
                    false => (&of_stream["grpc_code"], &of_stream["message"]),
                };
                assert_eq!(code, 16);
                assert!(
                    error.as_str().expect("text").contains(why),
                    "{} {body}",
                    call.rpc
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

#[tokio::test]
async fn every_rpc_wants_a_session_too() {
    let mut world = World::start().await;
    world.token = "garbage".into();
    let table = table();
    for call in table.calls() {
        let rpc: &'static str = Box::leak(call.rpc.clone().into_boxed_str());
        let status = world.grpc::<Empty, Empty>(rpc, Empty {}).await.err();
        let refused = status
            .as_ref()
            .is_some_and(|s| s.code() == tonic::Code::Unauthenticated);
        let login = call.rpc == "/session.SessionService/Create";
        assert_eq!(
            refused,
            call.access != Access::Public || login,
            "{rpc} {status:?}"
        );
    }
}

#[tokio::test]
async fn settings_are_read_again_as_soon_as_they_have_another_version() {
    let world = World::start().await;
    let version = |version: &str| {
        let mut versions = world.store.versions.lock().expect("not poisoned");
        *versions = Some(vec![version.to_owned()]);
    };
    let url = async || {
        let (status, found) = world.rest(Method::GET, "/api/v1/settings", None).await;
        assert_eq!(status, 200, "{found}");
        found["url"].clone()
    };
    version("1");
    world.store.configure("url", "https://one.example.com");
    assert_eq!(url().await, "https://one.example.com");
    world.store.configure("url", "https://two.example.com");
    assert_eq!(url().await, "https://one.example.com");
    version("2");
    assert_eq!(url().await, "https://two.example.com");
    // Where versions are not known, they may always be others.
    *world.store.versions.lock().expect("not poisoned") = None;
    world.store.configure("url", "https://three.example.com");
    assert_eq!(url().await, "https://three.example.com");
}

#[tokio::test]
async fn an_unknown_rpc_is_named() {
    let world = World::start().await;
    let status = world
        .grpc::<Empty, Empty>("/some.Service/Method", Empty {})
        .await
        .expect_err("no such call");
    assert_eq!(
        (status.code(), status.message()),
        (tonic::Code::Unimplemented, "unknown service some.Service")
    );
    let status = world
        .grpc::<Empty, Empty>("/version.VersionService/Method", Empty {})
        .await
        .expect_err("no such call");
    assert_eq!(
        status.message(),
        "unknown method Method for service version.VersionService"
    );
    assert_eq!(
        world.rest(Method::GET, "/api/v1/nothing", None).await.0,
        404
    );
}

#[tokio::test]
async fn the_version_is_public_and_health_is_served() {
    let mut world = World::start().await;
    world.token.clear();
    world.token.push('x');
    world
        .grpc::<Empty, VersionMessage>("/version.VersionService/Version", Empty {})
        .await
        .expect("public");
    world.server.ready().await;
    assert_eq!(
        world.rest(Method::GET, "/healthz", None).await,
        (200, json!("ok\n"))
    );
    for (path, status) in [("/", 200), ("/applications", 404)] {
        assert_eq!(
            world.rest(Method::GET, path, None).await.0,
            status,
            "{path}"
        );
    }
    let page = Request::get("/applications").header("accept", "text/html");
    let page = world
        .send(page.body(Full::default()).expect("a request"))
        .await;
    assert_eq!(page.status(), 200);
}

#[tokio::test]
async fn failed_logins_are_limited_and_say_nothing() {
    let world = World::start().await;
    let login = |password: &str, name: &str| {
        let body = json!({"username": name, "password": password});
        let world = &world;
        async move {
            world
                .rest(Method::POST, "/api/v1/session", Some(body))
                .await
        }
    };
    let refused = |answer: (u16, Value)| {
        assert_eq!(
            (answer.0, answer.1["error"].as_str()),
            (401, Some("Invalid username or password"))
        )
    };
    refused(login("x", "nobody").await);
    for _ in 0..5 {
        refused(login("wrong", "admin").await);
    }
    refused(login(PASSWORD, "admin").await);
    assert_eq!(
        login("", "admin").await.1["error"],
        "no credentials supplied"
    );
}

#[tokio::test]
async fn logging_out_ends_the_session() {
    let world = World::start().await;
    assert_eq!(
        world
            .rest(Method::GET, "/api/v1/session/userinfo", None)
            .await
            .1,
        json!({"loggedIn": true, "username": "admin", "iss": "argocd"})
    );
    assert_eq!(
        world.rest(Method::DELETE, "/api/v1/session", None).await.0,
        200
    );
    let (status, body) = world.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (
            401,
            Some("invalid session: token is revoked, please re-login")
        )
    );
}

#[tokio::test]
async fn the_cookie_is_strict_and_forms_are_refused() {
    let world = World::start().await;
    let body = json!({"username": "admin", "password": PASSWORD}).to_string();
    let request = Request::post("/api/v1/session")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let response = world.send(request).await;
    let cookie = response.headers()["set-cookie"]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(
        cookie.starts_with("argocd.token=")
            && cookie.contains("SameSite=lax")
            && cookie.contains("httpOnly"),
        "{cookie}"
    );
    for (name, value) in [
        ("x-frame-options", "sameorigin"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    assert!(response.headers().contains_key("content-security-policy"));
    let pair = cookie.split(';').next().expect("a pair").to_owned();
    let read = Request::get("/api/v1/applications")
        .header("cookie", &pair)
        .body(Full::default())
        .expect("a request");
    assert_eq!(world.send(read).await.status(), 200);
    for kind in ["application/x-www-form-urlencoded", "text/plain"] {
        let form = Request::post("/api/v1/applications")
            .header("cookie", &pair)
            .header("content-type", kind);
        assert_eq!(
            world
                .send(form.body(Full::new(Bytes::from("{}"))).expect("a request"))
                .await
                .status(),
            415,
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_new_password_replaces_the_old_one() {
    let world = World::start().await;
    let change = async |current: &str, new: &str| {
        let body = json!({"currentPassword": current, "newPassword": new});
        let (status, body) = world
            .rest(Method::PUT, "/api/v1/account/password", Some(body))
            .await;
        (
            status,
            body["error"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(
        change("wrong", "long enough").await,
        (400, "current password does not match".into())
    );
    assert_eq!(
        change(PASSWORD, "short").await,
        (
            500,
            "new password does not match the following expression: ^.{8,32}$".into()
        )
    );
    assert_eq!(change(PASSWORD, "long enough").await.0, 200);
    let login = json!({"username": "admin", "password": "long enough"});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/session", Some(login))
            .await
            .0,
        200
    );
    let old = json!({"username": "admin", "password": PASSWORD});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/session", Some(old))
            .await
            .0,
        401
    );
}

#[tokio::test]
async fn a_changed_password_ends_sessions_from_before() {
    let world = World::start().await;
    assert_eq!(
        world
            .rest(Method::GET, "/api/v1/applications", None)
            .await
            .0,
        200
    );
    let later = (jiff::Timestamp::now() + jiff::SignedDuration::from_mins(1)).to_string();
    let changed = [("admin.passwordMtime".to_owned(), later.into_bytes())].into();
    tiphys_server::ports::Store::set_in_secret(world.store.as_ref(), "argocd-secret", &changed)
        .await
        .expect("stored");
    // A login reloads the settings.
    let wrong = json!({"username": "admin", "password": "wrong"});
    assert_eq!(
        world
            .rest(Method::POST, "/api/v1/session", Some(wrong))
            .await
            .0,
        401
    );
    let (status, body) = world.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (
            401,
            Some("invalid session: account password has changed since token issued")
        )
    );
}

#[tokio::test]
async fn strangers_cannot_send_much() {
    let mut world = World::start().await;
    world.token.clear();
    let (status, body) = world
        .rest(
            Method::POST,
            "/api/v1/session",
            Some(json!({"username": "x".repeat(100_000)})),
        )
        .await;
    assert_eq!(status, 400, "{body}");
    assert!(
        body["error"]
            .as_str()
            .expect("text")
            .contains("cannot read the body"),
        "{body}"
    );
}

#[tokio::test]
async fn a_stranger_cannot_nest_a_query_deeply() {
    let mut world = World::start().await;
    world.token.clear();
    let name = vec!["a"; 12_000].join(".");
    for (query, what) in [
        (format!("{name}=1"), "the name of a query parameter"),
        (format!("fields={name}"), "a path in fields"),
    ] {
        let (status, body) = world
            .rest(Method::GET, &format!("/api/version?{query}"), None)
            .await;
        assert_eq!(
            (status, body["error"].as_str()),
            (400, Some(&*format!("{what} has more than 32 parts")))
        );
    }
    assert_eq!(
        world
            .rest(Method::GET, "/api/version?fields=Version", None)
            .await
            .0,
        200
    );
}
