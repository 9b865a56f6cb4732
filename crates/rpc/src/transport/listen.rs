//! Accepts requests over HTTP/1.1 and HTTP/2, with or without TLS.

use super::{handle, tls::Tls};
use crate::Role;
use hyper_util::rt::TokioExecutor;
use std::{io, sync::Arc};
use tiphys_listen::{Builder, Connections};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

/// Serves until the token is cancelled.
pub async fn serve<S: Role>(
    state: Arc<S>,
    listener: TcpListener,
    tls: Tls,
    connections: Connections,
    stop: CancellationToken,
) -> io::Result<()> {
    let acceptor = tls
        .config()
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?
        .map(TlsAcceptor::from);
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http2()
        .max_concurrent_streams(1024)
        .adaptive_window(true);
    let answer = move |request: http::Request<tiphys_listen::Received>, peer| {
        let state = state.clone();
        async move {
            match handle(state, peer, request.map(Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    };
    tiphys_listen::serve(listener, acceptor, builder, answer, connections, stop).await;
    Ok(())
}
