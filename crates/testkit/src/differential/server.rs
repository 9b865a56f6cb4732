//! A server to play scripts against. Main types: [`Server`] and [`Remote`], one that is accessed
//! over TLS.

use crate::api::{TransportError, builder, finish, value_of};
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{
    Certificate, Method,
    blocking::{Client, Response},
};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    sync::mpsc,
    time::Duration,
};

/// A request without placeholders.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub accept: String,
    pub content_type: String,
    pub body: Option<String>,
}

/// A raw response: status, the headers of [`HEADERS`] in that order, body.
#[derive(Clone, Debug, Default)]
pub struct RawReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The headers that are compared.
pub const HEADERS: [&str; 6] = [
    "content-type",
    "warning",
    "allow",
    "retry-after",
    "location",
    "www-authenticate",
];

/// The lines of an open watch.
pub struct Stream {
    lines: mpsc::Receiver<String>,
}

impl Stream {
    /// The next line, if one arrives in time.
    pub fn next(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }
}

/// What a script is played against.
pub trait Server: Sync {
    /// One request.
    ///
    /// # Errors
    /// If there was no response.
    fn send(&self, request: &Request) -> Result<RawReply, TransportError>;

    /// A request whose response does not end; an error is a response without a stream.
    ///
    /// # Errors
    /// If there was no response.
    fn open(&self, request: &Request) -> Result<(RawReply, Option<Stream>), TransportError>;
}

/// A server with an address and a token.
#[derive(Clone)]
pub struct Remote {
    client: Client,
    base: String,
    token: String,
}

impl Remote {
    /// The server of a kubeconfig with one cluster and a token.
    ///
    /// # Errors
    /// If the file does not exist or lacks a field.
    pub fn kubeconfig(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::from_kubeconfig(&text)
    }

    /// The same, from the text of the file.
    ///
    /// # Errors
    /// If a field is missing.
    pub fn from_kubeconfig(text: &str) -> Result<Self, String> {
        let field = |name: &str| {
            value_of(text, name).ok_or_else(|| format!("the kubeconfig has no {name}"))
        };
        let ca = STANDARD
            .decode(field("certificate-authority-data")?)
            .map_err(|e| e.to_string())?;
        let ca = Certificate::from_pem(&ca).map_err(|e| e.to_string())?;
        let client = finish(
            builder()
                .tls_certs_only([ca])
                .redirect(reqwest::redirect::Policy::none()),
        );
        Ok(Self {
            client,
            base: field("server")?.trim_end_matches('/').to_owned(),
            token: field("token")?,
        })
    }

    fn request(&self, request: &Request) -> Result<Response, TransportError> {
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|e| TransportError(e.to_string()))?;
        let mut out = self
            .client
            .request(method, format!("{}{}", self.base, request.target))
            .bearer_auth(&self.token);
        let accept = if request.accept.is_empty() {
            "application/json"
        } else {
            &request.accept
        };
        out = out
            .header("Accept", accept)
            .header("User-Agent", "differential/1");
        if let Some(body) = &request.body {
            if !request.content_type.is_empty() {
                out = out.header("Content-Type", &request.content_type);
            }
            out = out.body(body.clone());
        }
        out.send().map_err(failed)
    }
}

fn failed(error: reqwest::Error) -> TransportError {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    TransportError(text)
}

fn head(response: &Response) -> RawReply {
    let mut headers = Vec::new();
    for name in HEADERS {
        let values = response.headers().get_all(name).iter();
        headers.extend(values.map(|v| {
            (
                name.to_owned(),
                String::from_utf8_lossy(v.as_bytes()).into_owned(),
            )
        }));
    }
    RawReply {
        status: response.status().as_u16(),
        headers,
        body: String::new(),
    }
}

impl Server for Remote {
    fn send(&self, request: &Request) -> Result<RawReply, TransportError> {
        let response = self.request(request)?;
        let mut reply = head(&response);
        reply.body = String::from_utf8_lossy(&response.bytes().map_err(failed)?).into_owned();
        Ok(reply)
    }

    fn open(&self, request: &Request) -> Result<(RawReply, Option<Stream>), TransportError> {
        let response = self.request(request)?;
        let mut reply = head(&response);
        if reply.status != 200 {
            reply.body = String::from_utf8_lossy(&response.bytes().map_err(failed)?).into_owned();
            return Ok((reply, None));
        }
        let (sender, lines) = mpsc::channel();
        // Ends with the stream, which every watch in a script limits by `timeoutSeconds`.
        std::thread::spawn(move || {
            for line in BufReader::new(response).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok((reply, Some(Stream { lines })))
    }
}
