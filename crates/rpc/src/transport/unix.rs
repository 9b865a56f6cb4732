//! Accepts requests on a unix socket, for roles whose callers are other programs of the same
//! machine. Who may connect is decided by the socket's folder.
//!
//! Main functions: [`bind`] and [`serve`].

use super::{authority::WithAuthority, handle};
use crate::Role;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::Arc,
};
use tokio::{net::UnixListener, sync::Semaphore, task::JoinSet};
use tonic::body::Body;

/// Connections at a time; more wait.
const CONNECTIONS: usize = 512;

/// Listens on a path. What is there from an earlier process is replaced if it is a socket.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            let text = "there is something else than a socket";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    UnixListener::bind(path)
}

/// Serves until `stop` is done; then open connections are closed.
pub async fn serve<S: Role>(
    state: Arc<S>,
    listener: UnixListener,
    stop: impl Future<Output = ()> + Send,
) {
    let mut stop = std::pin::pin!(stop);
    let (places, mut open) = (Arc::new(Semaphore::new(CONNECTIONS)), JoinSet::new());
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => return,
            Some(_) = open.join_next() => continue,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(e) => {
                // No more files can be opened, for example.
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let state = Arc::clone(&state);
        open.spawn(async move {
            let _place = place;
            let answer = tower::service_fn(move |request: http::Request<_>| {
                let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
                handle(Arc::clone(&state), peer, request.map(Body::new))
            });
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http2()
                .max_concurrent_streams(256)
                .adaptive_window(true);
            let service = TowerToHyperService::new(answer);
            let served =
                builder.serve_connection(TokioIo::new(WithAuthority::new(stream)), service);
            if let Err(e) = served.await {
                tracing::debug!("a connection ended: {e}");
            }
        });
    }
}
