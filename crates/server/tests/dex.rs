//! What is passed on to Dex and back, with a server on loopback in Dex's place.

use crate::common::World;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tiphys_server::Options;
use tokio::net::TcpListener;

const CONFIG: &str = "connectors:\n- {type: mockCallback, id: mock, name: Mock}\n";
/// What Dex answers where the sign-in goes on at a provider that speaks SAML.
const PAGE: &str = "<form></form><script>document.forms[0].submit()</script>";

/// What Dex says of itself at `/api/dex/.well-known/openid-configuration`.
const METADATA: &str = r#"{"issuer": "http://cd.example.com/api/dex",
    "authorization_endpoint": "http://cd.example.com/api/dex/auth",
    "token_endpoint": "http://cd.example.com/api/dex/token",
    "jwks_uri": "http://cd.example.com/api/dex/keys"}"#;

/// The headers of the requests that came.
type Seen = Arc<Mutex<Vec<HeaderMap>>>;

fn answer(request: &Request<Incoming>, seen: &Seen) -> Response<Full<Bytes>> {
    let headers = request.headers().clone();
    seen.lock().expect("not poisoned").push(headers);
    let path = request.uri().path();
    let answer = Response::builder();
    let answer = match path {
        "/api/dex/broken" => answer.status(500),
        "/api/dex/strict" => answer.header("content-security-policy", "default-src 'none'"),
        _ => answer
            .header("set-cookie", "dex=1")
            .header("connection", "x-of-that")
            .header("x-of-that", "1")
            .header("proxy-authenticate", "Basic"),
    };
    let is_metadata = path.ends_with("/openid-configuration");
    let text = if is_metadata { METADATA } else { PAGE };
    answer
        .body(Full::new(Bytes::from(text)))
        .expect("an answer")
}

/// The server in Dex's place, and ours, which passes requests on to it.
async fn start() -> (World, Seen) {
    start_with(Options::default()).await
}

async fn start_with(options: Options) -> (World, Seen) {
    start_as(&[], options).await
}

/// With more keys of argocd-cm.
async fn start_as(more: &[(&str, &str)], options: Options) -> (World, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let noted = Arc::clone(&noted);
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let answer = answer(&request, &noted);
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    let settings = [("dex.config", CONFIG), ("url", "http://cd.example.com")];
    let settings = [&settings[..], more].concat();
    let first = World::start_with(&settings, &[]).await;
    let options = Options {
        dex_server: format!("http://{address}"),
        ..options
    };
    (first.again(options).await, seen)
}

/// The status, the headers and the text of an answer.
async fn ask(world: &World, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, String) {
    let mut request = Request::builder()
        .uri(path)
        .header("host", "cd.example.com");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::default()).expect("a request");
    let (parts, body) = world.send(request).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    (parts.status.as_u16(), parts.headers, text)
}

#[tokio::test]
async fn dex_knows_its_clients_and_not_our_sessions() {
    let (world, seen) = start().await;
    for (path, sent, expected) in [
        ("token", "Basic YTpodXNo", Some("Basic YTpodXNo")),
        ("userinfo", "Bearer of-dex", Some("Bearer of-dex")),
        ("token", "Bearer ours", None),
        ("auth", "Bearer ours", None),
        ("auth/userinfo", "Bearer ours", None),
    ] {
        let path = format!("/api/dex/{path}");
        let headers = [
            ("authorization", sent),
            ("token", "ours"),
            ("grpc-metadata-token", "ours"),
            // A browser that speaks HTTP/2 sends each cookie by itself.
            ("cookie", "argocd.token=ours; dex=1"),
            ("cookie", "theme=dark"),
            ("cookie", "argocd.token-1=ours"),
        ];
        let (status, ..) = ask(&world, &path, &headers).await;
        assert_eq!(status, 200, "{path}");
        let got = seen.lock().expect("not poisoned").pop();
        let got = got.expect("it was asked");
        let value = |name: &str| got.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(value("authorization"), expected, "{path}: {sent}");
        assert_eq!(value("cookie"), Some("dex=1; theme=dark"), "{path}");
        for name in ["token", "grpc-metadata-token"] {
            assert_eq!(value(name), None, "{path}");
        }
    }
}

#[tokio::test]
async fn dex_gets_nothing_that_belongs_to_the_connection_or_is_made_up() {
    let (world, seen) = start().await;
    let headers = [
        ("connection", "X-Of-This, keep-alive"),
        ("x-of-this", "1"),
        ("proxy-authorization", "Basic YTpodXNo"),
        ("proxy-connection", "keep-alive"),
        ("trailer", "x-end"),
        ("forwarded", "for=203.0.113.1"),
        ("x-forwarded-for", "203.0.113.1"),
        ("x-forwarded-host", "evil.example.com"),
        ("x-forwarded-proto", "https"),
        ("x-kept", "1"),
    ];
    let (status, answered, _) = ask(&world, "/api/dex/auth", &headers).await;
    assert_eq!(status, 200);
    let got = seen.lock().expect("not poisoned").pop();
    let got = got.expect("it was asked");
    assert_eq!(got["x-kept"], "1");
    for name in headers.iter().map(|(name, _)| *name) {
        assert!(
            name == "x-kept" || !got.contains_key(name),
            "{name}: {got:?}"
        );
    }
    assert_eq!(answered["set-cookie"], "dex=1");
    for name in ["x-of-that", "proxy-authenticate"] {
        assert!(!answered.contains_key(name), "{name}: {answered:?}");
    }
}

/// The page that a SAML connector begins with posts its form by a script.
#[tokio::test]
async fn the_pages_of_dex_may_run_their_scripts() {
    let (world, _) = start().await;
    let (status, headers, text) = ask(&world, "/api/dex/auth/saml", &[]).await;
    assert_eq!((status, &*text), (200, PAGE));
    assert_eq!(headers["content-security-policy"], "frame-ancestors 'self'");
    assert_eq!(headers["set-cookie"], "dex=1");
    let (_, headers, _) = ask(&world, "/api/dex/strict", &[]).await;
    assert_eq!(headers["content-security-policy"], "default-src 'none'");
    let (_, headers, _) = ask(&world, "/", &[]).await;
    let own = headers["content-security-policy"].to_str().expect("text");
    assert!(own.contains("default-src 'self'"), "{own}");
    let options = Options {
        content_security_policy: String::new(),
        ..Options::default()
    };
    let (world, _) = start_with(options).await;
    let (status, headers, _) = ask(&world, "/api/dex/auth/saml", &[]).await;
    assert_eq!(status, 200);
    assert!(!headers.contains_key("content-security-policy"));
}

#[tokio::test]
async fn a_failure_of_dex_is_shown_by_our_page() {
    let (world, _) = start().await;
    let (status, headers, text) = ask(&world, "/api/dex/broken", &[]).await;
    assert_eq!(status, 303, "{text}");
    assert_eq!(headers["location"], "/login?has_sso_error=true");
}

/// `dex.auth.connectorId` spares people the list of connectors.
#[tokio::test]
async fn a_sign_in_goes_to_the_connector_of_the_settings() {
    for (wanted, sent) in [
        ("mock", Some("connector_id=mock")),
        // Dex would refuse it.
        ("other", None),
    ] {
        let more = [("dex.auth.connectorId", wanted)];
        let (world, _) = start_as(&more, Options::default()).await;
        let (status, headers, text) = ask(&world, "/auth/login", &[]).await;
        assert_eq!(status, 303, "{text}");
        let to = headers["location"].to_str().expect("text");
        let (dex, query) = to.split_once('?').expect("a query");
        assert_eq!(dex, "http://cd.example.com/api/dex/auth");
        let connector = query.split('&').find(|p| p.starts_with("connector_id="));
        assert_eq!(connector, sent, "{to}");
    }
}
