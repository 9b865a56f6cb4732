//! Requests to token providers: small, with a time limit and a bounded response.

use crate::{CloudError, proxy};
use http::{Request, header::CONTENT_TYPE};
use hyper_util::client::proxy::matcher::Intercept;
use reqwest::{Client, Proxy, Url, redirect::Policy};
use serde::de::DeserializeOwned;
use std::{sync::OnceLock, time::Duration};

/// The type of a form.
pub const FORM: &str = "application/x-www-form-urlencoded";
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 1 << 20;
/// How much of an error response is shown.
const SHOWN: usize = 400;

/// Returns the response's body. An HTTP error status is an error with its text.
pub async fn send(request: Request<Vec<u8>>) -> Result<String, CloudError> {
    exchange(request, false).await
}

/// For localhost and link-local addresses, without a proxy.
pub async fn send_here(request: Request<Vec<u8>>) -> Result<String, CloudError> {
    exchange(request, true).await
}

/// The client for servers that are reached through the environment's proxies, or for others. Neither
/// follows redirects: bodies have credentials.
fn client(direct: bool) -> Result<Client, CloudError> {
    static CLIENTS: [OnceLock<Client>; 2] = [OnceLock::new(), OnceLock::new()];
    let known = &CLIENTS[usize::from(direct)];
    if let Some(client) = known.get() {
        return Ok(client.clone());
    }
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder().redirect(Policy::none()).timeout(TIMEOUT);
    if direct {
        builder = builder.no_proxy();
    }
    let client = builder.build();
    let client = client.map_err(|e| CloudError::settings(root_cause(&e)))?;
    Ok(known.get_or_init(|| client).clone())
}

/// The address of a proxy that speaks SOCKS, so that it resolves names, as for clusters.
fn socks(proxy: &Intercept) -> Option<Url> {
    let text = proxy.uri().to_string();
    let rest = text.strip_prefix("socks5h://");
    let rest = rest.or_else(|| text.strip_prefix("socks5://"))?;
    let mut url = Url::parse(&format!("socks5h://{rest}")).ok()?;
    if let Some((user, password)) = proxy.raw_auth() {
        let _ = (url.set_username(user), url.set_password(Some(password)));
    }
    Some(url)
}

fn through(proxy: Url) -> reqwest::Result<Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().redirect(Policy::none()).timeout(TIMEOUT);
    builder.proxy(Proxy::all(proxy)?).build()
}

async fn exchange(request: Request<Vec<u8>>, here: bool) -> Result<String, CloudError> {
    let (Some(scheme), Some(authority)) = (request.uri().scheme_str(), request.uri().authority())
    else {
        let why = format!("{}: it is not a URL", request.uri());
        return Err(CloudError::Settings(why));
    };
    let host = format!("{scheme}://{authority}");
    let named = proxy::from_environment(request.uri()).filter(|_| !here);
    let client = match named.as_ref().map(socks) {
        None => client(true)?,
        Some(None) => client(false)?,
        Some(Some(url)) => through(url).map_err(|e| CloudError::settings(root_cause(&e)))?,
    };
    let request = reqwest::Request::try_from(request);
    let request =
        request.map_err(|e| CloudError::settings(format!("{host}: {}", root_cause(&e))))?;
    answer(client, request, &host).await
}

async fn answer(
    client: Client,
    request: reqwest::Request,
    host: &str,
) -> Result<String, CloudError> {
    let failed = |e: reqwest::Error| match e.is_builder() {
        // Nobody was asked: the URL's scheme is not HTTP, say.
        true => CloudError::settings(format!("{host}: {}", root_cause(&e))),
        false => CloudError::Unreachable {
            host: host.to_owned(),
            reason: match e.is_timeout() {
                true => format!("no answer within {}s", TIMEOUT.as_secs()),
                false => root_cause(&e),
            },
        },
    };
    let mut response = client.execute(request).await.map_err(failed)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(CloudError::answer(format!(
                "{host}: the answer is too long"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    let text = String::from_utf8_lossy(&body);
    if status.is_success() {
        return Ok(text.into_owned());
    }
    let shown: String = text.chars().take(SHOWN).collect();
    Err(CloudError::Refused {
        host: host.to_owned(),
        status,
        said: shown.trim().to_owned(),
    })
}

/// The innermost cause; outer ones repeat the URL.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A GET with these headers.
pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<Request<Vec<u8>>, CloudError> {
    request("GET", url, headers, String::new())
}

/// A form.
pub fn post(
    url: &str,
    headers: &[(&str, &str)],
    fields: &[(&str, &str)],
) -> Result<Request<Vec<u8>>, CloudError> {
    let mut request = request("POST", url, headers, form(fields))?;
    request
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static(FORM));
    Ok(request)
}

pub fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Request<Vec<u8>>, CloudError> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(body.into_bytes())
        .map_err(|e| CloudError::settings(format!("{url}: {e}")))
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
pub fn json<T: DeserializeOwned>(text: &str) -> Result<T, CloudError> {
    let read = serde_json::from_str(text);
    read.map_err(|e| CloudError::answer(format!("the answer cannot be read ({})", place(&e))))
}

/// Where a JSON text is wrong: not the parser's message, which quotes the content.
pub fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use hyper_util::client::proxy::matcher::Matcher;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    #[tokio::test]
    async fn who_refuses_differs_from_who_is_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = format!("http://{}", listener.local_addr().expect("an address"));
        let serve = async {
            let (mut client, _) = listener.accept().await.expect("a client");
            let read = client.read(&mut [0; 4096]).await.expect("a request");
            assert!(read > 0);
            let answer =
                "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 3\r\n\r\nno\n";
            client
                .write_all(answer.as_bytes())
                .await
                .expect("an answer");
            client.shutdown().await.expect("the end");
        };
        let ask = || get(&format!("{host}/token"), &[]).expect("a request");
        let (refused, ()) = tokio::join!(send_here(ask()), serve);
        let refused = refused.expect_err("it refuses");
        assert_eq!(refused.to_string(), format!("{host}: 403 Forbidden: no"));
        let said = CloudError::Refused {
            host: host.clone(),
            status: StatusCode::FORBIDDEN,
            said: "no".to_owned(),
        };
        assert_eq!(refused, said);
        // Its port stays taken, so that no other process answers there.
        let leave = async {
            while let Ok((client, _)) = listener.accept().await {
                drop(client);
            }
        };
        let away = tokio::select! {
            away = send_here(ask()) => away.expect_err("nobody answers"),
            () = leave => panic!("it does not listen any more"),
        };
        assert!(
            matches!(&away, CloudError::Unreachable { host: at, .. } if *at == host),
            "{away}"
        );
    }

    #[tokio::test]
    async fn a_url_that_is_not_of_http_is_a_wrong_setting() {
        let request = get("ftp://127.0.0.1/token", &[]).expect("a request");
        let wrong = send_here(request).await.expect_err("it is not HTTP");
        assert!(matches!(wrong, CloudError::Settings(_)), "{wrong}");
    }

    #[test]
    fn a_proxy_that_speaks_socks_resolves_names() {
        for (named, expected) in [
            (
                "socks5://u:p%40s@proxy:1080",
                Some("socks5h://u:p%40s@proxy:1080"),
            ),
            ("socks5h://proxy:1080", Some("socks5h://proxy:1080")),
            ("http://proxy:3128", None),
        ] {
            let server = "https://sts.example.com".parse().expect("a URL");
            let found = Matcher::builder().all(named).build().intercept(&server);
            let url = socks(&found.expect("a proxy")).map(String::from);
            let url = url.as_deref().map(|url| url.trim_end_matches('/'));
            assert_eq!(url, expected);
            assert!(
                through(Url::parse(named).expect("a URL")).is_ok(),
                "{named}"
            );
        }
    }
}
