//! An HTTP client for one API server: connections, credentials and proxy behind one type.
//!
//! Main type: [`Client`]. There is no extra task between a request and its connection.

use crate::request::IMPERSONATE_USER;
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt, util::BoxCloneSyncService};

/// The body of a response.
pub type AnswerBody = UnsyncBoxBody<Bytes, Broken>;

/// Why a response ended prematurely.
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

    /// The same for callers who need kube-rs's own type. `user`: whom to impersonate.
    pub(super) fn into_kube(self, user: Option<HeaderValue>) -> kube::Client {
        let service = self.service.map_request(move |mut request: Request<Body>| {
            if let Some(user) = &user {
                request.headers_mut().insert(IMPERSONATE_USER, user.clone());
            }
            request
        });
        kube::Client::new(service, self.default_namespace)
    }

    /// Sends a request; the caller reads the response's body.
    ///
    /// # Errors
    /// Errors of the connection or of the credentials. An HTTP error status is a response.
    pub fn send(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<AnswerBody>, BoxError>> {
        self.service.clone().oneshot(request).boxed()
    }
}
