//! The hydrator: renders the dry sources of Applications into files of a branch, from where they
//! are synced like any other.
//!
//! Main function: [`run`]. Two queues: of Applications, each of which is asked whether its branch
//! must be written ([`need`]), and of groups ([`group`]), all Applications that are rendered from
//! one revision into one branch, which share a commit. Everything that it remembers is in
//! `status.sourceHydrator`. It must not know clusters: what it renders must not depend on them.

mod check;
mod feeds;
mod group;
mod hydrate;
mod need;
mod status;
mod templates;

use crate::runtime::{self, Clock, Merge, Queue, Seats, Turn, pause};
use group::GroupKey;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_cluster::{AppKey, leases::Leases, records::Records};
use tiphys_sources::Sources;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Applications that are asked at once.
const CHECKS: usize = 20;

/// The loop's dependencies.
#[derive(Clone)]
pub struct Dependencies {
    pub records: Records,
    pub sources: Sources,
    /// Groups that are hydrated at once; at least one.
    pub workers: usize,
    /// The lease of the one replica that works; `None`: there is no other replica.
    pub leases: Option<Arc<Leases>>,
    pub clock: Clock,
}

/// Why an Application is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reason {
    /// Its revision is looked up again.
    is_fresh: bool,
}

impl Merge for Reason {
    fn merge(&mut self, other: Self) {
        self.is_fresh |= other.is_fresh;
    }
}

/// How a group is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Request {
    /// Also what is known already.
    is_hard: bool,
}

impl Merge for Request {
    fn merge(&mut self, other: Self) {
        self.is_hard |= other.is_hard;
    }
}

/// The state shared by everything that runs.
struct Hydrator {
    records: Records,
    sources: Sources,
    leases: Option<Arc<Leases>>,
    clock: Clock,
    apps: Queue<AppKey, Reason>,
    groups: Queue<GroupKey, Request>,
    /// Those that are being hydrated by this process.
    running: Mutex<HashSet<GroupKey>>,
    /// How often in a row the outcome could not be stored, for the Applications that have none.
    /// Each is looked at again, which forgets those that are no longer there.
    unwritten: Mutex<HashMap<AppKey, u32>>,
}

/// Runs until cancelled; running hydrations are finished first.
pub async fn run(dependencies: Dependencies, shutdown: CancellationToken) {
    let hydrator = Arc::new(Hydrator {
        records: dependencies.records,
        sources: dependencies.sources,
        leases: dependencies.leases,
        clock: dependencies.clock,
        apps: Queue::default(),
        groups: Queue::default(),
        running: Mutex::default(),
        unwritten: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    let (feeds, stop) = (feeds::follow(hydrator.clone()), shutdown.clone());
    tasks.spawn(async move {
        tokio::select! { () = stop.cancelled() => {}, () = feeds => {} }
    });
    let (time, stop) = (hydrator.clone(), shutdown.clone());
    tasks.spawn(async move {
        let both = async { tokio::join!(time.apps.keep_time(), time.groups.keep_time()) };
        tokio::select! { () = stop.cancelled() => {}, _ = both => {} }
    });
    let check = async |hydrator: Arc<Hydrator>, key: AppKey, reason| {
        hydrator.check(&key, reason).await;
    };
    tasks.spawn(runtime::work(
        hydrator.clone(),
        |hydrator| &hydrator.apps,
        Seats::new(CHECKS),
        check,
    ));
    let hydrate = async |hydrator: Arc<Hydrator>, key: GroupKey, request| {
        hydrator.process(&key, request).await;
    };
    tasks.spawn(runtime::work(
        hydrator.clone(),
        |hydrator| &hydrator.groups,
        Seats::new(dependencies.workers.max(1)),
        hydrate,
    ));
    shutdown.cancelled().await;
    hydrator.apps.close();
    hydrator.groups.close();
    while tasks.join_next().await.is_some() {}
    if let Some(leases) = &hydrator.leases {
        leases.release().await;
    }
}

impl Hydrator {
    fn turn(&self) -> Turn {
        Turn::now(self.leases.as_deref())
    }

    fn running(&self) -> MutexGuard<'_, HashSet<GroupKey>> {
        // Each change is a single insertion or removal.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwritten(&self) -> MutexGuard<'_, HashMap<AppKey, u32>> {
        // Each change is of a single entry.
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One group, isolated: a panic does not affect other groups.
    async fn process(&self, key: &GroupKey, request: Request) {
        let Turn::Ours(held) = self.turn() else {
            return;
        };
        self.running().insert(key.clone());
        let work = runtime::contain(Box::pin(self.hydrate(key, request)));
        let done = held.scope(work).await;
        self.running().remove(key);
        match done {
            // What was asked for meanwhile has not been looked at.
            Ok(members) => {
                for (member, is_stored) in members {
                    let wait = self.wait(&member, is_stored);
                    self.apps.add_after(member, Reason::default(), wait);
                }
            }
            Err(panic) => {
                tracing::error!(panic, branch = key.branch, "a hydration panicked");
                self.groups.add_after(key.clone(), request, pause(8));
            }
        }
    }

    /// How long to wait before an Application is looked at again. One whose outcome could not be
    /// stored looks as if its hydration had been interrupted: it would be rendered and pushed over
    /// and over.
    fn wait(&self, member: &AppKey, is_stored: bool) -> Duration {
        let mut unwritten = self.unwritten();
        if is_stored {
            unwritten.remove(member);
            return Duration::ZERO;
        }
        let failures = unwritten.entry(member.clone()).or_default();
        *failures = failures.saturating_add(1);
        pause(*failures)
    }

    fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_cluster::{Cluster, RecordsOptions};
    use tiphys_embedded_kube::{EmbeddedKube, Options};
    use tiphys_repo::{RepoOptions, Repos};

    #[tokio::test]
    async fn an_application_that_went_before_its_outcome_was_stored_is_forgotten() {
        let kube = EmbeddedKube::start(Options::default()).await;
        let kube = kube.expect("an API server");
        let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc");
        let cluster = cluster.await.expect("it answers");
        let records = Records::start(cluster, RecordsOptions::new("argocd"));
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let repos = Repos::with_options(folder.path(), RepoOptions::default());
        let hydrator = Hydrator {
            sources: Sources::new(&records, repos, None),
            records,
            leases: None,
            clock: Arc::new(jiff::Timestamp::now),
            apps: Queue::default(),
            groups: Queue::default(),
            running: Mutex::default(),
            unwritten: Mutex::default(),
        };
        let gone = AppKey::new("argocd", "gone");
        let first = hydrator.wait(&gone, false);
        assert!(hydrator.wait(&gone, false) > first, "more and more rarely");
        assert_eq!(hydrator.unwritten().len(), 1);
        hydrator.check(&gone, Reason::default()).await;
        assert_eq!(hydrator.unwritten().len(), 0);
    }
}
