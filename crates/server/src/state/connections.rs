//! The results of the last connection tests of repositories: a list must not contact each of them
//! every time.

use crate::access::CredentialUse;
use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};
use tiphys_api::cluster::ConnectionState;

/// Failures are cached for a shorter time than successes, since they may be fixed soon.
const GOOD_FOR: Duration = Duration::from_secs(600);
const BAD_FOR: Duration = Duration::from_secs(30);

/// What the credentials are for, project and URL.
type Key = (CredentialUse, String, String);

/// The latest results.
#[derive(Default)]
pub(crate) struct Connections(Mutex<HashMap<Key, (Instant, ConnectionState)>>);

impl Connections {
    /// Returns the cached result, or `None` if it is too old.
    pub(crate) fn get(&self, key: &Key) -> Option<ConnectionState> {
        let known = self.0.lock().ok()?;
        let (at, state) = known.get(key)?;
        let lasts = if state.status == "Successful" {
            GOOD_FOR
        } else {
            BAD_FOR
        };
        (at.elapsed() < lasts).then(|| state.clone())
    }

    pub(crate) fn put(&self, key: Key, state: ConnectionState) {
        if let Ok(mut known) = self.0.lock() {
            known.retain(|_, (at, _)| at.elapsed() < GOOD_FOR);
            known.insert(key, (Instant::now(), state));
        }
    }

    /// Discards all results after a repository was changed.
    pub(crate) fn forget(&self) {
        if let Ok(mut known) = self.0.lock() {
            known.clear();
        }
    }
}
