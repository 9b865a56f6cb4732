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

/// Bytes of the headers of a request over HTTP/2. Over HTTP/1.1 the limit is larger.
const MAX_HEADERS: u32 = 128 << 10;

/// Serves until the token is cancelled, and for as long as the role's notice.
pub async fn serve<S: Role>(
    state: Arc<S>,
    listener: TcpListener,
    tls: Tls,
    connections: Connections,
    stop: CancellationToken,
) -> io::Result<()> {
    let tls = tls
        .config()
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?
        .map(|config| tiphys_listen::Tls {
            acceptor: TlsAcceptor::from(config),
            redirects: state.redirects_to_tls(),
        });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http2()
        .max_concurrent_streams(1024)
        // Long tokens come in up to 20 cookies of 4 KB.
        .max_header_list_size(MAX_HEADERS)
        .adaptive_window(true);
    let (notice, closing) = (state.notice(), CancellationToken::new());
    let close = async {
        stop.cancelled().await;
        tokio::time::sleep(notice).await;
        closing.cancel();
    };
    let answer = move |request: http::Request<tiphys_listen::Received>, peer| {
        let state = state.clone();
        async move {
            match handle(state, peer, request.map(Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    };
    let serving =
        tiphys_listen::serve(listener, tls, builder, answer, connections, closing.clone());
    tokio::join!(serving, close);
    Ok(())
}
