//! Requests to token providers: small, with a time limit and a bounded response.

use super::super::{
    proxy::Proxy,
    stack::{self, Versions},
};
use http::{Request, Uri, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Limited};
use kube::Config;
use serde::de::DeserializeOwned;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 1 << 20;
/// How much of an error response is shown.
const SHOWN: usize = 400;

/// Returns the response's body. An HTTP error status is an error with its text.
pub async fn send(request: Request<Vec<u8>>) -> Result<String, String> {
    exchange(request, false).await
}

/// For localhost and link-local addresses, without a proxy.
pub async fn send_here(request: Request<Vec<u8>>) -> Result<String, String> {
    exchange(request, true).await
}

async fn exchange(request: Request<Vec<u8>>, here: bool) -> Result<String, String> {
    stack::install_crypto();
    let (parts, body) = request.into_parts();
    let (Some(scheme), Some(authority)) = (parts.uri.scheme_str(), parts.uri.authority()) else {
        return Err(format!("{}: it is not a URL", parts.uri));
    };
    let host = format!("{scheme}://{authority}");
    let server: Uri = host.parse().map_err(|e| format!("{host}: {e}"))?;
    let proxy = if here {
        Proxy::None
    } else {
        Proxy::of(&server, None)?
    };
    let client = stack::client(&Config::new(server), &proxy, None, Versions::All, &host)
        .map_err(|e| e.to_string())?;
    let path = parts
        .uri
        .path_and_query()
        .map_or("/", |p| p.as_str())
        .to_owned();
    let mut request = Request::from_parts(parts, kube::client::Body::from(body));
    *request.uri_mut() = path.parse().map_err(|e| format!("{host}{path}: {e}"))?;
    let answer = async {
        let response = client
            .send(request)
            .await
            .map_err(|e| super::super::config::root_cause(&*e))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        if status.is_success() {
            Ok(text)
        } else {
            Err(format!(
                "{status}: {}",
                text.chars().take(SHOWN).collect::<String>().trim()
            ))
        }
    };
    let answer = tokio::time::timeout(TIMEOUT, answer)
        .await
        .map_err(|_| format!("no answer within {}s", TIMEOUT.as_secs()));
    answer
        .and_then(|answer| answer)
        .map_err(|e| format!("{host}: {e}"))
}

/// A GET with these headers.
pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<Request<Vec<u8>>, String> {
    request("GET", url, headers, String::new())
}

/// A form.
pub fn post(
    url: &str,
    headers: &[(&str, &str)],
    fields: &[(&str, &str)],
) -> Result<Request<Vec<u8>>, String> {
    let mut request = request("POST", url, headers, form(fields))?;
    request.headers_mut().insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    Ok(request)
}

pub fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Request<Vec<u8>>, String> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(body.into_bytes())
        .map_err(|e| format!("{url}: {e}"))
}

pub fn form(fields: &[(&str, &str)]) -> String {
    fields
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// Escapes everything except RFC 3986's unreserved characters, as AWS signs it.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte))
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Parses a JSON response.
pub fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| format!("the answer cannot be read: {e}"))
}
