//! Connections from outside: TLS, admission of the caller, HTTP/1.1 and HTTP/2. Main function: [`serve`].

use crate::edge::Limits;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
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
/// How long a client may take to answer a ping.
const PING: Duration = Duration::from_secs(15);
/// As Go's limit of a request's line and headers.
const MAX_HEADERS: usize = 1 << 20;
/// How long open requests get at shutdown; watches do not end by themselves.
const DRAIN: Duration = Duration::from_millis(500);

/// Accepts connections until `stop`.
pub async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router, limits: Limits, stop: CancellationToken) {
    let connections = Arc::new(builder(limits));
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
        let (acceptor, router, watcher, connections) = (acceptor.clone(), router.clone(), graceful.watcher(), connections.clone());
        tokio::spawn(async move {
            let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
            let connection = connections.serve_connection(TokioIo::new(tls), TowerToHyperService::new(router)).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
}

/// Clients that say nothing, or never end their headers, are sent away; those that are gone are noticed by pings.
fn builder(limits: Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.headers).max_buf_size(MAX_HEADERS).max_headers(1_000);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(MAX_HEADERS).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.headers)
        .keep_alive_timeout(PING);
    builder
}
