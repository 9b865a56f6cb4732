//! A call from its beginning to its end: here it is counted and logged, and nowhere else, with the
//! names that Go's gRPC servers have for both.
//!
//! Main type: [`Running`]. Requests, answers and headers are never logged: tokens and passwords are
//! among them.

use crate::{
    ApiError, Call, Code, Role,
    counts::{CallCount, code_name},
    kind::{Kind, names},
};
use futures::{Stream, StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use std::{
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tracing::Level;

const OK: i32 = 0;
/// Bytes of an error in the log.
const MAX_ERROR: usize = 2048;

type Messages = BoxStream<'static, Result<Vec<u8>, ApiError>>;

/// A call that began. Clones are the same call. It ends once; one whose last clone is dropped
/// before was given up by its client.
pub(crate) struct Running<S: Role>(Arc<Shared<S>>);

struct Shared<S: Role> {
    state: Arc<S>,
    rpc: String,
    kind: Kind,
    source: IpAddr,
    counted: Option<Arc<CallCount>>,
    /// Known once the caller is.
    caller: OnceLock<S::Caller>,
    start: Timestamp,
    began: Instant,
    /// Whether messages of an answer are being sent.
    is_open: AtomicBool,
    has_ended: AtomicBool,
}

// Not derived: the state itself need not be `Clone`.
impl<S: Role> Clone for Running<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Role> Running<S> {
    pub fn begin(state: &Arc<S>, call: &Call<S>, source: IpAddr) -> Self {
        let running = Self(Arc::new(Shared {
            state: Arc::clone(state),
            rpc: call.rpc.clone(),
            kind: call.kind,
            source,
            counted: state.counts().map(|counts| counts.of(call)),
            caller: OnceLock::new(),
            start: Timestamp::now(),
            began: Instant::now(),
            is_open: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }));
        if let Some(counted) = &running.0.counted {
            counted.started();
        }
        if call.kind == Kind::Unary {
            running.received();
        }
        running
    }

    /// Whose call it is, which the log tells.
    pub fn called_by(&self, caller: &S::Caller) {
        if self.0.state.logs_calls() {
            // It is told only once.
            let _ = self.0.caller.set(caller.clone());
        }
    }

    /// Counts a message of the client.
    pub fn received(&self) {
        if let Some(counted) = &self.0.counted {
            counted.received();
        }
    }

    pub fn succeeded(&self) {
        self.0.end(OK, "");
    }

    pub fn failed(&self, error: &ApiError) {
        self.0.end(error.code as i32, &error.message);
    }

    /// Ends what was answered with a status before it was run, because it could not be read.
    pub fn refused(&self, status: &tonic::Status) {
        self.0.end(status.code() as i32, status.message());
    }

    /// The messages of an answer, with whose end the call ends.
    pub fn follow(&self, messages: Messages) -> Messages {
        self.0.is_open.store(true, Ordering::Relaxed);
        let running = self.clone();
        Followed { messages, running }.boxed()
    }
}

/// The messages of an answer.
struct Followed<S: Role> {
    messages: Messages,
    running: Running<S>,
}

impl<S: Role> Stream for Followed<S> {
    type Item = Result<Vec<u8>, ApiError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.messages.poll_next_unpin(cx));
        match &next {
            Some(Ok(_)) => {
                if let Some(counted) = &self.running.0.counted {
                    counted.sent();
                }
            }
            Some(Err(e)) => self.running.failed(e),
            None => self.running.succeeded(),
        }
        Poll::Ready(next)
    }
}

impl<S: Role> Drop for Shared<S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.end(Code::Internal as i32, "it panicked");
        } else if *self.is_open.get_mut() {
            // Whoever watches ends it this way.
            self.end(OK, "");
        } else {
            self.end(Code::Canceled as i32, "context canceled");
        }
    }
}

impl<S: Role> Shared<S> {
    fn end(&self, code: i32, why: &str) {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let took = self.began.elapsed();
        if let Some(counted) = &self.counted {
            // In Go's servers, an error in place of the only message counts as a message, too.
            let has_sent = match self.kind {
                Kind::Unary => true,
                Kind::ClientStream => code == OK,
                Kind::ServerStream => false,
            };
            if has_sent {
                counted.sent();
            }
            counted.handled(code, took);
        }
        if self.state.logs_calls() {
            self.log(code, why, took);
        }
    }

    /// One line, with the fields that Go's library has in version 2, those of version 1 (`system`,
    /// `span.kind`), which filters may know, and who called.
    fn log(&self, code: i32, why: &str, took: Duration) {
        let (service, method) = names(&self.rpc);
        // Not `line!`, which the macros in it use.
        macro_rules! written {
            ($write:ident) => {
                tracing::$write!(
                    protocol = "grpc",
                    system = "grpc",
                    "span.kind" = "server",
                    "grpc.component" = "server",
                    "grpc.service" = service,
                    "grpc.method" = method,
                    "grpc.method_type" = self.kind.name(),
                    "grpc.start_time" = self.start.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    "grpc.code" = code_name(code),
                    "grpc.error" = self.error(code, why),
                    "grpc.time_ms" = milliseconds(took),
                    "grpc.request.claims" = self.claims(),
                    "peer.address" = %self.source,
                    "finished call"
                )
            };
        }
        match level_of(code) {
            Level::INFO => written!(info),
            Level::WARN => written!(warn),
            _ => written!(error),
        }
    }

    /// What the caller is known by.
    fn claims(&self) -> Option<String> {
        let caller = self.caller.get()?;
        self.state.claims(caller)
    }

    /// The error as Go's library writes it; none if there is none.
    fn error(&self, code: i32, why: &str) -> Option<String> {
        if code == OK {
            return None;
        }
        let call = self.state.table().by_rpc(&self.rpc);
        // What is wrong with a request may be said in its own words.
        let is_quoting = code == Code::InvalidArgument as i32
            && call.is_some_and(|call| self.state.has_secrets(call));
        let why = if is_quoting {
            "the request is not valid"
        } else {
            &why[..why.floor_char_boundary(MAX_ERROR)]
        };
        if code == Code::Unknown as i32 {
            return Some(why.to_owned());
        }
        let name = code_name(code);
        Some(format!("rpc error: code = {name} desc = {why}"))
    }
}

/// As Go writes them.
fn milliseconds(took: Duration) -> String {
    (took.as_micros() as f32 / 1000.0).to_string()
}

/// The levels that Go's library has: what a client does wrong is no warning, unless somebody may
/// have to do something.
fn level_of(code: i32) -> Level {
    const INFO: [Code; 5] = [
        Code::NotFound,
        Code::Canceled,
        Code::AlreadyExists,
        Code::InvalidArgument,
        Code::Unauthenticated,
    ];
    const WARN: [Code; 7] = [
        Code::DeadlineExceeded,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unavailable,
    ];
    let is_in = |codes: &[Code]| codes.iter().any(|known| *known as i32 == code);
    if code == OK || is_in(&INFO) {
        Level::INFO
    } else if is_in(&WARN) {
        Level::WARN
    } else {
        Level::ERROR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_levels_are_gos() {
        for (micros, written) in [(0, "0"), (737, "0.737"), (268_642, "268.642")] {
            assert_eq!(milliseconds(Duration::from_micros(micros)), written);
        }
        for (code, name, level) in [
            (0, "OK", Level::INFO),
            (1, "Canceled", Level::INFO),
            (2, "Unknown", Level::ERROR),
            (5, "NotFound", Level::INFO),
            (7, "PermissionDenied", Level::WARN),
            (13, "Internal", Level::ERROR),
            (16, "Unauthenticated", Level::INFO),
            (99, "Unknown", Level::ERROR),
        ] {
            assert_eq!((code_name(code), level_of(code)), (name, level), "{code}");
        }
    }
}
