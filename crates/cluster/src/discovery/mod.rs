//! Which kinds a cluster serves, in which versions and scopes.
//!
//! Main types: [`Kinds`], an immutable result, and [`Discovery`], which keeps the latest one. A
//! group that fails keeps its previously known kinds and never hides the others. It knows nothing
//! about objects.

mod fetch;
mod kinds;
mod wire;

pub use kinds::{Kind, Kinds};

use crate::{connect::Cluster, error::Error};
use std::{
    sync::{Arc, RwLock},
    time::Duration,
};
use tiphys_apimachinery::{GroupKind, Gvk};
use tiphys_engine::types::KindInfo;
use tokio::{sync::watch, time::Instant};

/// Minimum interval of discovery, however many callers miss a kind.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// The name of the failure if no group except the core one could be discovered.
const ALL_GROUPS: &str = "apis";

/// Keeps the newest [`Kinds`] of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Discovery {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    kinds: RwLock<Arc<Kinds>>,
    changed: watch::Sender<u64>,
    last: tokio::sync::Mutex<Last>,
}

/// The last discovery.
struct Last {
    began: Instant,
    ended: Instant,
    failed: Option<Error>,
}

impl Discovery {
    /// Discovers the cluster's kinds. Fails only if nothing could be read at all.
    pub async fn new(cluster: Cluster) -> Result<Self, Error> {
        let began = Instant::now();
        let kinds = fetch::fetch(&cluster, &Kinds::default()).await?;
        let last = Last {
            began,
            ended: Instant::now(),
            failed: None,
        };
        let shared = Shared {
            cluster,
            kinds: RwLock::new(Arc::new(kinds)),
            changed: watch::Sender::new(0),
            last: tokio::sync::Mutex::new(last),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// The latest result.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.shared
            .kinds
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Increases whenever the set of kinds or of failures changes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Runs discovery again, however recent the last one is. Concurrent callers wait for each
    /// other; on failure the old result is kept.
    pub async fn refresh(&self) -> Result<Arc<Kinds>, Error> {
        let mut last = self.shared.last.lock().await;
        self.refresh_locked(&mut last).await
    }

    /// The result of a discovery that began after `moment`: callers that wait for each other share
    /// one, and its error.
    pub async fn after(&self, moment: Instant) -> Result<Arc<Kinds>, Error> {
        let mut last = self.shared.last.lock().await;
        if last.began <= moment {
            return self.refresh_locked(&mut last).await;
        }
        match &last.failed {
            Some(error) => Err(error.clone()),
            None => Ok(self.kinds()),
        }
    }

    async fn refresh_locked(&self, last: &mut Last) -> Result<Arc<Kinds>, Error> {
        let began = Instant::now();
        let result = self.discover().await;
        *last = Last {
            began,
            ended: Instant::now(),
            failed: result.as_ref().err().cloned(),
        };
        result
    }

    async fn discover(&self) -> Result<Arc<Kinds>, Error> {
        let old = self.kinds();
        let new = Arc::new(fetch::fetch(&self.shared.cluster, &old).await?);
        let same = old.all() == new.all() && old.failures == new.failures;
        *self
            .shared
            .kinds
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = new.clone();
        if !same {
            self.shared.changed.send_modify(|n| *n += 1);
        }
        Ok(new)
    }

    /// The kind in this version. If it is unknown, runs discovery again (a CRD may have been
    /// added), with rate limiting.
    pub async fn resolve(&self, gvk: &Gvk) -> Result<Arc<Kind>, Error> {
        if let Some(kind) = self.kinds().get(gvk) {
            return Ok(kind.clone());
        }
        let mut last = self.shared.last.lock().await;
        if self.kinds().get(gvk).is_none() && last.ended.elapsed() >= REFRESH_INTERVAL {
            self.refresh_locked(&mut last).await?;
        }
        drop(last);
        let kinds = self.kinds();
        kinds.get(gvk).cloned().ok_or_else(|| Error::UnknownKind {
            api_version: gvk.api_version(),
            kind: gvk.kind.clone(),
        })
    }
}

impl KindInfo for Discovery {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        self.kinds().is_namespaced(gk)
    }

    fn serves(&self, gvk: &Gvk) -> bool {
        self.kinds().serves(gvk)
    }

    fn installed(&self, gk: &GroupKind) -> Option<Gvk> {
        self.kinds().installed(gk)
    }

    fn serves_version(&self, group: &str, version: &str) -> bool {
        self.kinds().serves_version(group, version)
    }

    fn failure(&self, gk: &GroupKind) -> Option<String> {
        self.kinds().failure(gk)
    }
}
