//! `/api/dex`, which is passed on to the Dex server: browsers and other programs see its pages
//! below this server's address.

use crate::{
    sign_in::{on_one_line, provider, redirect},
    sso::DEX_PATH,
    state::State,
};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE},
};
use http_body_util::{BodyExt as _, Limited};
use std::sync::Arc;
use tiphys_rpc::{TOKEN_METADATA, text};
use tonic::body::Body;

const MAX_REQUEST: usize = 1 << 20;
const MAX_ANSWER: usize = 8 * MAX_REQUEST;
/// Headers that belong to one connection, and the cookies, of which Dex gets its own.
const KEPT_BACK: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "keep-alive",
    "te",
    "trailer",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-connection",
    "cookie",
];
/// Bytes of an error of Dex in the log.
const MAX_ERROR: usize = 4096;
/// Dex's pages have scripts in them, such as the one that posts the form of a SAML connector; the
/// policy of our own page would stop them.
const POLICY: &str = "frame-ancestors 'self'";

type Answer = Response<Body>;

/// Passes a request on.
pub async fn handle(state: Arc<State>, request: Request<Body>) -> Answer {
    let nothing = || text(StatusCode::NOT_FOUND, "Not Found\n");
    let (config, provider, _) = match provider(&state).await {
        Ok(found) => found,
        Err(answer) if answer.status() == StatusCode::NOT_FOUND => return nothing(),
        Err(answer) => return answer,
    };
    if !config.is_dex() {
        return nothing();
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n");
    };
    let path = parts.uri.path_and_query().map_or("", |p| p.as_str());
    let headers = for_dex(parts.headers, parts.uri.path());
    let body = body.to_bytes().to_vec();
    match provider.dex(parts.method, path, headers, body).await {
        Ok(answer) if answer.status() == StatusCode::INTERNAL_SERVER_ERROR => {
            let said = beginning(answer, MAX_ERROR).await;
            let said = on_one_line(&String::from_utf8_lossy(&said));
            tracing::error!(path = parts.uri.path(), said, "Dex failed");
            redirect(&format!(
                "/{}login?has_sso_error=true",
                root(&state.options.root_path)
            ))
        }
        Ok(answer) => passed_on(answer, &state.options.content_security_policy).await,
        Err(e) => {
            tracing::error!(error = %e, "Dex does not answer");
            text(StatusCode::BAD_GATEWAY, "Dex does not answer\n")
        }
    }
}

/// What Dex may know of a request: its own cookies, the secrets of its clients and its own access
/// tokens. The sessions of this server are not for it.
fn for_dex(mut headers: HeaderMap, path: &str) -> HeaderMap {
    remove_named_by_connection(&mut headers);
    let cookies = headers.get_all(COOKIE).iter();
    let theirs: Vec<&str> = cookies
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .map(str::trim)
        .filter(|pair| !pair.is_empty() && !pair.starts_with("argocd."))
        .collect();
    let theirs = HeaderValue::from_str(&theirs.join("; ")).ok();
    let authorization = headers.remove(AUTHORIZATION);
    for name in KEPT_BACK.into_iter().chain(TOKEN_METADATA) {
        headers.remove(name);
    }
    // Anybody can make these up.
    let names = headers.keys().map(|name| name.as_str());
    let forwarded = names.filter(|name| *name == "forwarded" || name.starts_with("x-forwarded-"));
    for name in forwarded.map(str::to_owned).collect::<Vec<_>>() {
        headers.remove(name);
    }
    if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
        headers.insert(COOKIE, theirs);
    }
    if let Some(authorization) = authorization.filter(|value| is_for_dex(value, path)) {
        headers.insert(AUTHORIZATION, authorization);
    }
    headers
}

/// What `Connection` names belongs to that connection, too.
fn remove_named_by_connection(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter();
    let names: Vec<String> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_owned())
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// Clients of Dex name themselves by `Basic`, and its own access tokens are for one address only.
fn is_for_dex(authorization: &HeaderValue, path: &str) -> bool {
    let scheme = authorization.to_str().ok();
    let scheme = scheme.and_then(|value| value.split(' ').next());
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("basic")
            || scheme.eq_ignore_ascii_case("bearer")
                && path.strip_prefix(DEX_PATH) == Some("/userinfo")
    })
}

fn root(path: &str) -> String {
    match path.trim_matches('/') {
        "" => String::new(),
        path => format!("{path}/"),
    }
}

/// The content of an answer, or none if it is longer or breaks off.
async fn bounded(mut answer: reqwest::Response, most: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    while let Some(chunk) = answer.chunk().await.ok()? {
        content.extend_from_slice(&chunk);
        if content.len() > most {
            return None;
        }
    }
    Some(content)
}

/// What came of the content of an answer, and of a long one its beginning.
async fn beginning(mut answer: reqwest::Response, most: usize) -> Vec<u8> {
    let mut content = Vec::new();
    while content.len() < most
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        let room = most - content.len();
        content.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    content
}

/// `policy`: that of our own page; none is wanted where it is empty.
async fn passed_on(mut answer: reqwest::Response, policy: &str) -> Answer {
    let mut passed = Response::builder().status(answer.status());
    if let Some(headers) = passed.headers_mut() {
        *headers = std::mem::take(answer.headers_mut());
        remove_named_by_connection(headers);
        for name in KEPT_BACK {
            headers.remove(name);
        }
        if !policy.is_empty() {
            let own = HeaderValue::from_static(POLICY);
            headers.entry(CONTENT_SECURITY_POLICY).or_insert(own);
        }
    }
    let Some(content) = bounded(answer, MAX_ANSWER).await else {
        let why = "the answer of Dex is too large, or broke off\n";
        return text(StatusCode::BAD_GATEWAY, why);
    };
    let body = Body::new(http_body_util::Full::new(bytes::Bytes::from(content)));
    passed
        .body(body)
        .unwrap_or_else(|_| text(StatusCode::BAD_GATEWAY, "no valid answer\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_beginning_of_a_long_error_is_kept() {
        for (length, kept) in [(10, 10), (5000, 4096)] {
            let answer = Response::new("x".repeat(length));
            let said = beginning(answer.into(), MAX_ERROR).await;
            assert_eq!(said, "x".repeat(kept).into_bytes());
        }
        assert_eq!(on_one_line("a\nb"), "a b");
    }
}
