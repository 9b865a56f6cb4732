//! The Application controller: reconciles every Application when something that affects it may have
//! changed.
//!
//! Main type: [`Controller`]. Each Application is reconciled by one worker at a time ([`context`]).
//! Triggers are changes of the Application itself, its live objects, projects and settings, and the
//! clock.

mod auto_sync;
mod compare;
mod comparing;
mod context;
mod controller;
mod delete;
mod delete_hooks;
mod deletion;
mod ending;
mod error;
mod feeds;
mod finalizers;
mod identity;
mod impersonation;
mod known;
mod memo;
mod next;
mod operation;
mod out_of_sync;
mod prepare;
mod projects;
mod publish;
mod quarantine;
mod reconcile;
mod refresh;
mod repeats;
mod requested;
mod results;
mod retry;
mod rollback;
mod running;
mod shards;
mod sources;
mod start;
mod status;
mod supersede;
pub(crate) mod timeouts;
mod touched;
mod turns;

use crate::{
    metrics::Metrics,
    runtime::{self, Clock, Queue, Seats, pause},
};
use context::ReconcileContext;
pub use controller::Controller;
use feeds::{Feed, SETTLE, skips};
use memo::Memo;
use next::Next;
use refresh::Reason;
pub use shards::Sharding;
use shards::{Shards, Turn};
use std::sync::{Arc, Mutex};
use tiphys_cluster::{
    app_state::{AppKey, AppStates},
    clusters::Clusters,
    records::Records,
};
use tiphys_sources::Sources;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The controller's dependencies.
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
    for feed in Feed::ALL {
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
    let reconcile = async |controller: Arc<Controller>, key, reason| {
        controller.reconcile(&key, reason).await;
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
    if let Some(shards) = &controller.shards {
        shards.release().await;
    }
}

impl Controller {
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
            // The API server said that this Application is gone. Any other "not found", such as one
            // of a definition that is not served for a moment, is an error like others.
            Some(Err(e))
                if e.is_not_found()
                    && self
                        .records
                        .applications
                        .get(&key.namespace, &key.name)
                        .is_none() => {}
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
