//! What the transports need from a role. Main trait: [`Role`].

use crate::{ApiError, Call, CallCounts, Network, Reply, Table};
use futures::{future::BoxFuture, stream::BoxStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::{net::IpAddr, sync::Arc, time::Duration};
use tonic::body::Body;

/// What answers say unless a role wants something else.
pub const FRAME_OPTIONS: &str = "sameorigin";
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; \
     style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'self'";

/// A stream as a file that a browser saves.
pub struct StreamFile {
    pub name: String,
    /// What a message, in JSON, adds to the file; `None` ends it.
    pub content: fn(&[u8]) -> Option<Vec<u8>>,
}

/// Why a role should get no requests now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unhealthy {
    /// It ends, or has not begun: nothing is wrong.
    Absent,
    Broken(String),
}

impl Unhealthy {
    /// What `/healthz` answers, which anybody may read.
    pub fn text(&self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Broken(why) => format!("{why}\n"),
        }
    }
}

/// The state of a role, shared by its handlers.
pub trait Role: Sized + Send + Sync + 'static {
    /// The caller of a request.
    type Caller: Clone + Send + Sync + 'static;
    /// A row's rule for who may call it.
    type Access: Send + Sync + 'static;

    fn table(&self) -> &Table<Self>;

    /// The caller of a request, if `access` lets them call; called before the message is read.
    /// `None`: for no call in particular.
    fn caller(
        &self,
        source: IpAddr,
        headers: &HeaderMap,
        access: Option<&Self::Access>,
    ) -> impl Future<Output = Result<Self::Caller, ApiError>> + Send;

    /// Why a client of gRPC that calls itself so is not served, if it is not.
    fn turns_away(&self, _user_agent: &str) -> Option<ApiError> {
        None
    }

    /// Whether plain HTTP, where this role speaks TLS, is redirected: browsers come to a page by
    /// both.
    fn redirects_to_tls(&self) -> bool {
        false
    }

    /// Maximum size of a request message from this caller, in either encoding.
    fn max_request(&self, caller: &Self::Caller) -> usize;

    /// Forwards the messages of a stream for as long as the caller may receive them.
    fn guard(
        &self,
        _caller: &Self::Caller,
        messages: BoxStream<'static, Result<Vec<u8>, ApiError>>,
    ) -> BoxStream<'static, Result<Vec<u8>, ApiError>> {
        messages
    }

    /// The `Set-Cookie` headers with a new token for a caller whose session is about to expire.
    /// Called before a REST call runs, because the call may end the session.
    fn renewed(
        &self,
        _caller: &Self::Caller,
        _headers: &HeaderMap,
    ) -> impl Future<Output = Vec<HeaderValue>> + Send {
        std::future::ready(Vec::new())
    }

    /// The `Set-Cookie` header that gives a browser this token; an empty token deletes the cookie.
    fn cookie(&self, _token: &str) -> Option<HeaderValue> {
        None
    }

    /// Answers a request that is neither gRPC nor a call of the table, or returns it. There is no
    /// caller here: the reply must be public, or the method must authenticate the request itself.
    fn other(
        self: &Arc<Self>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, Request<Body>>> {
        Box::pin(std::future::ready(Err(request)))
    }

    /// A path prefix that a proxy keeps, such as `/argo-cd`; empty for none.
    fn root_path(&self) -> &str {
        ""
    }

    /// Whether variables of this path may have escaped slashes; elsewhere those divide a path.
    fn keeps_escapes(&self, _path: &str) -> bool {
        false
    }

    /// Whether clients may have escaped this path twice; asked only where escapes are kept.
    fn unescapes_twice(&self, _path: &str) -> bool {
        false
    }

    /// Whether answers are compressed for clients that accept it.
    fn compresses(&self) -> bool {
        true
    }

    /// Whether a request that is not a GET may have this content type. A form on another site
    /// cannot send JSON, so a session cookie alone is not enough to change something.
    fn takes(&self, content_type: &str) -> bool {
        content_type.trim().eq_ignore_ascii_case("application/json")
    }

    /// `X-Frame-Options` of answers; empty for none.
    fn frame_options(&self) -> &str {
        FRAME_OPTIONS
    }

    /// `Content-Security-Policy` of answers; empty for none.
    fn content_security_policy(&self) -> &str {
        CONTENT_SECURITY_POLICY
    }

    /// Proxies whose X-Forwarded-For header is trusted.
    fn trusted_proxies(&self) -> &[Network] {
        &[]
    }

    /// Runs a call: `answer` is what its handler does. A role can look at how it ends, or refuse to
    /// run it.
    fn around(
        self: &Arc<Self>,
        _call: &Call<Self>,
        _caller: &Self::Caller,
        answer: BoxFuture<'static, Result<Reply, ApiError>>,
    ) -> BoxFuture<'static, Result<Reply, ApiError>> {
        answer
    }

    /// Called for a request to a call that has no caller: it is not run.
    fn refused(
        &self,
        _call: &Call<Self>,
        _source: IpAddr,
        _error: &ApiError,
    ) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Where calls are counted; `None`: nowhere.
    fn counts(&self) -> Option<&CallCounts> {
        None
    }

    /// Whether calls are logged when they end.
    fn logs_calls(&self) -> bool {
        false
    }

    /// What the log tells of a caller, as JSON. It must not contain secrets.
    fn claims(&self, _caller: &Self::Caller) -> Option<String> {
        None
    }

    /// Whether requests of a call contain secrets, so that not even its errors may quote them in
    /// the log.
    fn has_secrets(&self, _call: &Call<Self>) -> bool {
        false
    }

    /// What `/healthz` is asked for; with `is_full` also whether what the role reads can be read.
    fn health(&self, _is_full: bool) -> impl Future<Output = Result<(), Unhealthy>> + Send {
        std::future::ready(Ok(()))
    }

    /// How long connections are still accepted when the role ends, so that whoever asks for its
    /// health can send clients elsewhere.
    fn notice(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether the lists of a call keep their metadata where only some fields are asked for.
    fn keeps_list_metadata(&self, _call: &Call<Self>) -> bool {
        true
    }

    /// Whether a client may ask for some fields of the call's answer only.
    fn selects_fields(&self, _call: &Call<Self>) -> bool {
        true
    }

    /// How the stream of a REST call is sent as a file, where its query asks for that.
    fn file(&self, _call: &Call<Self>, _query: &str) -> Option<StreamFile> {
        None
    }
}
