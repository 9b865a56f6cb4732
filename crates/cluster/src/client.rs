//! An HTTP client for one API server: connections, credentials and proxy behind one type.
//!
//! Main types: [`Client`], and [`Lane`] for a watch. There is no extra task between a request and
//! its connection.

use crate::{call::IMPERSONATE_USER, traffic::Traffic};
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use kube::client::{AuthError, Body};
use std::sync::Arc;
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
    pub(crate) default_namespace: String,
}

impl Client {
    pub(crate) fn new<S, B>(service: S, default_namespace: &str) -> Self
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
    pub(crate) fn into_kube(self, user: Option<HeaderValue>) -> kube::Client {
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

/// A connection with room for a watch; the slot is freed on drop.
pub(crate) struct Lane {
    pub client: Client,
    pub traffic: Traffic,
    _room: Arc<()>,
}

impl Lane {
    /// `room`: the slot; it is taken while there is a clone of it.
    pub(crate) fn new(client: Client, traffic: Traffic, room: Arc<()>) -> Self {
        Self {
            client,
            traffic,
            _room: room,
        }
    }
}

/// The last error in the chain is the specific one ("connection refused"). The arguments and the
/// output of a credential plugin are never shown.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    loop {
        match error.downcast_ref::<AuthError>() {
            Some(AuthError::AuthExecRun { out, .. }) => {
                return format!(
                    "the program of the exec provider failed ({}); its arguments, environment and output are not shown",
                    out.status
                );
            }
            Some(AuthError::AuthExecParse(_)) => {
                return "the program of the exec provider did not print an ExecCredential"
                    .to_owned();
            }
            Some(AuthError::AuthExecSerialize(_)) => {
                return "the exec provider cannot be told about the cluster".to_owned();
            }
            Some(AuthError::AuthExec(_)) => {
                return "the program of the auth provider failed".to_owned();
            }
            _ => {}
        }
        match error.source() {
            Some(source) => error = source,
            None => return error.to_string(),
        }
    }
}
