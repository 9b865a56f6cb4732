//! What a role tells the transports. Main trait: [`Role`].

use crate::{ApiError, Call, Network, Table};
use futures::{future::BoxFuture, stream::BoxStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::{net::IpAddr, sync::Arc};
use tonic::body::Body;

/// The state of a role, which its handlers share.
pub trait Role: Sized + Send + Sync + 'static {
    /// Whom a request comes from, as far as known.
    type Caller: Clone + Send + Sync + 'static;
    /// What a row says of who may call.
    type Access: Send + Sync + 'static;

    fn table(&self) -> &Table<Self>;

    /// The caller of a request, if `access` lets them call; asked before anything of the message is
    /// read. `None`: there is no such call, which should look like one that wants a session.
    fn caller(
        &self,
        source: IpAddr,
        headers: &HeaderMap,
        access: Option<&Self::Access>,
    ) -> impl Future<Output = Result<Self::Caller, ApiError>> + Send;

    /// The most bytes of a request message of this caller, in either encoding.
    fn max_request(&self, caller: &Self::Caller) -> usize;

    /// The messages of a stream, for as long as the caller may have them.
    fn guard(
        &self,
        _caller: &Self::Caller,
        messages: BoxStream<'static, Result<Vec<u8>, ApiError>>,
    ) -> BoxStream<'static, Result<Vec<u8>, ApiError>> {
        messages
    }

    /// A new token for a caller whose session is about to end. Asked before a REST call is made: the
    /// call may be what ends the session.
    fn renewed(&self, _caller: &Self::Caller) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// The `Set-Cookie` header that gives a browser this token; empty takes the cookie away.
    fn cookie(&self, _token: &str) -> Option<HeaderValue> {
        None
    }

    /// Answers a request that is no gRPC and for no call; others are given back. What answers here
    /// has no caller: it must be for everybody, or check by itself who asks.
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

    /// Proxies whose X-Forwarded-For says where a request comes from.
    fn trusted_proxies(&self) -> &[Network] {
        &[]
    }

    /// A call begins.
    fn started(&self, _call: &Call<Self>) {}

    /// A call was answered, or its stream was opened; `None` is success.
    fn handled(&self, _call: &Call<Self>, _error: Option<&ApiError>) {}
}
