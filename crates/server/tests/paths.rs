//! How paths are read, who answers them, and which clients are served.

use crate::common::{PASSWORD, World};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

#[tokio::test]
async fn an_address_in_a_path_may_be_escaped_twice() {
    let world = World::start().await;
    for path in [
        "/api/v1/clusters/https%3A%2F%2Fkubernetes.default.svc",
        "/api/v1/clusters/https%253A%252F%252Fkubernetes.default.svc",
    ] {
        let (status, cluster) = world.rest(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {cluster}");
        assert_eq!(cluster["server"], "https://kubernetes.default.svc");
    }
    let asked = "/api/v1/account/can-i/clusters/get/https%3A%2F%2Fkubernetes.default.svc";
    let (status, answer) = world.rest(Method::GET, asked, None).await;
    assert_eq!((status, answer["value"].as_str()), (200, Some("yes")));
}

/// Elsewhere than where Argo CD unescapes a second time, an escape may be part of a name.
#[tokio::test]
async fn what_is_no_address_is_unescaped_once() {
    let policy = "p, bob, applications, get, default/web, allow\n\
                  p, bob, applications, get, default%2Fapi, allow\n";
    let hash = bcrypt::hash(PASSWORD, 4).expect("it hashes");
    let world = World::start_by_policy(
        &[("accounts.bob", "login"), ("policy.csv", policy)],
        &[("accounts.bob.password", hash.as_str())],
    )
    .await;
    let body = json!({"username": "bob", "password": PASSWORD});
    let (_, session) = world
        .rest_as("", Method::POST, "/api/v1/session", Some(body))
        .await;
    let token = session["token"].as_str().expect("a token");
    for (object, want) in [
        ("default%2Fweb", "yes"),
        ("default%252Fweb", "no"),
        ("default%252Fapi", "yes"),
    ] {
        let path = format!("/api/v1/account/can-i/applications/get/{object}");
        let (status, answer) = world.rest_as(token, Method::GET, &path, None).await;
        assert_eq!(
            (status, answer["value"].as_str()),
            (200, Some(want)),
            "{object}"
        );
    }
}

/// As Argo CD's gateway reads it: the path is decoded before it is divided.
#[tokio::test]
async fn the_last_part_of_a_question_takes_the_rest() {
    let world = World::start_by_policy(&[], &[]).await;
    let restart = "action%2Fapps%2FDeployment%2Frestart";
    for (asked, want) in [
        // `action` of `apps/Deployment/restart/default/web`, which is no Application.
        (format!("applications/{restart}/default%2Fweb"), "no"),
        (String::from("applications/get/default%2Fweb"), "yes"),
    ] {
        let path = format!("/api/v1/account/can-i/{asked}");
        let (status, answer) = world.rest(Method::GET, &path, None).await;
        let got = answer["value"].as_str();
        assert_eq!((status, got), (200, Some(want)), "{asked}");
    }
}

#[tokio::test]
async fn without_an_identity_provider_its_paths_are_the_pages() {
    let world = World::start().await;
    for (method, path, said, is_pages) in [
        (Method::GET, "/auth/login", "404 page not found\n", true),
        (Method::GET, "/auth/callback", "404 page not found\n", true),
        (Method::GET, "/api/dex/keys", "Not Found\n", false),
        // What browsers ask before they send a call from another site.
        (
            Method::OPTIONS,
            "/application.ApplicationService/Get",
            "404 page not found\n",
            true,
        ),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Full::default()).expect("a request");
        let answer = world.send(request).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.headers().contains_key("x-robots-tag"), is_pages);
        let text = answer.into_body().collect().await.expect("a body");
        assert_eq!(text.to_bytes(), said, "{path}");
    }
}

#[tokio::test]
async fn clients_that_are_too_old_are_told_so() {
    let world = World::start().await;
    for (agent, code) in [
        ("argocd-client/v3.6.0", "0"),
        ("argocd-client/v1.3.0", "9"),
        ("argocd-client/abc", "3"),
    ] {
        let request = Request::post("/version.VersionService/Version")
            .header("content-type", "application/grpc-web+proto")
            .header("user-agent", agent)
            .body(Full::new(Bytes::from_static(&[0; 5])))
            .expect("a request");
        let answer = world.send(request).await;
        let status = answer.headers().get("grpc-status").cloned();
        let body = answer.into_body().collect().await.expect("a body");
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        let is_it = status.is_some_and(|status| status == code)
            || body.contains(&format!("grpc-status:{code}"));
        assert!(is_it, "{agent}: {body:?}");
    }
}

/// Nothing of the stream has begun.
#[tokio::test]
async fn a_stream_whose_query_cannot_be_read_is_refused_as_any_call() {
    let world = World::start().await;
    let logs = "/api/v1/applications/a/logs";
    let unreadable = format!("{logs}?tailLines=x");
    let (status, answer) = world.rest(Method::GET, &unreadable, None).await;
    let why = r#"strconv.ParseInt: parsing "x": invalid syntax"#;
    let refused = json!({"error": why, "message": why, "code": 3});
    assert_eq!((status, answer), (400, refused));
    let (status, answer) = world.rest(Method::GET, logs, None).await;
    assert_eq!((status, &answer["error"]["grpc_code"]), (403, &json!(7)));
}

/// Kubernetes would take the path of an object without a name for that of all of them.
#[tokio::test]
async fn what_has_no_name_is_neither_read_nor_deleted() {
    let world = World::start().await;
    let why = "resource name may not be empty";
    for (method, path, why) in [
        (Method::GET, "/api/v1/projects/", why.to_owned()),
        (Method::DELETE, "/api/v1/projects/", why.to_owned()),
        (
            Method::DELETE,
            "/api/v1/applicationsets/",
            format!("error getting ApplicationSets: {why}"),
        ),
    ] {
        let (status, answer) = world.rest(method, path, None).await;
        assert_eq!(status, 500, "{path}: {answer}");
        assert_eq!(
            (&answer["code"], &answer["error"]),
            (&json!(2), &json!(why))
        );
    }
}

/// As Go's gateway does it: it reads the message before it encodes it.
#[tokio::test]
async fn what_is_wrong_in_a_message_is_told_before_what_it_lacks() {
    let world = World::start().await;
    let lacks = |name: &str| {
        format!(r#"grpc: error while marshaling: proto: required field "{name}" not set"#)
    };
    for (body, code, why) in [
        (
            json!({"patch": 5}),
            3,
            "json: cannot unmarshal number into Go struct field ApplicationPatchRequest.patch of \
             type string"
                .to_owned(),
        ),
        (json!({"patch": "{}"}), 13, lacks("patchType")),
        (
            json!({"patchType": "merge", "patch": null}),
            13,
            lacks("patch"),
        ),
    ] {
        let path = "/api/v1/applications/a";
        let (_, answer) = world.rest(Method::PATCH, path, Some(body)).await;
        assert_eq!(
            (&answer["code"], &answer["error"]),
            (&json!(code), &json!(why))
        );
    }
}
