//! How many repositories are read at the same time. Main type: [`Hosts`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct Hosts {
    all: Arc<Semaphore>,
    per_host: usize,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The permission to read.
pub(super) struct Turn {
    _host: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

/// Host and port of a URL, in small letters.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.to_lowercase()
}

impl Hosts {
    pub fn new(all: usize, per_host: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            per_host,
            hosts: Mutex::default(),
        }
    }

    /// Waits for its turn: first that of the host, so that a slow host does not hold all places.
    pub async fn turn(&self, url: &str) -> Turn {
        let host = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody waits for or uses are like new ones.
            hosts.retain(|_, turns| Arc::strong_count(turns) > 1);
            let turns = hosts.entry(host(url));
            Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(self.per_host))))
        };
        // A semaphore is never closed.
        let host = host.acquire_owned().await.ok();
        Turn {
            _host: host,
            _all: Arc::clone(&self.all).acquire_owned().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn one_host_does_not_hold_all_places() {
        let hosts = Hosts::new(3, 2);
        let slow = "https://user@Slow.example:443/charts";
        let first = hosts.turn(slow).await;
        let _second = hosts.turn("https://slow.example:443/other").await;
        assert!(hosts.turn(slow).now_or_never().is_none());
        let other = hosts.turn("oci://other.example/x").now_or_never();
        assert!(other.is_some());
        assert!(
            hosts.turn("https://third.example").now_or_never().is_none(),
            "three are read"
        );
        drop(first);
        assert!(hosts.turn(slow).now_or_never().is_some());
    }
}
