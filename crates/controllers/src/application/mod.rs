//! The Application controller: reconciles every Application when something that affects it may have
//! changed.
//!
//! Main type: [`Controller`]. Each Application is reconciled by one worker at a time ([`context`]).
//! Triggers are changes of the Application itself, its live objects, projects and settings, and the
//! clock.

mod auto_sync;
mod compare;
mod context;
mod delete;
mod delete_hooks;
mod ending;
mod error;
mod identity;
mod impersonation;
mod known;
mod lookup;
mod memo;
mod next;
mod operation;
mod prepare;
mod projects;
mod publish;
mod quarantine;
mod refresh;
mod repeats;
mod results;
mod retry;
mod rollback;
mod shards;
mod sources;
mod start;
mod status;
mod supersede;
mod timeouts;
mod touched;

use crate::{
    metrics::Metrics,
    runtime::{Clock, Queue, Seats},
};
use context::ReconcileContext;
use memo::Memo;
use next::Next;
use refresh::{Level, Reason};
pub use shards::Sharding;
use shards::{Shards, Turn};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tiphys_api::{Application, constants};
use tiphys_cluster::{
    Change,
    app_state::{AppKey, AppStates},
    clusters::{Clusters, LiveCluster},
    records::{Events, RecordChange, Records},
};
use tiphys_sources::Sources;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Live objects change in bursts; one reconcile is enough for a burst.
const SETTLE: Duration = Duration::from_millis(10);
/// Maximum delay before a failed reconcile is retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What the controller depends on.
#[derive(Clone)]
pub struct Dependencies {
    pub records: Records,
    pub clusters: Clusters,
    pub sources: Sources,
    pub states: AppStates,
    /// Concurrent reconciles.
    pub workers: usize,
    pub metrics: Metrics,
    /// `None`: there is no other replica.
    pub sharding: Option<Sharding>,
    /// Seconds between waves; `None`: as in the settings.
    pub wave_delay: Option<u32>,
    pub clock: Clock,
}

/// The controller.
pub struct Controller {
    records: Records,
    clusters: Clusters,
    sources: Sources,
    states: AppStates,
    metrics: Metrics,
    shards: Option<Shards>,
    events: Events,
    wave_delay: Option<u32>,
    clock: Clock,
    queue: Queue<AppKey, Reason>,
    memos: Mutex<HashMap<AppKey, Memo>>,
}

/// Runs until cancelled; running reconciles are finished first, then leases are released.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) {
    let workers = dependencies.workers.max(1);
    let Dependencies {
        records,
        clusters,
        sources,
        states,
        metrics,
        sharding,
        wave_delay,
        clock,
        ..
    } = dependencies;
    let shards = sharding.map(|sharding| Shards::new(sharding, &records));
    let events = records.events("argocd-application-controller");
    let (queue, memos) = (Queue::default(), Mutex::default());
    let controller = Arc::new(Controller {
        records,
        clusters,
        sources,
        states,
        metrics,
        shards,
        events,
        wave_delay,
        clock,
        queue,
        memos,
    });
    let mut tasks = JoinSet::new();
    for feed in [
        Feed::Applications,
        Feed::Projects,
        Feed::Clusters,
        Feed::Settings,
        Feed::Shards,
    ] {
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        tasks.spawn(async move {
            tokio::select! { () = shutdown.cancelled() => {}, () = controller.follow(feed) => {} }
        });
    }
    let (projects, stop) = (projects::follow(controller.clone()), shutdown.clone());
    tasks.spawn(async move {
        tokio::select! { () = stop.cancelled() => {}, () = projects => {} }
    });
    let time = controller.clone();
    tasks.spawn(async move { time.queue.keep_time().await });
    tasks.spawn(controller.clone().work(Seats::new(workers)));
    shutdown.cancelled().await;
    controller.queue.close();
    while tasks.join_next().await.is_some() {}
    if let Some(shards) = &controller.shards {
        shards.release().await;
    }
}

/// The feeds that trigger reconciles.
#[derive(Clone, Copy)]
enum Feed {
    Applications,
    Projects,
    Clusters,
    Settings,
    Shards,
}

impl Controller {
    /// Takes ready keys, as far as there are seats, until the queue is closed.
    async fn work(self: Arc<Self>, seats: Seats) {
        let mut looks = JoinSet::new();
        loop {
            let seat = seats.take().await;
            let Some((key, reason)) = self.queue.take().await else {
                break;
            };
            let controller = self.clone();
            looks.spawn(async move {
                seat.with(controller.reconcile(&key, reason)).await;
                controller.queue.done(&key);
            });
            while looks.try_join_next().is_some() {}
        }
        while looks.join_next().await.is_some() {}
    }

    async fn follow(self: Arc<Self>, feed: Feed) {
        match feed {
            Feed::Applications => self.follow_applications().await,
            Feed::Projects => {
                let mut changes = self.records.projects.changes();
                while next(&mut changes).await.is_some() {
                    self.add_all(Reason::at(Level::Recent));
                }
            }
            Feed::Settings => {
                let mut settings = self.records.watch_settings();
                while settings.changed().await.is_ok() {
                    self.add_all(Reason::at(Level::Recent));
                }
            }
            Feed::Clusters => self.follow_clusters().await,
            Feed::Shards => self.follow_shards().await,
        }
    }

    async fn follow_applications(&self) {
        let mut changes = self.records.applications.changes();
        self.add_all(Reason::RECONCILE);
        while let Some(change) = next(&mut changes).await {
            match change {
                Some(change) if concerns_us(&change) => {
                    let meta = &change.record.meta;
                    let key = AppKey::new(&meta.namespace, &meta.name);
                    match is_request(&change) {
                        true => self.queue.add_together(key, reason_of(&change)),
                        false => self.queue.add(key, reason_of(&change)),
                    }
                }
                Some(_) => {}
                None => self.add_all(Reason::RECONCILE),
            }
        }
    }

    async fn follow_clusters(self: Arc<Self>) {
        let mut opened = self.clusters.opened();
        let mut tasks = JoinSet::new();
        for cluster in self.clusters.list() {
            tasks.spawn(self.clone().follow_cluster(cluster));
        }
        while let Some(cluster) = next(&mut opened).await {
            if let Some(cluster) = cluster {
                tasks.spawn(self.clone().follow_cluster(cluster));
            }
            // Some Applications have waited for it.
            self.add_all(Reason::RECONCILE);
        }
    }

    async fn follow_cluster(self: Arc<Self>, cluster: Arc<LiveCluster>) {
        let mut changes = cluster.cache.changes();
        loop {
            let change = tokio::select! {
                () = cluster.closed() => return,
                change = next(&mut changes) => change,
            };
            let Some(change) = change else { return };
            match change {
                Some(change) => self.live_changed(&change),
                None => self.add_all(Reason::at(Level::Recent)),
            }
        }
    }

    fn live_changed(&self, change: &Change) {
        let level = if change.managed {
            Level::Recent
        } else {
            Level::Tree
        };
        for instance in &change.apps {
            let key = AppKey::from_instance(instance, &self.records.namespace);
            self.queue.add_after(key, Reason::at(level), SETTLE);
        }
    }

    fn add_all(&self, reason: Reason) {
        for record in self.records.applications.list() {
            self.queue.add(
                AppKey::new(&record.meta.namespace, &record.meta.name),
                reason,
            );
        }
    }

    /// One reconcile, isolated: errors and panics do not affect other Applications.
    async fn reconcile(&self, key: &AppKey, reason: Reason) {
        let Some(record) = self.records.applications.get(&key.namespace, &key.name) else {
            self.gone(key);
            return;
        };
        let known = record.value().ok();
        if known.as_deref().and_then(skips) == Some("true") {
            return;
        }
        let Turn::Ours(held) = self.turn(&record) else {
            self.leave(key);
            return;
        };
        // Every line of its log names the Application.
        let project = known.as_deref().map(|app| app.spec.project.as_str());
        let span = tracing::error_span!(
            "reconcile",
            application = key.name,
            "app-namespace" = key.namespace,
            project
        );
        let mut memo = self.memos().remove(key).unwrap_or_default();
        let failures = memo.failures;
        // Boxed: the future of a reconcile is large, and each wrapper around it would copy it on
        // the stack.
        let ctx = Box::pin(async {
            match ReconcileContext::new(self, key, &mut memo, record) {
                Ok(ctx) => ctx.run(reason).await,
                Err(e) => Err(e),
            }
        });
        let (shard, fence) = held.unzip();
        let ctx = self
            .costing(shard, quarantine::contain(self, key, ctx))
            .instrument(span.clone());
        let result = match fence.clone() {
            Some(fence) => fence.scope(ctx).await,
            None => ctx.await,
        };
        if fence.is_some_and(|fence| !fence.is_open()) {
            // Its result may be wrong, and another replica owns the Application now; if it comes
            // back, it starts from scratch.
            self.leave(key);
            return;
        }
        match result {
            // Its memo may be inconsistent.
            None => {
                memo = Memo {
                    failures: failures + 1,
                    ..Memo::default()
                };
                self.queue
                    .add_after(key.clone(), reason, pause(memo.failures));
            }
            Some(Ok(next)) => {
                memo.failures = 0;
                if let Next::After { wait, reason } = next {
                    self.queue.add_after(key.clone(), reason, wait);
                }
            }
            Some(Err(e)) if e.is_not_found() => {}
            Some(Err(e)) => {
                memo.failures += 1;
                let pause = if e.is_conflict() && memo.failures < 5 {
                    SETTLE
                } else {
                    pause(memo.failures)
                };
                if !e.is_conflict() {
                    tracing::warn!(parent: &span, error = %e, "reconciling the Application failed; trying again in {pause:?}");
                }
                self.queue.add_after(key.clone(), reason, pause);
            }
        }
        memo.rest();
        self.memos().insert(key.clone(), memo);
    }

    fn memos(&self) -> std::sync::MutexGuard<'_, HashMap<AppKey, Memo>> {
        self.memos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// Another replica owns it.
    fn leave(&self, key: &AppKey) {
        self.memos().remove(key);
        self.states.remove(key);
        self.metrics.gone(key);
    }

    fn gone(&self, key: &AppKey) {
        self.leave(key);
        let instance = key.instance(&self.records.namespace);
        self.clusters
            .list()
            .iter()
            .for_each(|c| c.cache.forget(&instance));
    }
}

/// Whether its annotation says to skip reconciling.
fn skips(app: &Application) -> Option<&str> {
    app.metadata
        .annotations
        .get(constants::SKIP_RECONCILE)
        .map(String::as_str)
}

/// The old and new record; `None`: it is new, or cannot be parsed.
fn both(change: &RecordChange<Application>) -> Option<(Arc<Application>, Arc<Application>)> {
    change
        .before
        .as_ref()?
        .value()
        .ok()
        .zip(change.record.value().ok())
}

/// Whether a change of an Application is more than the status that we wrote ourselves.
fn concerns_us(change: &RecordChange<Application>) -> bool {
    let Some((before, after)) = both(change) else {
        return true;
    };
    let (old, new) = (&before.metadata, &after.metadata);
    change.change_type == tiphys_cluster::ChangeType::Deleted
        || before.spec != after.spec
        || before.operation != after.operation
        || (old.deletion_timestamp, &old.finalizers) != (new.deletion_timestamp, &new.finalizers)
        || (old.annotations != new.annotations && old.annotations.len() <= new.annotations.len())
        || skips(&before) != skips(&after)
        || after
            .status
            .operation_state
            .as_ref()
            .is_some_and(|s| s.phase == "Terminating")
}

/// How thorough a reconcile a changed record requires. The compared source and destination are in
/// the status; changes of the rest of the spec, such as the project, cannot be detected from it.
fn reason_of(change: &RecordChange<Application>) -> Reason {
    let Some((before, after)) = both(change) else {
        return Reason::RECONCILE;
    };
    let approval = |app: &Application| {
        app.metadata
            .annotations
            .get(constants::DELETION_APPROVED)
            .cloned()
    };
    // Changes while it was skipped have been missed.
    let resumed =
        before.spec.sync_policy != after.spec.sync_policy || skips(&before) != skips(&after);
    match (
        resumed,
        before.spec != after.spec || approval(&before) != approval(&after),
    ) {
        (true, _) => Reason::at(Level::Latest),
        (false, true) => Reason::at(Level::Recent),
        (false, false) => Reason::RECONCILE,
    }
}

/// Whether someone requests a refresh, as a webhook does for each Application of a repository.
fn is_request(change: &RecordChange<Application>) -> bool {
    change
        .record
        .value()
        .is_ok_and(|app| app.metadata.annotations.contains_key(constants::REFRESH))
}

/// The next value of a feed; `Some(None)` if some were missed, `None` at its end.
async fn next<T: Clone>(feed: &mut Receiver<T>) -> Option<Option<T>> {
    match feed.recv().await {
        Ok(value) => Some(Some(value)),
        Err(RecvError::Lagged(_)) => Some(None),
        Err(RecvError::Closed) => None,
    }
}

fn pause(failures: u32) -> Duration {
    Duration::from_millis(250)
        .saturating_mul(1 << failures.min(8))
        .min(LONGEST_PAUSE)
}
