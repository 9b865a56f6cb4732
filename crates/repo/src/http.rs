//! HTTP connections to repositories: what every client has in common, and bounded downloads.
//!
//! Main types: [`Downloads`], and [`Clients`] below it. Credentials are sent only to the origin that they belong to, unless
//! the caller says otherwise; a redirect to another host drops them.

use crate::{RepoAccess, RepoError, url::refuse};
use reqwest::{
    StatusCode,
    header::{ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED},
};
use std::time::Duration;
use tiphys_api::access::shown_url;

/// Clients with their idle connections that are kept.
const CLIENTS: u64 = 64;
const CLIENT_IDLE: Duration = Duration::from_secs(300);
const MAX_REDIRECTS: usize = 10;

/// Applies an access to a builder; the blocking and the asynchronous one have the same methods but
/// no common trait.
macro_rules! configured {
    ($builder:expr, $access:expr, $timeout:expr) => {{
        let access: &crate::RepoAccess = $access;
        let mut builder = $builder
            .connect_timeout(crate::http::CONNECT_TIMEOUT)
            .timeout($timeout);
        if !access.ca_data.is_empty() {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(
                access.ca_data.as_bytes(),
            )?);
        }
        if !access.tls_client_cert.is_empty() {
            let pem = format!(
                "{}\n{}",
                access.tls_client_cert,
                access.tls_client_key.expose()
            );
            builder = builder.identity(reqwest::Identity::from_pem(pem.as_bytes())?);
        }
        if access.insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        if !access.proxy.is_empty() {
            builder = builder.proxy(reqwest::Proxy::all(&access.proxy)?);
        }
        builder
    }};
}
pub(crate) use configured;

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A downloaded document, and what identifies this version of it.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub content: Vec<u8>,
    pub version: Validators,
}

/// What a server said about the version of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl Validators {
    fn of(headers: &HeaderMap) -> Self {
        Self {
            etag: headers.get(ETAG).cloned(),
            modified: headers.get(LAST_MODIFIED).cloned(),
        }
    }
}

/// What to download.
pub(crate) struct Question<'a> {
    pub url: &'a str,
    /// Whether the credentials may be sent.
    pub with_credentials: bool,
    /// The largest document to accept.
    pub limit: u64,
    /// The version that is there already.
    pub known: Option<&'a Validators>,
}

/// The HTTP clients of many accesses, with their idle connections.
pub(crate) struct Clients {
    timeout: Duration,
    /// How many redirects a client follows itself.
    redirects: usize,
    clients: moka::sync::Cache<[u8; 32], reqwest::Client>,
}

impl Clients {
    pub fn new(timeout: Duration, redirects: usize) -> Self {
        let clients = moka::sync::Cache::builder()
            .max_capacity(CLIENTS)
            .time_to_idle(CLIENT_IDLE)
            .build();
        Self {
            timeout,
            redirects,
            clients,
        }
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Clients that never send credentials do not have the client certificate either.
    pub fn of(
        &self,
        access: &RepoAccess,
        with_credentials: bool,
    ) -> Result<reqwest::Client, RepoError> {
        let access = if with_credentials {
            access.clone()
        } else {
            RepoAccess {
                tls_client_cert: String::new(),
                ..access.clone()
            }
        };
        let key = access.fingerprint();
        if let Some(client) = self.clients.get(&key) {
            return Ok(client);
        }
        let built = || {
            let redirects = match self.redirects {
                0 => reqwest::redirect::Policy::none(),
                most => reqwest::redirect::Policy::limited(most),
            };
            let builder = reqwest::Client::builder()
                .redirect(redirects)
                .user_agent(concat!("tiphys/", env!("CARGO_PKG_VERSION")));
            configured!(builder, &access, self.timeout).build()
        };
        let client = built().map_err(|e| refuse(&access.url, &reason(&e)))?;
        self.clients.insert(key, client.clone());
        Ok(client)
    }

    /// The content of an answer, of at most so many bytes.
    pub async fn body(
        &self,
        url: &str,
        limit: u64,
        mut answer: reqwest::Response,
    ) -> Result<Vec<u8>, RepoError> {
        let over = || RepoError::OverLimit {
            url: shown_url(url),
            excess: format!("more than {limit} bytes"),
        };
        let announced = answer.content_length().unwrap_or_default();
        if announced > limit {
            return Err(over());
        }
        let mut content = Vec::with_capacity(usize::try_from(announced).unwrap_or_default());
        while let Some(chunk) = answer.chunk().await.map_err(|e| self.failed(url, &e))? {
            if (content.len() + chunk.len()) as u64 > limit {
                return Err(over());
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    pub fn failed(&self, url: &str, e: &reqwest::Error) -> RepoError {
        if e.is_timeout() {
            return self.timed_out(url);
        }
        RepoError::Unreachable {
            url: shown_url(url),
            reason: reason(e),
        }
    }

    pub fn timed_out(&self, url: &str) -> RepoError {
        RepoError::Timeout {
            url: shown_url(url),
            seconds: self.timeout.as_secs(),
        }
    }
}

/// Downloads documents over http and https.
pub(crate) struct Downloads(Clients);

impl Downloads {
    pub fn new(timeout: Duration) -> Self {
        Self(Clients::new(timeout, MAX_REDIRECTS))
    }

    /// A document; `None` if the server says that it is the known version.
    pub async fn get(
        &self,
        access: &RepoAccess,
        question: &Question<'_>,
    ) -> Result<Option<Document>, RepoError> {
        let url =
            reqwest::Url::parse(question.url).map_err(|e| refuse(question.url, &e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(question.url, "it is neither http nor https"));
        }
        let client = self.0.of(access, question.with_credentials)?;
        let mut request = client.get(url);
        if question.with_credentials {
            request = signed(request, access);
        }
        if let Some(known) = question.known {
            if let Some(etag) = &known.etag {
                request = request.header(IF_NONE_MATCH, etag);
            } else if let Some(modified) = &known.modified {
                request = request.header(IF_MODIFIED_SINCE, modified);
            }
        }
        let answer = request.send().await;
        let answer = answer.map_err(|e| self.0.failed(question.url, &e))?;
        match answer.status() {
            StatusCode::NOT_MODIFIED if question.known.is_some() => return Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(RepoError::AuthFailed {
                    url: shown_url(question.url),
                    hint: "",
                });
            }
            status if !status.is_success() => {
                return Err(RepoError::Status {
                    url: shown_url(question.url),
                    status: status.as_u16(),
                });
            }
            _ => {}
        }
        let version = Validators::of(answer.headers());
        let content = self.0.body(question.url, question.limit, answer).await?;
        Ok(Some(Document { content, version }))
    }
}

fn signed(request: reqwest::RequestBuilder, access: &RepoAccess) -> reqwest::RequestBuilder {
    if !access.bearer_token.is_empty() {
        return request.bearer_auth(access.bearer_token.expose());
    }
    if access.username.is_empty() && access.password.is_empty() {
        return request;
    }
    request.basic_auth(&access.username, Some(access.password.expose()))
}

/// The innermost cause, without the URL, which may hold a password.
fn reason(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}
