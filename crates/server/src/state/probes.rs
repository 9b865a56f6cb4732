//! What the last connection to a cluster showed, until the controller knows more.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tiphys_api::cluster::ClusterInfo;

/// How long Argo CD shows it.
const LIFE: Duration = Duration::from_secs(600);

/// By the address of the cluster.
#[derive(Default)]
pub struct Probes(Mutex<HashMap<String, (Instant, ClusterInfo)>>);

impl Probes {
    pub fn put(&self, server: &str, info: ClusterInfo) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (at, _)| at.elapsed() < LIFE);
        all.insert(server.to_owned(), (Instant::now(), info));
    }

    pub fn get(&self, server: &str) -> Option<ClusterInfo> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, info) = all.get(server)?;
        (at.elapsed() < LIFE).then(|| info.clone())
    }

    pub fn forget(&self, server: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(server);
    }
}
