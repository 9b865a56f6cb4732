//! AppRepositories are read by this process, without Jobs.
//!
//! Main function: [`run`]. A repository is read by one process at a time, which holds its lease in
//! the database; few are read at the same time, and fewer of one host. What a deleted AppRepository
//! left is removed before the AppRepository goes.

mod due;
mod hosts;
mod reading;
mod secrets;
mod writing;

pub use secrets::{resync, visitor};
pub use writing::{create, delete};

use super::{
    Key,
    collection::{Change, Collection},
    events::Events,
    object,
};
use crate::metrics::charts::ChartMetrics;
use crate::runtime::{self, Clock, Merge, Queue, Seats, pause};
use hosts::Hosts;
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_api::AppRepository;
use tiphys_catalog::{CatalogError, Store, apprepository::FINALIZER, lease};
use tiphys_cluster::Cluster;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// AppRepositories that are looked at, not counting those that are being read.
const WORKERS: usize = 8;
/// How often a lease that another process has is asked for.
const ELSEWHERE: Duration = Duration::from_secs(10);

/// How the controller works.
#[derive(Clone)]
pub struct InProcessOptions {
    pub store: Arc<Store>,
    /// Unique per process.
    pub holder: String,
    /// For repositories without an interval.
    pub crontab: String,
    /// Repositories that are read at the same time, and those of one host among them.
    pub concurrency: usize,
    pub per_host: usize,
    /// The longest share of its interval by which a repository is read later, so that not all are
    /// read at once.
    pub jitter: f64,
    pub clock: Clock,
    pub metrics: ChartMetrics,
}

impl InProcessOptions {
    pub fn new(store: Arc<Store>, holder: impl Into<String>) -> Self {
        Self {
            store,
            holder: holder.into(),
            crontab: "*/10 * * * *".to_owned(),
            concurrency: 4,
            per_host: 2,
            jitter: 0.1,
            clock: Arc::new(jiff::Timestamp::now),
            metrics: ChartMetrics::default(),
        }
    }
}

/// Why an AppRepository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InProcessError {
    #[error(transparent)]
    Cluster(#[from] tiphys_cluster::Error),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("it cannot be read: {0}")]
    Unreadable(serde_json::Error),
    #[error("work was abandoned: {0}")]
    Abandoned(#[from] tokio::task::JoinError),
}

/// Why an AppRepository is looked at: only what is due is done.
#[derive(Clone, Copy, Debug, Default)]
struct Reason;

impl Merge for Reason {
    fn merge(&mut self, _: Self) {}
}

/// What is remembered of an AppRepository; what is lost with the process is in its status.
#[derive(Clone, Debug, Default)]
struct Memo {
    /// The specification that was read last.
    spec: Option<Value>,
    next_at: Option<jiff::Timestamp>,
    failures: u32,
    /// Ends the sync that is running.
    running: Option<CancellationToken>,
}

struct Controller {
    cluster: Cluster,
    options: InProcessOptions,
    events: Events,
    queue: Arc<Queue<Key, Reason>>,
    repositories: Collection,
    memos: Arc<Mutex<HashMap<Key, Memo>>>,
    hosts: Hosts,
}

/// Runs until stopped.
pub async fn run(cluster: Cluster, options: InProcessOptions, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    let controller = Controller::start(cluster, options, &mut tasks, &stop);
    tasks.spawn(Arc::clone(&controller).work(stop.clone()));
    stop.cancelled().await;
    controller.queue.close();
    controller.end_all();
    while tasks.join_next().await.is_some() {}
}

fn lock(memos: &Mutex<HashMap<Key, Memo>>) -> MutexGuard<'_, HashMap<Key, Memo>> {
    memos.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a sync that is running reads what is no longer wanted.
fn is_outdated(change: &Change<'_>) -> bool {
    let of = |object: Option<&Value>, field: &str| object.map(|o| o[field].clone());
    let is_deleted = change
        .now
        .is_none_or(|now| now["metadata"]["deletionTimestamp"] != Value::Null);
    let mut before = of(change.before, "spec").unwrap_or_default();
    let mut now = of(change.now, "spec").unwrap_or_default();
    // The running sync is as good as another one.
    for spec in [&mut before, &mut now] {
        if let Value::Object(spec) = spec {
            spec.remove("resyncRequests");
            spec.remove("description");
        }
    }
    is_deleted || before != now
}

fn is_relevant(change: &Change<'_>) -> bool {
    let (Some(before), Some(now)) = (change.before, change.now) else {
        return true;
    };
    let deleted = |object: &Value| object["metadata"]["deletionTimestamp"] != Value::Null;
    let finalizers = now["metadata"]["finalizers"].as_array();
    let has_ours = finalizers.is_some_and(|list| list.iter().any(|f| f == FINALIZER));
    before["spec"] != now["spec"] || deleted(before) != deleted(now) || !has_ours
}

impl Controller {
    fn start(
        cluster: Cluster,
        options: InProcessOptions,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let queue = Arc::<Queue<Key, Reason>>::default();
        let memos = Arc::<Mutex<HashMap<Key, Memo>>>::default();
        let (to, known) = (Arc::clone(&queue), Arc::clone(&memos));
        let path = object::repositories("");
        let repositories = Collection::follow(&cluster, &path, tasks, stop, move |change| {
            if is_outdated(&change)
                && let Some(running) = lock(&known).get(change.key).and_then(|m| m.running.clone())
            {
                running.cancel();
            }
            if is_relevant(&change) {
                to.add(change.key.clone(), Reason);
            }
        });
        Arc::new(Self {
            events: Events::new(cluster.clone()),
            hosts: Hosts::new(options.concurrency, options.per_host),
            cluster,
            options,
            queue,
            repositories,
            memos,
        })
    }

    fn end_all(&self) {
        for memo in lock(&self.memos).values() {
            memo.running.iter().for_each(CancellationToken::cancel);
        }
    }

    /// Works until stopped; syncs that are running then end in order.
    async fn work(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.repositories.ready() => {}
        }
        if let Err(error) = self.sweep().await {
            tracing::warn!(%error, "what deleted AppRepositories left cannot be looked for");
        }
        let time = Arc::clone(&self);
        let keep_time = async move { time.queue.keep_time().await };
        let work = runtime::work(
            self,
            |controller| &controller.queue,
            Seats::new(WORKERS),
            async |controller: Arc<Self>, key, Reason| controller.turn(&key).await,
        );
        tokio::join!(keep_time, work);
    }

    /// One reconcile, isolated; what failed is tried again.
    async fn turn(&self, key: &Key) {
        let failure = match runtime::contain(self.reconcile(key)).await {
            Ok(Ok(after)) => return self.queue.visit_after(key, Reason, after),
            Ok(Err(e)) => e.to_string(),
            Err(panic) => panic,
        };
        let failures = self.memo(key, |memo| {
            memo.failures = memo.failures.saturating_add(1);
            memo.failures
        });
        let pause = pause(failures);
        let (namespace, name) = (&key.namespace, &key.name);
        tracing::warn!(
            namespace,
            name,
            error = failure,
            "an AppRepository failed; trying again in {pause:?}"
        );
        self.queue.visit_after(key, Reason, Some(pause));
    }

    fn memo<T>(&self, key: &Key, work: impl FnOnce(&mut Memo) -> T) -> T {
        work(lock(&self.memos).entry(key.clone()).or_default())
    }

    /// Returns after which time it is looked at again.
    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, InProcessError> {
        let Some(found) = object::get(&self.cluster, &object::repository(key)).await? else {
            return self.gone(key).await;
        };
        let repository: AppRepository =
            serde_json::from_value(found.clone()).map_err(InProcessError::Unreadable)?;
        if repository.metadata.deletion_timestamp.is_some() {
            return self.remove(key, &repository).await;
        }
        // First, so that there are never rows that nobody would remove.
        object::add_finalizer(&self.cluster, &repository, FINALIZER).await?;
        self.read(key, &repository, &found["spec"]).await
    }

    /// The AppRepository is being deleted.
    async fn remove(
        &self,
        key: &Key,
        repository: &AppRepository,
    ) -> Result<Option<Duration>, InProcessError> {
        if !repository
            .metadata
            .finalizers
            .iter()
            .any(|f| f == FINALIZER)
        {
            return Ok(None);
        }
        if !self.claim(key).await? {
            return Ok(Some(ELSEWHERE));
        }
        self.remove_rows(key).await?;
        self.forget(key);
        object::drop_finalizer(&self.cluster, repository, FINALIZER).await?;
        self.release(key).await?;
        self.events.forget(&repository.metadata.uid);
        Ok(None)
    }

    /// The AppRepository is not there; someone else may have removed the finalizer.
    async fn gone(&self, key: &Key) -> Result<Option<Duration>, InProcessError> {
        self.forget(key);
        let id = key.clone();
        let status = self.with_store(move |store| store.repo(&id)).await?;
        // Others were entered on the command line.
        if status.is_none_or(|status| !status.spec.is_empty()) {
            return Ok(None);
        }
        if !self.claim(key).await? {
            return Ok(Some(ELSEWHERE));
        }
        self.remove_rows(key).await?;
        self.release(key).await?;
        Ok(None)
    }

    /// The next one with this name is new.
    fn forget(&self, key: &Key) {
        lock(&self.memos).remove(key);
        self.options.metrics.gone(key);
    }

    async fn remove_rows(&self, key: &Key) -> Result<(), InProcessError> {
        let id = key.clone();
        let removed = self
            .with_store(move |store| match store.repo(&id)? {
                // It was entered on the command line under the same name.
                Some(status) if !status.spec.is_empty() => Ok(false),
                _ => store.delete_repo(&id),
            })
            .await?;
        let (namespace, name) = (&key.namespace, &key.name);
        tracing::info!(
            namespace,
            name,
            removed,
            "the charts of an AppRepository are removed"
        );
        Ok(())
    }

    /// Looks at the rows of AppRepositories that went while nobody looked.
    async fn sweep(&self) -> Result<(), InProcessError> {
        let rows = self.with_store(Store::repos).await?;
        for status in rows.iter().filter(|status| status.spec.is_empty()) {
            if self.repositories.get(&status.id).is_none() {
                self.queue.add(status.id.clone(), Reason);
            }
        }
        Ok(())
    }

    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, CatalogError> + Send + 'static,
    ) -> Result<T, InProcessError> {
        let store = Arc::clone(&self.options.store);
        Ok(tokio::task::spawn_blocking(move || work(&store)).await??)
    }

    async fn claim(&self, key: &Key) -> Result<bool, InProcessError> {
        let options = &self.options;
        Ok(lease::claim(&options.store, key, &options.holder).await?)
    }

    async fn release(&self, key: &Key) -> Result<(), InProcessError> {
        let options = &self.options;
        Ok(lease::release(&options.store, key, &options.holder).await?)
    }
}
