//! How requests come in: connections and TLS (`listen`, `tls`), gRPC and gRPC-web (`grpc`), REST
//! (`rest`). Knows the table, but no call by name except login and logout, whose token is also a
//! cookie.

mod grpc;
pub mod listen;
mod rest;
mod session;
pub mod source;
pub mod tls;

use crate::{assets, auth::Caller, server::State, webhook};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use std::{convert::Infallible, net::IpAddr, sync::Arc};
use tonic::body::Body;

/// A request message has at most this many bytes, in either encoding.
const MAX_REQUEST: usize = 16 * 1024 * 1024;
/// Of somebody who is not logged in.
const MAX_PUBLIC_REQUEST: usize = 64 * 1024;

fn max_request(caller: &Caller) -> usize {
    if caller.logged_in() {
        MAX_REQUEST
    } else {
        MAX_PUBLIC_REQUEST
    }
}

/// Answers one request of any kind.
async fn handle(
    state: Arc<State>,
    peer: IpAddr,
    mut request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let source = source::of(peer, request.headers(), &state.options.trusted_proxies);
    strip_root(&state.options.root_path, &mut request);
    let content_type = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let mut response = if content_type.starts_with("application/grpc-web") {
        return Ok(grpc::handle_web(state, source, request).await);
    } else if content_type.starts_with("application/grpc") {
        return Ok(grpc::handle(state, source, request).await);
    } else if request.uri().path() == "/healthz" {
        assets::text(StatusCode::OK, "ok\n")
    } else if request.uri().path() == webhook::PATH {
        webhook::handle(state, request).await
    } else if request.uri().path().starts_with("/api/") {
        rest::handle(state, source, request).await
    } else if matches!(*request.method(), http::Method::GET | http::Method::HEAD) {
        state.assets.respond(request.uri().path())
    } else {
        assets::text(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n")
    };
    secure(response.headers_mut());
    Ok(response)
}

/// The span of whoever asks (W3C Trace Context).
fn traceparent(headers: &HeaderMap) -> Option<&str> {
    headers
        .get("traceparent")
        .and_then(|value| value.to_str().ok())
}

fn secure(headers: &mut HeaderMap) {
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'self'",
        ),
        ("x-frame-options", "sameorigin"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Takes the path prefix off, if the request has it.
fn strip_root(root: &str, request: &mut Request<Body>) {
    let root = root.trim_matches('/');
    if root.is_empty() {
        return;
    }
    let rest = request
        .uri()
        .path_and_query()
        .and_then(|p| p.as_str().strip_prefix('/')?.strip_prefix(root));
    let rest = match rest {
        Some("") => "/".to_owned(),
        Some(rest) if rest.starts_with('/') => rest.to_owned(),
        _ => return,
    };
    if let Ok(uri) = rest.parse() {
        *request.uri_mut() = uri;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_path_is_optional() {
        for (root, path, want) in [
            ("", "/argo/x", "/argo/x"),
            ("/argo", "/argo/x?y=1", "/x?y=1"),
            ("argo/", "/argo", "/"),
            ("argo", "/argonaut", "/argonaut"),
            ("argo", "/x", "/x"),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.parse().expect("a path");
            strip_root(root, &mut request);
            assert_eq!(request.uri().to_string(), want, "{root} {path}");
        }
    }
}
