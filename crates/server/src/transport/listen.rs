//! Accepts connections, HTTP/1.1 and HTTP/2, with or without TLS, and ends them gracefully.

use super::{handle, tls::Tls};
use crate::server::State;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use std::{io, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(30);
/// Watches end only when their client goes: they get this long at shutdown.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves until the token is cancelled.
pub async fn serve(state: Arc<State>, listener: TcpListener, tls: Tls, shutdown: CancellationToken) -> io::Result<()> {
    let acceptor = tls.config().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?.map(TlsAcceptor::from);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = shutdown.cancelled() => break,
            // Forgets those that have ended.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(e) => {
                    // Out of file descriptors, or a client that has gone already: the next may work.
                    tracing::warn!(error = %e, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        // Small messages must not wait for more.
        let _ = stream.set_nodelay(true);
        let (state, acceptor, watcher) = (state.clone(), acceptor.clone(), graceful.watcher());
        connections.spawn(async move {
            match acceptor {
                None => connection(state, stream, peer.ip(), watcher).await,
                Some(acceptor) => secured(state, acceptor, stream, peer.ip(), watcher).await,
            }
        });
    }
    drop(listener);
    // What is left after the drain ends with the set.
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    Ok(())
}

async fn secured(state: Arc<State>, acceptor: TlsAcceptor, stream: TcpStream, peer: IpAddr, watcher: Watcher) {
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => connection(state, stream, peer, watcher).await,
        Ok(Err(e)) => tracing::debug!(%peer, error = %e, "no TLS handshake"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
    }
}

async fn connection<S>(state: Arc<State>, stream: S, peer: IpAddr, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| handle(state.clone(), peer, request.map(Body::new)));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .max_concurrent_streams(1024)
        .adaptive_window(true);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    if let Err(e) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(%peer, error = %e, "connection ended");
    }
}
