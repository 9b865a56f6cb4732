//! The transports: connections and TLS (`listen`, `tls`), gRPC and gRPC-web (`grpc`), REST
//! (`rest`). They use the table, but know no individual calls.

mod authority;
mod grpc;
mod gzip;
pub mod listen;
mod rest;
pub mod source;
pub mod tls;
pub mod token;
pub mod unix;

use crate::Role;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use std::{convert::Infallible, net::IpAddr, sync::Arc};
use tonic::body::Body;

/// Answers one request of any kind.
async fn handle<S: Role>(
    state: Arc<S>,
    peer: IpAddr,
    mut request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let source = source::of(peer, request.headers(), state.trusted_proxies());
    strip_root(state.root_path(), &mut request);
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
        text(StatusCode::OK, "ok\n")
    } else {
        match state.other(request).await {
            Ok(response) => response,
            Err(request) => rest::handle(state.clone(), source, request).await,
        }
    };
    secure(response.headers_mut(), state.headers());
    Ok(response)
}

/// A plain-text response.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// The caller's span (W3C Trace Context).
fn traceparent(headers: &HeaderMap) -> Option<&str> {
    headers
        .get("traceparent")
        .and_then(|value| value.to_str().ok())
}

fn secure(headers: &mut HeaderMap, over: &[(HeaderName, HeaderValue)]) {
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
    for (name, value) in over {
        if value.is_empty() {
            headers.remove(name);
        } else {
            headers.insert(name, value.clone());
        }
    }
}

/// Removes the path prefix, if the request has it.
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
