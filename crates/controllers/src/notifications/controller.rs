//! The state shared by all evaluations.
//!
//! Main type: [`Controller`].

use super::Dependencies;
use crate::runtime::{Merge, Queue, Turn};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tiphys_cluster::app_state::AppKey;
use tiphys_notify::{Config, Ledger, send::Threads};
use tokio_util::sync::CancellationToken;

pub(super) struct Controller {
    pub dependencies: Dependencies,
    pub shutdown: CancellationToken,
    /// The configurations that there are, by namespace.
    pub configs: Mutex<HashMap<String, Arc<Config>>>,
    /// Where threads of Slack began.
    pub threads: Mutex<Threads>,
    pub memos: Mutex<HashMap<AppKey, Memo>>,
    pub queue: Queue<AppKey, Changed>,
}

/// Why an Application is evaluated; there is only one reason.
#[derive(Clone, Copy)]
pub(super) struct Changed;

impl Merge for Changed {
    fn merge(&mut self, _: Self) {}
}

/// What is remembered about an Application between two evaluations.
#[derive(Default)]
pub(super) struct Memo {
    /// Evaluations in a row with a failed delivery.
    pub failures: u32,
    /// What was sent but could not be written to the annotation.
    pub unsaved: Option<Ledger>,
    /// The version that this process has written, whose arrival changes nothing.
    pub written: String,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a lock was held leaves only plain, consistent collections behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller {
    /// The configurations for Applications of a namespace: its own, and that of the control plane.
    pub fn configs_of(&self, namespace: &str) -> Vec<Arc<Config>> {
        let configs = lock(&self.configs);
        let control_plane = self.dependencies.records.namespace.as_str();
        let own = (namespace != control_plane).then_some(namespace);
        let places = own.into_iter().chain([control_plane]);
        places
            .filter_map(|place| configs.get(place).cloned())
            .collect()
    }

    pub fn turn(&self) -> Turn {
        Turn::now(self.dependencies.lease.as_deref())
    }

    /// Evaluates every Application.
    pub fn add_all(&self) {
        for record in self.dependencies.records.applications.list() {
            let meta = &record.meta;
            let key = AppKey::new(&meta.namespace, &meta.name);
            self.queue.add_together(key, Changed);
        }
    }
}
