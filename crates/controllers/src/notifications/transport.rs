//! Requests over HTTP.
//!
//! Main type: [`Link`].

use super::mail;
use reqwest::{Client, Method, redirect::Policy};
use std::{sync::Arc, time::Duration};
use tiphys_notify::send::{Mail, Request, Response, Transport};
use tokio::runtime::Handle;

/// Most of an answer that is read.
const ANSWER: usize = 1 << 20;
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("requests can not be sent: {0}")]
pub struct LinkError(#[from] reqwest::Error);

/// Two HTTP clients: one that checks certificates, and one that does not. They follow no redirects,
/// because bodies and headers have credentials that may not reach another host. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    careful: Arc<Client>,
    careless: Arc<Client>,
}

impl Link {
    /// # Errors
    /// If the system's certificates can not be read.
    pub fn new() -> Result<Self, LinkError> {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT)
                .user_agent(concat!("tiphys-notifications/", env!("CARGO_PKG_VERSION")))
        };
        let careless = builder().tls_danger_accept_invalid_certs(true);
        Ok(Self {
            careful: Arc::new(builder().build()?),
            careless: Arc::new(careless.build()?),
        })
    }

    /// A transport for a thread that may wait.
    pub fn waiting(&self, runtime: Handle) -> impl Transport {
        Waiting {
            link: self.clone(),
            runtime,
        }
    }

    async fn send(&self, request: &Request) -> Result<Response, String> {
        // No URL: it may be a secret.
        let told = |error: reqwest::Error| chain(&error.without_url());
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("{:?} is not a method", request.method))?;
        let client = if request.insecure {
            &self.careless
        } else {
            &self.careful
        };
        let mut built = client
            .request(method, &request.url)
            .timeout(request.timeout)
            .body(request.body.clone());
        for (name, value) in &request.headers {
            built = built.header(name, value);
        }
        let mut answer = built.send().await.map_err(told)?;
        let retry_after = answer.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(told)? {
            let room = ANSWER.saturating_sub(body.len());
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() >= ANSWER {
                break;
            }
        }
        Ok(Response {
            status: answer.status().as_u16(),
            body,
            retry_after: retry_after.map(Duration::from_secs),
        })
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The link as a thread that may wait uses it.
struct Waiting {
    link: Link,
    runtime: Handle,
}

impl Transport for Waiting {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        self.runtime.block_on(self.link.send(request))
    }

    fn mail(&mut self, mail: &Mail) -> Result<(), String> {
        mail::send(mail, jiff::Timestamp::now())
    }

    fn wait(&mut self, time: Duration) {
        self.runtime.block_on(tokio::time::sleep(time));
    }
}
