//! Connections from outside, for every server of ours: accepted up to a number, in total and from
//! each peer, and ended when a client keeps one without using it.
//!
//! Main function: [`serve`]; [`Limits`] has the numbers and [`Connections`] counts. A connection
//! waits for its client while no request is open, while a request's body is incomplete, and while
//! an answer is not taken. One that waits too long is ended; one that waits makes room when the
//! number is reached, the longest waiting first, so that silent clients never keep out one that
//! asks something. A connection for which we compute, or on which a watch has nothing to report,
//! does not wait. It knows no route and no caller.

mod body;
mod connection;
mod counted;
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
/// How HTTP is spoken, besides the timeouts.
pub type Builder = auto::Builder<TokioExecutor>;

/// How many connections a server has, and how long a client may make one wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. A quarter of the process's file descriptors is the most in any case.
    pub total: usize,
    /// Of them from one address.
    pub per_peer: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For the first request of a connection to arrive, and for the line and headers of each.
    pub headers: Duration,
    /// For a request's body, from the moment it is wanted.
    pub body: Duration,
    /// Without an open request, for the next one.
    pub idle: Duration,
    /// For a client to take anything of an answer that is ready.
    pub stalled: Duration,
    /// Between two pings of an HTTP/2 connection, and for the answer to each.
    pub ping: Duration,
    /// For open requests at shutdown. Watches do not end by themselves.
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

/// A silent peer is asked after this long whether it is still there, and again this often.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15));
/// After an accept that failed. Without it, a process out of file descriptors would do nothing
/// else.
const PAUSE: Duration = Duration::from_millis(50);

/// Lets the process have as many file descriptors as it may, as programs in Go do. The answer is
/// how many.
pub fn raise_file_limit() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024)
}

/// Serves until `stop`, then lets open requests end within [`Limits::drain`]. `answer` is called
/// with each request and its peer.
pub async fn serve<F, Fut, B>(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
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
        acceptor,
        connections.limits(),
        stop.clone(),
    ));
    let mut tasks = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            // Forgets those that have ended.
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
    // What is left afterwards ends with the set.
    let _ = tokio::time::timeout(limit, async { while tasks.join_next().await.is_some() {} }).await;
}

/// Serves with a service that cannot fail, such as a router that asks for no peer.
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
    serve(listener, acceptor, builder, answer, connections, stop).await;
}

/// Small messages must not wait for more, and a peer that is gone must be noticed when neither side
/// has anything to say.
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

/// Out of file descriptors, or a client that has gone already. The next accept may work, if
/// something is given back.
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
