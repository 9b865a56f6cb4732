//! AppRepositories become CronJobs and Jobs that run `asset-syncer`, as kubeapps' controller makes
//! them.
//!
//! Main function: [`run`]. Which objects those are is decided in `tiphys_catalog::apprepository`.
//! Unlike kubeapps' controller, this one tries again what failed, and an AppRepository that is
//! deleted stays until its rows are gone.

mod belonging;
mod cleanup;
mod reconcile;
mod report;
mod secrets;
mod termination;

use super::{
    Key,
    collection::{Change, Collection},
    events::Events,
    object,
};
use crate::runtime::{self, Merge, Queue, Seats, pause};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tiphys_catalog::apprepository::{FINALIZER, Options};
use tiphys_cluster::{Cluster, leases::Leases};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// As many as kubeapps has.
const WORKERS: usize = 2;

/// How the controller works.
#[derive(Clone, Debug)]
pub struct JobsOptions {
    /// kubeapps' flags.
    pub options: Options,
    /// How long a deleted AppRepository waits for the Job that removes its rows.
    pub cleanup_patience: Duration,
}

impl JobsOptions {
    pub fn new(options: Options) -> Self {
        Self {
            options,
            cleanup_patience: Duration::from_secs(600),
        }
    }
}

/// Why an AppRepository could not be reconciled.
#[derive(Debug, thiserror::Error)]
enum JobsError {
    #[error(transparent)]
    Cluster(#[from] tiphys_cluster::Error),
    /// kubeapps' message.
    #[error("Resource {0:?} already exists and is not managed by AppRepository")]
    Exists(String),
    #[error("{0}")]
    Secret(String),
    #[error("it cannot be read: {0}")]
    Unreadable(serde_json::Error),
    #[error("CronJob {0:?} is being deleted")]
    Terminating(String),
}

impl JobsError {
    /// The reason of an Event.
    fn reason(&self) -> &'static str {
        match self {
            Self::Cluster(_) | Self::Terminating(_) => "ReconcileFailed",
            Self::Exists(_) => "ErrResourceExists",
            Self::Secret(_) => "SecretMissing",
            Self::Unreadable(_) => "Invalid",
        }
    }
}

/// Why an AppRepository is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reason {
    /// It is new or its specification changed: it is read now.
    sync: bool,
    /// It is not there any more.
    gone: bool,
    /// Nothing changed: only what the pods of its Job say may have.
    only_pods: bool,
}

impl Reason {
    const GONE: Self = Self {
        sync: false,
        gone: true,
        only_pods: false,
    };
    const PODS: Self = Self {
        sync: false,
        gone: false,
        only_pods: true,
    };
}

impl Merge for Reason {
    fn merge(&mut self, other: Self) {
        self.sync |= other.sync;
        self.gone |= other.gone;
        self.only_pods &= other.only_pods;
    }
}

struct Controller {
    cluster: Cluster,
    options: JobsOptions,
    events: Events,
    queue: Arc<Queue<Key, Reason>>,
    repositories: Collection,
    cron_jobs: Collection,
    jobs: Collection,
    failures: Mutex<HashMap<Key, u32>>,
    /// Those that go because this controller has removed what belongs to them.
    finished: Mutex<HashSet<Key>>,
}

/// Runs until stopped; with leases, while the only one of them is held.
pub async fn run(
    cluster: Cluster,
    options: JobsOptions,
    leases: Option<Leases>,
    stop: CancellationToken,
) {
    let Some(leases) = leases else {
        return follow(cluster, options, stop).await;
    };
    let mut changes = leases.changes();
    while !stop.is_cancelled() {
        changes.mark_unchanged();
        let Some(fence) = leases.fence(0) else {
            tokio::select! {
                () = stop.cancelled() => {}
                // The keeper ends only with the process.
                _ = changes.changed() => {}
            }
            continue;
        };
        let ended = stop.child_token();
        let work = follow(cluster.clone(), options.clone(), ended.clone());
        let mut work = std::pin::pin!(work);
        tokio::select! {
            () = &mut work => {}
            () = fence.closed() => {
                tracing::warn!("another controller has the lease: it makes the Jobs");
                ended.cancel();
                work.await;
            }
        }
    }
    leases.release().await;
}

async fn follow(cluster: Cluster, options: JobsOptions, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    let controller = Controller::start(cluster, options, &mut tasks, &stop);
    let (worker, stopped) = (Arc::clone(&controller), stop.clone());
    tasks.spawn(async move {
        tokio::select! { () = stopped.cancelled() => {}, () = worker.work() => {} }
    });
    stop.cancelled().await;
    controller.queue.close();
    while tasks.join_next().await.is_some() {}
}

impl Controller {
    fn start(
        cluster: Cluster,
        options: JobsOptions,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let queue = Arc::<Queue<Key, Reason>>::default();
        let namespace = options.options.namespace.clone();
        let watched = if options.options.all_namespaces {
            ""
        } else {
            &namespace
        };
        let to = Arc::clone(&queue);
        let path = object::repositories(watched);
        let repositories = Collection::follow(&cluster, &path, tasks, stop, move |change| {
            if let Some(reason) = of_repository(&change) {
                to.add(change.key.clone(), reason);
            }
        });
        let (to, known) = (Arc::clone(&queue), repositories.clone());
        let path = object::batch(&namespace, "cronjobs");
        let cron_jobs = Collection::follow(&cluster, &path, tasks, stop, move |change| {
            if let (Some(before), None) = (change.before, change.now)
                && let Some(key) = belonging::owner(&known, before, "/metadata")
            {
                to.add(key, Reason::default());
            }
        });
        let (to, known) = (Arc::clone(&queue), repositories.clone());
        let path = object::batch(&namespace, "jobs");
        let jobs = Collection::follow(&cluster, &path, tasks, stop, move |change| {
            let job = change.now.or(change.before);
            if let Some(job) = job
                && let Some(key) = belonging::owner(&known, job, "/spec/template/metadata")
            {
                to.add(key, Reason::default());
            }
        });
        Arc::new(Self {
            events: Events::new(cluster.clone()),
            cluster,
            options,
            queue,
            repositories,
            cron_jobs,
            jobs,
            failures: Mutex::default(),
            finished: Mutex::default(),
        })
    }

    async fn work(self: Arc<Self>) {
        for collection in [&self.repositories, &self.cron_jobs, &self.jobs] {
            collection.ready().await;
        }
        self.sweep();
        let time = Arc::clone(&self);
        let keep_time = async move { time.queue.keep_time().await };
        let work = runtime::work(
            self,
            |controller| &controller.queue,
            Seats::new(WORKERS),
            async |controller: Arc<Self>, key, reason| controller.turn(&key, reason).await,
        );
        tokio::join!(keep_time, work);
    }

    /// One reconcile, isolated; what failed is tried again.
    async fn turn(&self, key: &Key, mut reason: Reason) {
        let reconcile = self.reconcile(key, &mut reason);
        let failure = match runtime::contain(reconcile).await {
            Ok(Ok(())) => {
                self.failed(key, false);
                return;
            }
            Ok(Err(e)) => e.to_string(),
            Err(panic) => panic,
        };
        let pause = pause(self.failed(key, true));
        let (namespace, name) = (&key.namespace, &key.name);
        tracing::warn!(
            namespace,
            name,
            error = failure,
            "reconciling an AppRepository failed; trying again in {pause:?}"
        );
        self.queue.add_after(key.clone(), reason, pause);
    }

    /// Counts failures in a row.
    fn failed(&self, key: &Key, has_failed: bool) -> u32 {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if !has_failed {
            failures.remove(key);
            return 0;
        }
        let count = failures.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Whether an AppRepository was read as it is: a controller that starts does not read all of them
/// again, which their CronJobs do in time.
fn was_read(repository: &Value) -> bool {
    let (meta, status) = (&repository["metadata"], &repository["status"]);
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let generation = number(&meta["generation"]);
    generation > 0
        && number(&status["observedGeneration"]) == generation
        && number(&status["observedResyncRequests"])
            == number(&repository["spec"]["resyncRequests"])
}

/// Whether a change of an AppRepository matters, as kubeapps sees it.
fn of_repository(change: &Change<'_>) -> Option<Reason> {
    let Some(now) = change.now else {
        return Some(Reason::GONE);
    };
    let Some(before) = change.before else {
        return Some(Reason {
            sync: !was_read(now),
            ..Reason::default()
        });
    };
    let is_changed = before["spec"] != now["spec"];
    let finalizers = now["metadata"]["finalizers"].as_array();
    let has_ours = finalizers.is_some_and(|list| list.iter().any(|f| f == FINALIZER));
    let is_deleted = now["metadata"]["deletionTimestamp"] != Value::Null;
    let was_deleted = before["metadata"]["deletionTimestamp"] != Value::Null;
    let wanted = is_changed || is_deleted != was_deleted || !(has_ours || is_deleted);
    wanted.then_some(Reason {
        sync: is_changed,
        ..Reason::default()
    })
}
