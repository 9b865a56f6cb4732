//! Incoming connections for all our servers: accepts up to a limit, in total and per peer, and
//! closes connections that a client keeps open without using them.
//!
//! Main function: [`serve`]; [`Limits`] has the limits and [`Connections`] counts. A connection
//! waits for its client while no request is open, while a request's body is incomplete, and while a
//! response is not being read. One that waits too long is closed. At the limit, waiting connections
//! are closed to make room, the longest waiting first, so that idle clients never block active
//! ones. A connection does not count as waiting while we compute, or while a watch has nothing to
//! report. This crate knows nothing about routes and callers.

mod body;
mod connection;
mod counted;
mod redirect;
mod table;

pub use body::{Received, Sent, TooSlow};
pub use table::Connections;

use connection::Setting;
use http::{Request, Response};
use http_body::Body;
use hyper_util::{rt::TokioExecutor, server::conn::auto};
use std::{
    convert::Infallible, error::Error, future::Future, io, net::IpAddr, sync::Arc, time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

pub type BoxError = Box<dyn Error + Send + Sync>;
/// The HTTP settings other than timeouts.
pub type Builder = auto::Builder<TokioExecutor>;

/// How many connections a server accepts, and how long a client may keep one waiting.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections; at most a quarter of the process's file descriptors.
    pub total: usize,
    /// Maximum number of connections from one address.
    pub per_peer: usize,
    /// Timeout for the TLS handshake.
    pub handshake: Duration,
    /// Timeout for the first request of a connection, and for the request line and headers of each
    /// request.
    pub headers: Duration,
    /// Timeout for a request's body, from the moment it is read.
    pub body: Duration,
    /// Timeout for the next request while none is open.
    pub idle: Duration,
    /// Timeout for a client to accept any part of a response that is ready.
    pub stalled: Duration,
    /// Interval between pings of an HTTP/2 connection, and the timeout for each reply.
    pub ping: Duration,
    /// Timeout for open requests at shutdown. Watches do not end by themselves.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            total: 2_000,
            per_peer: 1_000,
            handshake: seconds(10),
            headers: seconds(30),
            body: seconds(120),
            idle: seconds(120),
            stalled: seconds(300),
            ping: seconds(20),
            drain: seconds(2),
        }
    }
}

/// TCP keep-alive: probes start after this idle time and are repeated at this interval.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15));
/// Delay after a failed accept. Without it, a process out of file descriptors would spin.
const PAUSE: Duration = Duration::from_millis(50);

/// Raises the file descriptor limit to the maximum, as Go programs do, and returns it.
pub fn raise_file_limit() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024)
}

/// How a server encrypts.
#[derive(Clone)]
pub struct Tls {
    pub acceptor: TlsAcceptor,
    /// Whoever speaks plain HTTP is sent to the same address with `https://`, instead of being
    /// disconnected.
    pub redirects: bool,
}

impl From<TlsAcceptor> for Tls {
    fn from(acceptor: TlsAcceptor) -> Self {
        Self {
            acceptor,
            redirects: false,
        }
    }
}

/// Serves until `stop`, then lets open requests finish within [`Limits::drain`]. `answer` is called
/// with each request, including its peer.
pub async fn serve<F, Fut, B>(
    listener: TcpListener,
    tls: Option<Tls>,
    builder: Builder,
    answer: F,
    connections: Connections,
    stop: CancellationToken,
) where
    F: Fn(Request<Received>, IpAddr) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let setting = Arc::new(Setting::new(
        builder,
        tls,
        connections.limits(),
        stop.clone(),
    ));
    let mut tasks = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            // Removes finished tasks.
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    after_failure(&error, &connections).await;
                    continue;
                }
            },
        };
        let peer = peer.ip().to_canonical();
        let Some(place) = connections.admit(peer) else {
            connections.refused(peer);
            continue;
        };
        prepare(&stream);
        let (setting, answer) = (setting.clone(), answer.clone());
        tasks.spawn(async move {
            setting
                .run(stream, place, move |request| answer(request, peer))
                .await
        });
    }
    drop(listener);
    let limit = connections.limits().drain;
    // Dropping the set aborts the remaining tasks.
    let _ = tokio::time::timeout(limit, async { while tasks.join_next().await.is_some() {} }).await;
}

/// Serves with an infallible service, such as a router that does not need the peer.
pub async fn serve_router<S, B>(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    builder: Builder,
    router: S,
    connections: Connections,
    stop: CancellationToken,
) where
    S: tower::Service<Request<Received>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let answer = move |request, _| {
        let router = router.clone();
        async move {
            router
                .oneshot(request)
                .await
                .unwrap_or_else(|never| match never {})
        }
    };
    serve(
        listener,
        acceptor.map(Tls::from),
        builder,
        answer,
        connections,
        stop,
    )
    .await;
}

/// Sends small messages immediately, and detects peers that are gone while both sides are idle.
fn prepare(stream: &TcpStream) {
    let (time, interval) = KEEP_ALIVE;
    let keep_alive = socket2::TcpKeepalive::new()
        .with_time(time)
        .with_interval(interval);
    let set = stream
        .set_nodelay(true)
        .and_then(|()| socket2::SockRef::from(stream).set_tcp_keepalive(&keep_alive));
    if let Err(error) = set {
        tracing::debug!(%error, "cannot set the options of a connection");
    }
}

/// Handles a failed accept: there are no file descriptors left, or the client is already gone. The
/// next accept may succeed if a connection is closed.
async fn after_failure(error: &io::Error, connections: &Connections) {
    if matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    ) {
        return;
    }
    let ended = connections.make_room();
    tracing::warn!(%error, open = connections.open(), ended, "cannot accept a connection");
    tokio::time::sleep(PAUSE).await;
}
