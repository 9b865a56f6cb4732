//! The Application controller: the state shared by all its reconciles.
//!
//! Main type: [`Controller`].

use super::{memo::Memo, refresh::Reason, shards::Shards};
use crate::{
    metrics::Metrics,
    runtime::{Clock, Queue},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tiphys_api::{AppProject, Application};
use tiphys_cluster::{
    app_state::{AppKey, AppStates},
    clusters::Clusters,
    records::{Events, Records},
};
use tiphys_engine::spec;
use tiphys_sources::Sources;

/// The controller.
pub struct Controller {
    pub(super) records: Records,
    pub(super) clusters: Clusters,
    pub(super) sources: Sources,
    pub(super) states: AppStates,
    pub(super) metrics: Metrics,
    pub(super) shards: Option<Shards>,
    pub(super) events: Events,
    pub(super) wave_delay: Option<u32>,
    pub(super) clock: Clock,
    pub(super) queue: Queue<AppKey, Reason>,
    pub(super) memos: Mutex<HashMap<AppKey, Memo>>,
}

impl Controller {
    pub fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.records.project(name)
    }

    /// The project of an Application, or why there is none, with Argo CD's message.
    pub fn project_of(&self, app: &Application) -> Result<Arc<AppProject>, String> {
        let name = spec::project_name(app);
        self.project(name).ok_or_else(|| {
            format!("error getting app project {name:?}: appproject.argoproj.io {name:?} not found")
        })
    }

    /// The clusters that an Application may use.
    pub fn destinations(&self) -> Arc<[spec::Destination]> {
        self.records.settings().destinations.clone()
    }

    pub fn memos(&self) -> std::sync::MutexGuard<'_, HashMap<AppKey, Memo>> {
        self.memos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }
}
