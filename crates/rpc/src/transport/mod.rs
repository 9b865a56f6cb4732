//! The transports: connections and TLS (`listen`, `tls`), gRPC and gRPC-web (`grpc`), REST
//! (`rest`). They use the table, but know no individual calls.

mod authority;
mod deadline;
mod grpc;
mod gzip;
pub mod listen;
mod reflection;
mod rest;
pub mod source;
pub mod tls;
pub mod token;
pub mod unix;

use crate::{Role, table::percent_decode};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use http_body_util::Full;
use source::Source;
use std::{convert::Infallible, fmt::Write as _, net::IpAddr, sync::Arc};
use tonic::body::Body;

/// Answers one request of any kind.
async fn handle<S: Role>(
    state: Arc<S>,
    peer: IpAddr,
    mut request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let source = source::of(peer, request.headers(), state.trusted_proxies());
    request.extensions_mut().insert(Source(source));
    let content_type = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let is_web = content_type.starts_with("application/grpc-web");
    // It needs HTTP/2; over HTTP/1, a request with its content type is one like others.
    let is_grpc = content_type.starts_with("application/grpc")
        && !is_web
        && request.version() == Version::HTTP_2;
    let is_below = strip_root(state.root_path(), &mut request);
    // Probes and clients of gRPC, which has no paths, know nothing of a prefix.
    if !is_below && !is_grpc && request.uri().path() != "/healthz" {
        return Ok(missing_page());
    }
    if !is_grpc && !is_web {
        if !state.keeps_escapes(request.uri().path()) {
            unescape(&mut request);
        } else if state.unescapes_twice(request.uri().path())
            && let Some(uri) = escaped_once(request.uri())
        {
            *request.uri_mut() = uri;
        }
    }
    let mut response = if let Some(clean) = clean(request.uri()) {
        return Ok(redirect(StatusCode::TEMPORARY_REDIRECT, &clean));
    } else if is_web {
        return Ok(grpc::handle_web(state, source, request).await);
    } else if is_grpc {
        return Ok(grpc::handle(state, source, request).await);
    } else if request.uri().path() == "/healthz" {
        health(state.as_ref(), request.uri()).await
    } else {
        match state.other(request).await {
            Ok(response) => response,
            Err(request) => rest::handle(state.clone(), source, request).await,
        }
    };
    secure(state.as_ref(), response.headers_mut());
    Ok(response)
}

/// Whether the role should get requests; with `full=true`, whether it can answer them, too.
async fn health<S: Role>(state: &S, uri: &Uri) -> Response<Body> {
    let mut asked = uri.query().unwrap_or_default().split('&');
    let is_full = asked.find(|part| part.starts_with("full=")) == Some("full=true");
    match state.health(is_full).await {
        Ok(()) => text(StatusCode::OK, "ok\n"),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, why.text()),
    }
}

/// Bytes of a path that need no escape.
const PLAIN: &[u8] = b"/-._~!$&'()*+,;=:@";

/// Replaces escapes of the path by what they stand for, as Go's servers route: an escaped slash
/// divides it then.
fn unescape(request: &mut Request<Body>) {
    let uri = request.uri();
    if !uri.path().contains('%') {
        return;
    }
    let mut path = String::new();
    for byte in percent_decode(uri.path()).bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
}

/// A path that was escaped twice, as some clients of Argo CD do with URLs in it, escaped once. All
/// its escapes are then those of percent signs.
fn escaped_once(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let mut escapes = path.split('%').skip(1).peekable();
    escapes.peek()?;
    if !escapes.all(|rest| rest.starts_with("25")) {
        return None;
    }
    let mut once = path.replace("%25", "%");
    if let Some(query) = uri.query() {
        once.push('?');
        once.push_str(query);
    }
    once.parse().ok()
}

/// The target of a request whose path has empty segments or dots, without them.
fn clean(uri: &Uri) -> Option<String> {
    let path = uri.path();
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let mut clean = format!("/{}", kept.join("/"));
    if path.ends_with('/') && clean != "/" {
        clean.push('/');
    }
    if clean == path || !path.starts_with('/') {
        return None;
    }
    if let Some(query) = uri.query() {
        clean = format!("{clean}?{query}");
    }
    Some(clean)
}

/// An answer that sends a client elsewhere, as Go's servers write it.
pub fn redirect(status: StatusCode, to: &str) -> Response<Body> {
    let shown = to
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;");
    let name = status.canonical_reason().unwrap_or_default();
    let mut response = text(status, format!("<a href=\"{shown}\">{name}</a>.\n\n"));
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, html);
    match HeaderValue::from_str(to) {
        Ok(to) => {
            headers.insert(header::LOCATION, to);
            response
        }
        Err(_) => text(StatusCode::BAD_REQUEST, "no valid address\n"),
    }
}

/// The answer where there is nothing.
fn missing_page() -> Response<Body> {
    let mut response = text(StatusCode::NOT_FOUND, "404 page not found\n");
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The response, compressed if the client accepts that.
pub fn compressed(accepts: &HeaderMap, mut response: Response<Body>) -> Response<Body> {
    let vary = HeaderValue::from_static("Accept-Encoding");
    response.headers_mut().insert(header::VARY, vary);
    match gzip::accepted(accepts) {
        Some(coding) => gzip::compressed(coding, response),
        None => response,
    }
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

/// Headers for browsers. An answer keeps those that it has.
fn secure<S: Role>(state: &S, headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", state.content_security_policy()),
        ("x-frame-options", state.frame_options()),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value)
            && !value.is_empty()
        {
            headers.entry(name).or_insert(value);
        }
    }
}

/// Removes the path prefix; false if the request does not have it.
fn strip_root(root: &str, request: &mut Request<Body>) -> bool {
    let root = root.trim_matches('/');
    if root.is_empty() {
        return true;
    }
    let rest = request
        .uri()
        .path_and_query()
        .and_then(|p| p.as_str().strip_prefix('/')?.strip_prefix(root));
    let rest = match rest {
        Some("") => "/".to_owned(),
        Some(rest) if rest.starts_with('/') => rest.to_owned(),
        _ => return false,
    };
    match rest.parse() {
        Ok(uri) => {
            *request.uri_mut() = uri;
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_below_the_root_path() {
        for (root, path, want, is_below) in [
            ("", "/argo/x", "/argo/x", true),
            ("/argo", "/argo/x?y=1", "/x?y=1", true),
            ("argo/", "/argo", "/", true),
            ("argo", "/argonaut", "/argonaut", false),
            ("argo", "/x", "/x", false),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.parse().expect("a path");
            assert_eq!(strip_root(root, &mut request), is_below, "{root} {path}");
            assert_eq!(request.uri().to_string(), want, "{root} {path}");
        }
    }

    #[test]
    fn escapes_of_a_path_are_what_they_stand_for() {
        for (path, want) in [
            ("/%61pi/v1?x=%2F", "/api/v1?x=%2F"),
            ("/a/b%2Fc", "/a/b/c"),
            ("/a%20b/%C3%A9", "/a%20b/%C3%A9"),
            ("/a%2525", "/a%2525"),
            ("/a%zz", "/a%25zz"),
            ("/a/%2e%2e/b", "/a/../b"),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.parse().expect("a path");
            unescape(&mut request);
            assert_eq!(request.uri().to_string(), want, "{path}");
        }
    }

    #[test]
    fn a_path_escaped_twice_is_one_escaped_once() {
        for (path, want) in [
            (
                "/a/https%253A%252F%252Fb?c=%2525",
                Some("/a/https%3A%2F%2Fb?c=%2525"),
            ),
            ("/a/https%3A%2F%2Fb", None),
            ("/a/https%3A%2F%2Fb%2520c", None),
            ("/a/b", None),
        ] {
            let uri: Uri = path.parse().expect("a path");
            let once = escaped_once(&uri).map(|uri| uri.to_string());
            assert_eq!(once.as_deref(), want, "{path}");
        }
    }

    #[test]
    fn paths_are_made_clean() {
        for (path, want) in [
            ("/", None),
            ("/a/b/", None),
            ("/a%2F%2Fb?c=//", None),
            ("//a", Some("/a")),
            ("/a//b?c=1", Some("/a/b?c=1")),
            ("/../../etc/passwd", Some("/etc/passwd")),
            ("/a/./b/..", Some("/a")),
            ("/a/../", Some("/")),
        ] {
            let uri: Uri = path.parse().expect("a path");
            assert_eq!(clean(&uri).as_deref(), want, "{path}");
        }
    }
}
