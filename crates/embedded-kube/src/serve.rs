//! Connections from outside: TLS, the bearer token, HTTP/1.1 and HTTP/2. Main function: [`serve`].

use crate::status::Status;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use http::Response;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long open requests get at shutdown; watches do not end by themselves.
const DRAIN: Duration = Duration::from_millis(500);

/// Accepts connections until `stop`.
pub async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router, token: Arc<str>, stop: CancellationToken) {
    let router = router.layer(middleware::from_fn_with_state(token, check_token));
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, _) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(found) => found,
                Err(error) => {
                    // Out of file descriptors, for example: wait, it may pass.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let (acceptor, router, watcher) = (acceptor.clone(), router.clone(), graceful.watcher());
        tokio::spawn(async move {
            let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
            let builder = Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(tls), TowerToHyperService::new(router)).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
}

/// Health and version may be asked by anyone, as on a real server.
async fn check_token(State(token): State<Arc<str>>, request: Request, next: Next) -> Response<Body> {
    let open = ["/healthz", "/livez", "/readyz", "/version"];
    let path = request.uri().path();
    let free = open.iter().any(|p| path == *p || path.strip_prefix(p).is_some_and(|rest| rest.starts_with('/')));
    let given = request.headers().get(AUTHORIZATION).and_then(|v| v.to_str().ok());
    let given = given.and_then(|v| v.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, t)| t.trim());
    if free || given.is_some_and(|g| same(g.as_bytes(), token.as_bytes())) {
        return next.run(request).await;
    }
    let mut response = crate::http::failure(&Status::unauthorized());
    response.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
    response
}

/// Compares in a time that does not tell where the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}
