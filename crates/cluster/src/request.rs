//! Raw requests to one API server: bytes in, bytes out, throttled as the server asks.
//!
//! Main type: [`Http`]. It knows paths, methods and `Status` responses, and nothing about the
//! meaning of objects.

pub use crate::call::{
    APPLY_PATCH, Call, IMPERSONATE_USER, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH,
    encode, push_query,
};

use crate::{
    client::{AnswerBody, Client, Lane, root_cause},
    error::{ApiError, Error},
    fence::Fence,
    traffic::Traffic,
};
use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use http_body_util::BodyExt;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Semaphore, time::Instant};
use tower::BoxError;
use tracing::{Instrument as _, field};

/// Maximum size of a response body; lists are paged.
const MAX_BODY: usize = 512 << 20;
/// How often a request is repeated that the server refused with 429 (and therefore did not
/// execute).
const MAX_THROTTLED: u32 = 12;
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Requests to one API server over one connection (HTTP/2 where the server speaks it). Cheap to
/// clone.
#[derive(Clone)]
pub struct Http {
    client: Client,
    gate: Arc<Gate>,
    on_warning: Option<OnWarning>,
    traffic: Traffic,
}

/// Called with the server's warnings (the text of its `Warning` headers).
pub type OnWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// What all requests to a cluster share: the concurrency limit, and until when the server asked to
/// back off.
struct Gate {
    permits: Semaphore,
    quiet_until: Mutex<Option<Instant>>,
}

impl Gate {
    fn new(concurrency: usize) -> Self {
        Self {
            permits: Semaphore::new(concurrency),
            quiet_until: Mutex::new(None),
        }
    }
}

impl Http {
    /// `concurrency` limits the requests in flight; watches do not count.
    pub fn new(client: Client, concurrency: usize, traffic: Traffic) -> Self {
        traffic.connection(false);
        Self {
            client,
            gate: Arc::new(Gate::new(concurrency)),
            on_warning: None,
            traffic,
        }
    }

    /// The same connection with a separate limit, for requests that others must not delay.
    pub fn apart(&self, concurrency: usize) -> Self {
        Self {
            gate: Arc::new(Gate::new(concurrency)),
            ..self.clone()
        }
    }

    /// The same connection, with a callback for the server's warnings.
    pub fn with_warnings(&self, on_warning: OnWarning) -> Self {
        Self {
            on_warning: Some(on_warning),
            ..self.clone()
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The counters of the cluster's requests.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Sends and reads the whole response. An error status becomes [`Error::Api`]; after 429 it
    /// waits as the server asks. Under a closed [`Fence`] nothing is written.
    pub async fn send(&self, call: &Call) -> Result<Bytes, Error> {
        let span = tracing::trace_span!(
            "request",
            "otel.kind" = "client",
            "otel.name" = format!("{} {}", call.verb(), call.parts().0),
            "server.address" = self.traffic.host(),
            "http.request.method" = call.method.as_str(),
            "url.path" = call.path,
            error = field::Empty
        );
        let sent = match Fence::current().filter(|_| call.method != Method::GET) {
            Some(fence) => {
                fence
                    .during(|| call.what(), self.send_patiently(call))
                    .instrument(span.clone())
                    .await
            }
            None => self.send_patiently(call).instrument(span.clone()).await,
        };
        if let Err(e) = &sent {
            span.record("error", field::display(e));
        }
        sent
    }

    async fn send_patiently(&self, call: &Call) -> Result<Bytes, Error> {
        let mut attempt = 0;
        loop {
            let asked = Instant::now();
            self.wait_for_quiet().await;
            let (result, begun) = {
                let _permit = self
                    .gate
                    .permits
                    .acquire()
                    .await
                    .map_err(|e| Error::transport(call.what(), e))?;
                self.traffic.waited(call, asked.elapsed());
                let begun = Instant::now();
                (
                    tokio::time::timeout(call.timeout, self.send_once(call, begun)).await,
                    begun,
                )
            };
            if result.is_err() {
                self.traffic.answered(call, None, begun.elapsed());
            }
            match result {
                Err(_) => {
                    return Err(Error::Timeout {
                        what: call.what(),
                        after: call.timeout,
                    });
                }
                Ok(Err(Error::Api(e))) if e.code == 429 && attempt < MAX_THROTTLED => {
                    attempt += 1;
                    self.traffic.retried(call, Some(429));
                    let asked = e
                        .retry_after
                        .unwrap_or_else(|| backoff(Duration::from_millis(100), attempt));
                    self.ask_for_quiet(asked.min(MAX_WAIT));
                }
                // A broken connection is retried if repeating the request is safe.
                Ok(Err(Error::Transport { .. })) if call.method == Method::GET && attempt < 2 => {
                    attempt += 1;
                    self.traffic.retried(call, None);
                    tokio::time::sleep(backoff(Duration::from_millis(50), attempt)).await;
                }
                Ok(result) => return result,
            }
        }
    }

    /// Sends and decodes the response as JSON.
    pub async fn json<T: serde::de::DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let body = self.send(call).await?;
        serde_json::from_slice(&body).map_err(|e| Error::decode(call.what(), e))
    }

    async fn send_once(&self, call: &Call, begun: Instant) -> Result<Bytes, Error> {
        let response = self.client.send(call.request()?).await;
        self.traffic.answered(
            call,
            response.as_ref().ok().map(|r| r.status().as_u16()),
            begun.elapsed(),
        );
        let response = response.map_err(|e| transport(&call.what(), &e))?;
        let status = response.status();
        let retry_after = retry_after(&response);
        if let Some(tell) = &self.on_warning {
            let texts = response
                .headers()
                .get_all(header::WARNING)
                .iter()
                .filter_map(|h| warning_text(h.to_str().ok()?));
            texts.for_each(|text| tell(&text));
        }
        let body = read_body(response, &call.what()).await?;
        self.traffic.received(call, body.len());
        if status.is_success() {
            Ok(body)
        } else {
            Err(refusal(status, retry_after, &body))
        }
    }

    async fn wait_for_quiet(&self) {
        let until = *self
            .gate
            .quiet_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = until.filter(|u| *u > Instant::now()) {
            // Spread the delayed requests, or they would all be sent at the same moment again.
            tokio::time::sleep_until(until + Duration::from_millis(rand::random_range(0..50)))
                .await;
        }
    }

    fn ask_for_quiet(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut slot = self
            .gate
            .quiet_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if slot.is_none_or(|u| u < until) {
            *slot = Some(until);
        }
    }
}

/// Opens a stream (a watch, a log); the caller reads the body. Does not count against the
/// concurrency limit.
pub(crate) async fn open(lane: &Lane, call: &Call) -> Result<AnswerBody, Error> {
    let begun = Instant::now();
    let sent = tokio::time::timeout(call.timeout, lane.client.send(call.request()?)).await;
    let code = sent
        .as_ref()
        .ok()
        .and_then(|r| r.as_ref().ok())
        .map(|r| r.status().as_u16());
    lane.traffic.answered(call, code, begun.elapsed());
    let response = sent
        .map_err(|_| Error::Timeout {
            what: call.what(),
            after: call.timeout,
        })?
        .map_err(|e| transport(&call.what(), &e))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response.into_body());
    }
    let retry_after = retry_after(&response);
    let body = read_body(response, &call.what()).await?;
    Err(refusal(status, retry_after, &body))
}

/// Exponential back-off with full jitter, at most half a minute.
pub(crate) fn backoff(base: Duration, attempt: u32) -> Duration {
    let ceiling = base.saturating_mul(1 << attempt.min(10)).min(MAX_WAIT);
    ceiling.mul_f64(rand::random_range(0.5..1.0))
}

fn transport(what: &str, error: &BoxError) -> Error {
    Error::transport(what, root_cause(&**error))
}

fn retry_after(response: &Response<AnswerBody>) -> Option<Duration> {
    response
        .headers()
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
        .map(Duration::from_secs)
}

/// The text of `299 - "text"`, the only form of warning that an API server sends.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 ")?.split_once(' ')?.1.trim();
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut escaped = false;
    for c in inner.chars() {
        escaped = c == '\\' && !escaped;
        if !escaped {
            out.push(c);
        }
    }
    Some(out)
}

async fn read_body(response: Response<AnswerBody>, what: &str) -> Result<Bytes, Error> {
    http_body_util::Limited::new(response.into_body(), MAX_BODY)
        .collect()
        .await
        .map(|b| b.to_bytes())
        .map_err(|e| Error::transport(what, e))
}

fn refusal(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Error {
    let mut error = ApiError::from_body(status.as_u16(), body);
    error.retry_after = retry_after.or(error.retry_after);
    Error::Api(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read() {
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.a\" \\ x""#).as_deref(),
            Some(r#"unknown field "spec.a" \ x"#)
        );
        assert_eq!(warning_text(r#"299 kube "text""#).as_deref(), Some("text"));
        assert_eq!(warning_text("199 - \"other\""), None);
    }

    #[test]
    fn backoff_grows_and_is_bounded() {
        for attempt in 0..40 {
            let b = backoff(Duration::from_millis(100), attempt);
            assert!(
                b >= Duration::from_millis(50) && b <= MAX_WAIT,
                "{attempt}: {b:?}"
            );
        }
    }
}
