//! The ApplicationSet controller: generates Applications and keeps those in the API server equal to
//! them.
//!
//! Main function: [`run`]. What a set does is decided by the crate `appset`; here answers are
//! fetched, plans carried out and statuses written. An answer that is missing ends the reconcile
//! with nothing created, updated or deleted.

mod deleted;
mod events;
mod execute;
mod feeds;
mod memory;
mod reconcile;
mod settings;
mod twice;
mod update;

pub use crate::metrics::sets::{SetMetrics, SetReport};
pub use settings::ControllerSettings;

use crate::runtime::{self, Clock, Merge, Queue, Seats, Turn, contain, pause};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tiphys_api::ApplicationSet;
use tiphys_cluster::{
    AppKey,
    leases::Leases,
    records::{Events, Records, Store},
};
use tiphys_sources::{Answers, Sources};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Asks for a reconcile with revisions looked up again.
const REFRESH: &str = tiphys_api::constants::APPLICATION_SET_REFRESH;
/// When that was asked for, if it is known.
const REFRESH_TIMESTAMP: &str = tiphys_api::constants::APPLICATION_SET_REFRESH_TIMESTAMP;
/// The name under which Events are written.
const COMPONENT: &str = "argocd-applicationset-controller";

/// The controller's dependencies.
#[derive(Clone)]
pub struct Dependencies {
    pub records: Records,
    pub sets: Store<ApplicationSet>,
    /// Patterns of the namespaces besides the control plane's whose sets count.
    pub namespaces: Vec<String>,
    pub sources: Sources,
    /// Concurrent reconciles.
    pub workers: usize,
    /// Settings that override those of argocd-cmd-params-cm.
    pub settings: ControllerSettings,
    /// The lease of the one replica that works; `None`: there is no other replica.
    pub leases: Option<Arc<Leases>>,
    pub metrics: SetMetrics,
    pub clock: Clock,
}

/// Why a set is reconciled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// Revisions are looked up again.
    pub is_fresh: bool,
}

impl Merge for Reason {
    fn merge(&mut self, other: Self) {
        self.is_fresh |= other.is_fresh;
    }
}

/// The state shared by all reconciles.
struct Controller {
    records: Records,
    sets: Store<ApplicationSet>,
    namespaces: Vec<String>,
    metrics: SetMetrics,
    answers: Answers,
    settings: ControllerSettings,
    events: Events,
    leases: Option<Arc<Leases>>,
    clock: Clock,
    queue: Queue<AppKey, Reason>,
    /// Failures in a row, by set.
    failures: Mutex<HashMap<AppKey, u32>>,
    memories: Mutex<HashMap<AppKey, memory::Memory>>,
}

/// Runs until cancelled; running reconciles are finished first.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) {
    let ready = async {
        // Both wait for definitions that are missing; what is refused is said and tried again.
        while let Err(error) = dependencies.sets.wait_ready().await {
            tracing::warn!(%error, "ApplicationSets cannot be read");
            tokio::time::sleep(pause(8)).await;
        }
    };
    tokio::select! { () = shutdown.cancelled() => return, () = ready => {} }
    let workers = dependencies.workers.max(1);
    let answers = Answers {
        records: dependencies.records.clone(),
        sources: dependencies.sources,
        new_git_file_globbing: dependencies.settings.new_git_file_globbing,
        hosts: dependencies.settings.hosts.clone(),
        clock: dependencies.clock.clone(),
    };
    let controller = Arc::new(Controller {
        answers,
        events: dependencies.records.events(COMPONENT),
        records: dependencies.records,
        sets: dependencies.sets,
        namespaces: dependencies.namespaces,
        metrics: dependencies.metrics,
        settings: dependencies.settings,
        leases: dependencies.leases,
        clock: dependencies.clock,
        queue: Queue::default(),
        failures: Mutex::default(),
        memories: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    let (feeds, stop) = (feeds::follow(controller.clone()), shutdown.clone());
    tasks.spawn(async move {
        tokio::select! { () = stop.cancelled() => {}, () = feeds => {} }
    });
    let (time, stop) = (controller.clone(), shutdown.clone());
    tasks.spawn(async move {
        tokio::select! { () = stop.cancelled() => {}, () = time.queue.keep_time() => {} }
    });
    let reconcile = async |controller: Arc<Controller>, key: AppKey, reason| {
        controller.work(&key, reason).await;
    };
    tasks.spawn(runtime::work(
        controller.clone(),
        |controller| &controller.queue,
        Seats::new(workers),
        reconcile,
    ));
    shutdown.cancelled().await;
    controller.queue.close();
    while tasks.join_next().await.is_some() {}
    if let Some(leases) = &controller.leases {
        leases.release().await;
    }
}

impl Controller {
    fn turn(&self) -> Turn {
        Turn::now(self.leases.as_deref())
    }

    /// One reconcile, isolated: errors and panics do not affect other sets.
    async fn work(&self, key: &AppKey, reason: Reason) {
        let Turn::Ours(held) = self.turn() else {
            self.forget_last(None);
            return;
        };
        let began = Instant::now();
        let reconcile = contain(Box::pin(self.reconcile(key, reason)));
        let result = held.scope(reconcile).await;
        match self.sets.get(&key.namespace, &key.name) {
            Some(_) => self.metrics.reconciled(key, began.elapsed()),
            None => self.metrics.gone(key),
        }
        if held.is_lost() {
            // Its result may be wrong, and another replica works now.
            self.forget_last(None);
            return;
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let again = match result {
            Ok(Ok(after)) => {
                failures.remove(key);
                after
            }
            Ok(Err(error)) => {
                let count = failures.entry(key.clone()).or_default();
                *count += 1;
                let pause = pause(*count);
                tracing::warn!(
                    applicationset = key.name,
                    namespace = key.namespace,
                    %error,
                    "reconciling the ApplicationSet failed; trying again in {pause:?}"
                );
                Some(pause)
            }
            Err(panic) => {
                let count = failures.entry(key.clone()).or_default();
                *count += 1;
                tracing::error!(
                    applicationset = key.name,
                    namespace = key.namespace,
                    panic,
                    "reconciling the ApplicationSet panicked"
                );
                Some(pause(*count))
            }
        };
        self.queue.visit_after(key, Reason::default(), again);
    }

    fn memory(&self, key: &AppKey) -> memory::Memory {
        let memories = self.memories.lock();
        let memories = memories.unwrap_or_else(PoisonError::into_inner);
        memories.get(key).cloned().unwrap_or_default()
    }

    /// The sets that were reconciled; some of them may be gone.
    fn remembered(&self) -> Vec<AppKey> {
        let memories = self.memories.lock();
        let memories = memories.unwrap_or_else(PoisonError::into_inner);
        memories.keys().cloned().collect()
    }

    /// `None`: forgets it.
    fn remember(&self, key: &AppKey, memory: Option<memory::Memory>) {
        let memories = self.memories.lock();
        let mut memories = memories.unwrap_or_else(PoisonError::into_inner);
        match memory {
            Some(memory) => memories.insert(key.clone(), memory),
            None => memories.remove(key),
        };
    }

    /// Forgets what reconciles left, of one set or of all: others have changed it since.
    fn forget_last(&self, key: Option<&AppKey>) {
        let memories = self.memories.lock();
        let mut memories = memories.unwrap_or_else(PoisonError::into_inner);
        for (of, memory) in memories.iter_mut() {
            if key.is_none_or(|key| key == of) {
                memory.last = None;
            }
        }
    }

    fn now(&self) -> tiphys_api::meta::Time {
        (self.clock)().into()
    }
}
