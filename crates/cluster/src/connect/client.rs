//! What carries requests to one API server: connections, credentials and all behind one type.
//!
//! Main type: [`Client`]. No task stands between a request and its connection.

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt, util::BoxCloneSyncService};

/// The body of an answer.
pub type AnswerBody = UnsyncBoxBody<Bytes, Broken>;

/// Why an answer ended before its end.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Broken(BoxError);

/// Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    service: BoxCloneSyncService<Request<Body>, Response<AnswerBody>, BoxError>,
    pub(super) default_namespace: String,
}

impl Client {
    pub(super) fn new<S, B>(service: S, default_namespace: &str) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let boxed = |body: B| body.map_err(|e| Broken(e.into())).boxed_unsync();
        let service = service
            .map_response(move |response: Response<B>| response.map(boxed))
            .map_err(Into::into);
        Self {
            service: BoxCloneSyncService::new(service),
            default_namespace: default_namespace.to_owned(),
        }
    }

    /// Sends; the answer's body is read by the caller.
    ///
    /// # Errors
    /// What the connection or the credentials say; a refusal of the server is an answer.
    pub fn send(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<AnswerBody>, BoxError>> {
        self.service.clone().oneshot(request).boxed()
    }
}
