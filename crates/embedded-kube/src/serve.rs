//! Connections from outside: TLS, HTTP/1.1 and HTTP/2. Main function: [`serve`].

use axum::Router;
use hyper_util::rt::TokioExecutor;
use tiphys_listen::{Builder, Connections, Limits};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// As Go's limit of a request's line and headers.
const MAX_HEADERS: usize = 1 << 20;

/// Accepts connections until `stop`.
pub async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(MAX_HEADERS).max_headers(1_000);
    builder
        .http2()
        .max_header_list_size(u32::try_from(MAX_HEADERS).unwrap_or(u32::MAX));
    tiphys_listen::serve_router(
        listener,
        Some(acceptor),
        builder,
        router,
        Connections::new(limits),
        stop,
    )
    .await;
}
