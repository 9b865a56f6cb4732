//! Leases: which replica may write for which shard, coordinated through `coordination.k8s.io/v1`
//! Leases, one per shard.
//!
//! Main types: [`Leases`], which acquires and renews this replica's leases, and [`Fence`], the
//! permission to write that comes with one. A holder relies on a lease only for two thirds of the
//! time after which others take it, counted from before the request that renewed it, on its own
//! monotonic clock; wall clocks do not matter. The decisions are made in `decide`.
//!
//! Two cases cannot be excluded: a machine that is suspended as a whole, so that its monotonic
//! clock stops, and a request that was sent in time and arrives late. Writes to an Application then
//! fail because of their resourceVersion.

mod decide;
pub mod dynamic;
mod keeper;
mod mapping;
mod record;
mod troubles;
mod weights;

pub use crate::fence::Fence;
pub use weights::{Loads, Weights};

use crate::{
    connect::Cluster,
    fence::Tenure,
    request::{Call, JSON},
};
use http::Method;
use jiff::Timestamp;
use keeper::Keeper;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// How long a lease lasts without its holder.
pub const DURATION: Duration = Duration::from_secs(15);
/// Longer than a process runs.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Which leases to acquire, and as whom.
#[derive(Clone)]
pub struct LeaseOptions {
    pub namespace: String,
    /// The group's name; the leases are called `<group>-<shard>`.
    pub group: String,
    /// Unique per process.
    pub identity: String,
    /// How many shards there are.
    pub count: usize,
    /// How clusters are assigned to shards. While a lease with another partition is held, none is
    /// acquired.
    pub partition: String,
    /// The shard that is tried first.
    pub preferred: Option<usize>,
    /// Acquire only the preferred one, whatever the state of the others.
    pub pinned: bool,
    pub duration: Duration,
    /// The wall clock for times shown to users.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Balance the load of the shards.
    pub balance: Option<Balance>,
}

/// How the load of shards is balanced.
#[derive(Clone)]
pub struct Balance {
    /// The load of each shard on this replica.
    pub loads: Arc<Loads>,
    /// Minimum interval between changes of the weights.
    pub every: Duration,
}

impl LeaseOptions {
    fn lease_name(&self, shard: usize) -> String {
        format!("{}-{shard}", self.group)
    }

    /// The shards that this replica may acquire, in order of preference.
    fn wished(&self) -> impl Iterator<Item = usize> {
        let first = self.preferred.filter(|shard| *shard < self.count);
        let others = if self.pinned { 0 } else { self.count };
        first
            .into_iter()
            .chain((0..others).filter(move |shard| Some(*shard) != first))
    }

    /// The interval between two readings.
    fn pause(&self) -> Duration {
        self.duration / 15
    }

    /// How long a holder relies on a lease that it cannot renew. Another replica can acquire it
    /// only after a further third of its duration.
    fn reliance(&self) -> Duration {
        self.duration * 3 / 5
    }

    fn patience(&self) -> Duration {
        self.duration / 3
    }
}

/// The leases of this replica. They are no longer renewed after it is dropped; [`Leases::release`]
/// releases them.
pub struct Leases {
    tenures: Vec<watch::Receiver<Tenure>>,
    changes: watch::Receiver<u64>,
    weights: watch::Receiver<Weights>,
    stop: CancellationToken,
    keeper: Mutex<JoinSet<()>>,
}

impl Leases {
    /// Begins to acquire and renew leases. Must be called inside a tokio runtime.
    pub fn start(cluster: &Cluster, options: LeaseOptions) -> Self {
        let senders: Vec<_> = (0..options.count)
            .map(|_| watch::Sender::new(Tenure::default()))
            .collect();
        let tenures = senders.iter().map(watch::Sender::subscribe).collect();
        let (changed, changes) = watch::channel(0);
        let (weighs, weights) = watch::channel(Weights::equal(options.count));
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Keeper::new(cluster, options, senders, (changed, weighs)).run(stop.clone()));
        Self {
            tenures,
            changes,
            weights,
            stop,
            keeper: Mutex::new(tasks),
        }
    }

    /// One shard that is held without a lease, if leases are not permitted: nothing prevents a
    /// second holder. Must be called inside a tokio runtime.
    pub fn without(count: usize, shard: usize) -> Self {
        let senders: Vec<_> = (0..count)
            .map(|_| watch::Sender::new(Tenure::default()))
            .collect();
        let tenures = senders.iter().map(watch::Sender::subscribe).collect();
        if let Some(sender) = senders.get(shard) {
            sender.send_replace(Tenure {
                epoch: 1,
                until: Some(Instant::now() + ENDLESS),
            });
        }
        let ((changed, changes), (weighs, weights)) =
            (watch::channel(0), watch::channel(Weights::equal(count)));
        let stop = CancellationToken::new();
        let (mut tasks, stopped) = (JoinSet::new(), stop.clone());
        tasks.spawn(async move {
            stopped.cancelled().await;
            for sender in &senders {
                sender.send_replace(Tenure::default());
            }
            drop((changed, weighs));
        });
        Self {
            tenures,
            changes,
            weights,
            stop,
            keeper: Mutex::new(tasks),
        }
    }

    /// Whether the API server permits leases in a namespace. Assumed if it does not answer.
    pub async fn permitted(cluster: &Cluster, namespace: &str) -> bool {
        let attributes = json!({"namespace": namespace, "verb": "create", "group": "coordination.k8s.io", "resource": "leases"});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
        let call = Call::new(
            Method::POST,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        )
        .with_body(JSON, review.to_string());
        let answer = cluster.http().json::<Value>(&call).await;
        !answer.is_ok_and(|review| review["status"]["allowed"] == false)
    }

    /// The permission to write for a shard; `None` if its lease is not held.
    pub fn fence(&self, shard: usize) -> Option<Fence> {
        self.tenures.get(shard).cloned().and_then(Fence::of)
    }

    /// How many shards there are.
    pub fn count(&self) -> usize {
        self.tenures.len()
    }

    /// Changes whenever a lease is acquired or lost.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// The weights of the shards; equal without balancing. [`Leases::changes`] also reports changes
    /// of them.
    pub fn weights(&self) -> Weights {
        self.weights.borrow().clone()
    }

    /// Releases all leases, so that others need not wait.
    pub async fn release(&self) {
        self.stop.cancel();
        self.keeper.lock().await.join_next().await;
    }
}
