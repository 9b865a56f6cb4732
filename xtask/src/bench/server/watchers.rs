//! Clients that watch all Applications at the same time. Main type: [`Watchers`].

use super::client;
use anyhow::{bail, ensure};
use http_body_util::BodyExt as _;
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::runtime::Runtime;

/// How the value of the annotation begins that tells a change; its number and a full stop follow.
const CHANGE: &str = "bench-change-";

/// Ended on drop.
pub struct Watchers {
    shared: Arc<Shared>,
    _runtime: Runtime,
}

struct Shared {
    /// The last change that each has seen.
    seen: Vec<AtomicUsize>,
    /// Why the first of those that ended did.
    failure: Mutex<Option<String>>,
}

/// The annotation's value for a change.
pub fn value(change: usize) -> String {
    format!("{CHANGE}{change}.")
}

impl Watchers {
    /// Opens this many watches that begin at a version, so that nothing is sent but changes.
    ///
    /// # Errors
    /// If there are no threads for it.
    pub fn start(
        server: SocketAddr,
        token: &str,
        number: usize,
        version: &str,
    ) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared {
            seen: (0..number).map(|_| AtomicUsize::new(0)).collect(),
            failure: Mutex::default(),
        });
        let path = format!("/api/v1/stream/applications?resourceVersion={version}");
        for one in 0..number {
            let (shared, token, path) = (shared.clone(), token.to_owned(), path.clone());
            runtime.spawn(async move {
                if let Err(e) = follow(server, &token, &path, &shared.seen[one]).await {
                    let mut failure = shared.failure.lock().expect("no panic");
                    if failure.is_none() {
                        *failure = Some(format!("{e:#}"));
                    }
                }
            });
        }
        Ok(Self {
            shared,
            _runtime: runtime,
        })
    }

    /// How many have seen a change.
    ///
    /// # Errors
    /// If one of them ended.
    pub fn informed(&self, change: usize) -> anyhow::Result<usize> {
        if let Some(why) = &*self.shared.failure.lock().expect("no panic") {
            bail!("a watch ended: {why}");
        }
        let seen = self.shared.seen.iter();
        Ok(seen.filter(|s| s.load(Ordering::Relaxed) >= change).count())
    }
}

/// Reads until the stream ends, which it should not.
async fn follow(
    server: SocketAddr,
    token: &str,
    path: &str,
    seen: &AtomicUsize,
) -> anyhow::Result<()> {
    let mut sender = client::rest(server).await?;
    let request = client::request(server, token, path, "text/event-stream")?;
    let answer = sender.send_request(request).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    let mut body = answer.into_body();
    let mut line = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if line.ends_with(b"\n") {
                seen.fetch_max(change(&line).unwrap_or_default(), Ordering::Relaxed);
                line.clear();
            }
        }
    }
    bail!("the stream ended")
}

/// The change that a line tells.
fn change(line: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(line);
    let (number, _) = text.split_once(CHANGE)?.1.split_once('.')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_its_change() {
        let line = format!("data: {{\"annotations\":{{\"a\":\"{}\"}}}}\n", value(41));
        assert_eq!(change(line.as_bytes()), Some(41));
        assert_eq!(change(b"data: {\"annotations\":{}}\n"), None);
        assert_eq!(change(b"bench-change-x.\n"), None);
    }
}
