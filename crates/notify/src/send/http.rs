//! Requests and how they are carried.
//!
//! Main types: [`Request`], which may have a [`Signer`], and [`Transport`].

use super::{Mail, Published, SendError, upstream};
use crate::urls::query_escape;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value as Json;
use std::time::Duration;
use tiphys_gocompat::{json, url::Url};

/// Whom the transport signs a request for, just before it is sent. Its secrets are not printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Signer {
    #[default]
    None,
    /// By AWS Signature Version 4. Without keys: those of the process.
    Aws {
        region: String,
        service: &'static str,
        keys: Option<(String, String)>,
    },
    /// With the token of a service account: that of a key file, or, if it is empty, of the process.
    Google { key_file: String },
}

/// An HTTP request.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub signer: Signer,
    /// Whether any certificate is taken.
    pub insecure: bool,
    /// After this time it has failed.
    pub timeout: Duration,
}

/// An answer. The body is cut at a size that the transport chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: Vec<u8>,
    /// When to ask again, if the service says so (`Retry-After`, in seconds).
    pub retry_after: Option<Duration>,
}

/// Carries requests, mails and messages.
pub trait Transport {
    /// Signs a request for whom it says, and sends it.
    ///
    /// # Errors
    /// If it cannot be signed or there is no answer. The text has no secrets: neither path nor query of the URL.
    fn exchange(&mut self, request: &Request) -> Result<Response, String>;

    /// Hands a mail over to its server.
    ///
    /// # Errors
    /// If the server did not take it.
    fn mail(&mut self, mail: &Mail) -> Result<(), String>;

    /// Hands a message over to a NATS server.
    ///
    /// # Errors
    /// If the server did not take it. The text has no secrets.
    fn publish(&mut self, message: &Published) -> Result<(), String>;

    /// Waits between two attempts, unless the process ends.
    fn wait(&mut self, time: Duration);

    /// Whether there is no more time for another attempt, or the process ends.
    fn is_over(&self) -> bool {
        false
    }
}

/// How long a service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Request {
    pub(super) fn new(method: &str, url: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            signer: Signer::None,
            insecure: false,
            timeout: TIMEOUT,
        }
    }

    pub(super) fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    pub(super) fn basic(self, user: &str, password: &str) -> Self {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        self.header("Authorization", format!("Basic {pair}"))
    }

    pub(super) fn json(self, body: &Json) -> Self {
        self.header("Content-Type", "application/json")
            .body(json::to_string(body))
    }

    pub(super) fn form(self, fields: &[(&str, &str)]) -> Self {
        self.header("Content-Type", "application/x-www-form-urlencoded")
            .body(query(fields))
    }

    pub(super) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(super) fn signed_by(mut self, signer: Signer) -> Self {
        self.signer = signer;
        self
    }

    pub(super) fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }
}

impl Response {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The scheme and host of a URL, for messages: the rest may be a secret.
pub(super) fn host(url: &str) -> String {
    match Url::parse(url.as_bytes()) {
        Ok(url) => format!(
            "{}://{}",
            String::from_utf8_lossy(&url.scheme),
            String::from_utf8_lossy(&url.host)
        ),
        Err(_) => "an invalid URL".into(),
    }
}

/// Carries a request.
pub(super) fn exchange(
    transport: &mut dyn Transport,
    request: &Request,
) -> Result<Response, SendError> {
    transport.exchange(request).or_else(upstream)
}

/// Carries a request whose answer must be a success.
pub(super) fn succeed(
    transport: &mut dyn Transport,
    request: &Request,
) -> Result<Response, SendError> {
    let response = exchange(transport, request)?;
    if response.is_success() {
        return Ok(response);
    }
    upstream(failed(request, &response))
}

/// Longest part of an answer that is quoted.
const QUOTED: usize = 500;

pub(super) fn failed(request: &Request, response: &Response) -> String {
    let text: String = response.text().chars().take(QUOTED).collect();
    format!(
        "{} to {} has failed with error code {} : {text}",
        request.method,
        host(&request.url),
        response.status
    )
}

/// Fields as a query or form, in the order of their names.
pub(super) fn query(fields: &[(&str, &str)]) -> String {
    let mut fields = fields.to_vec();
    fields.sort_by_key(|(name, _)| *name);
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{}={}", query_escape(name), query_escape(value)));
    pairs.collect::<Vec<_>>().join("&")
}
