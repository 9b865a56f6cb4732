//! Leases: which replica may write for which shard, agreed upon through `coordination.k8s.io/v1`
//! Leases, one a shard.
//!
//! Main types: [`Leases`], which holds and renews what this replica has, and [`Fence`], the leave
//! to write that comes from it. A holder relies on a lease only for two thirds of the time after
//! which others take it, counted from before the request that renewed it, in the time of its own
//! monotonic clock; what the clocks on the walls say does not matter. What is decided is in
//! `decide`.
//!
//! What it cannot exclude: a machine that is suspended as a whole, so that its monotonic clock
//! stands still, and a request that left in time and arrives late. Writes to an Application's
//! record then fail by their resourceVersion.

mod decide;
pub mod dynamic;
mod fence;
mod keeper;
mod mapping;
mod record;
mod weights;

pub use fence::Fence;
pub use weights::{Loads, Weights};

use crate::{
    connect::Cluster,
    request::{Call, JSON},
};
use fence::Tenure;
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

/// How long a lease lasts when its holder is gone.
pub const DURATION: Duration = Duration::from_secs(15);
/// Longer than a process runs.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What leases are wanted, and as whom.
#[derive(Clone)]
pub struct LeaseOptions {
    pub namespace: String,
    /// What is shared; the leases are called `<group>-<shard>`.
    pub group: String,
    /// No two processes have the same one.
    pub identity: String,
    /// How many shards there are.
    pub count: usize,
    /// How shards are divided. As long as somebody holds one of another division, none is taken.
    pub partition: String,
    /// The one that is tried first.
    pub preferred: Option<usize>,
    /// Take the preferred one alone, whatever becomes of the others.
    pub pinned: bool,
    pub duration: Duration,
    /// The time that is written for people to read.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Shards are to be work alike.
    pub balance: Option<Balance>,
}

/// How shards are made to be work alike.
#[derive(Clone)]
pub struct Balance {
    /// What they cost this replica.
    pub loads: Arc<Loads>,
    /// How often their weights may change.
    pub every: Duration,
}

impl LeaseOptions {
    fn lease_name(&self, shard: usize) -> String {
        format!("{}-{shard}", self.group)
    }

    /// The shards that this replica may take, in the order of its wishes.
    fn wished(&self) -> impl Iterator<Item = usize> {
        let first = self.preferred.filter(|shard| *shard < self.count);
        let others = if self.pinned { 0 } else { self.count };
        first
            .into_iter()
            .chain((0..others).filter(move |shard| Some(*shard) != first))
    }

    /// Between two looks.
    fn pause(&self) -> Duration {
        self.duration / 15
    }

    /// How long a holder relies on a lease that it cannot renew. From then on until another may
    /// have it, a third of its time goes by.
    fn reliance(&self) -> Duration {
        self.duration * 3 / 5
    }

    fn patience(&self) -> Duration {
        self.duration / 3
    }
}

/// The leases of this replica. When it is dropped they are not renewed any more;
/// [`Leases::release`] gives them back.
pub struct Leases {
    tenures: Vec<watch::Receiver<Tenure>>,
    changes: watch::Receiver<u64>,
    weights: watch::Receiver<Weights>,
    stop: CancellationToken,
    keeper: Mutex<JoinSet<()>>,
}

impl Leases {
    /// Begins to take and renew leases. Must be called inside a tokio runtime.
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

    /// One shard that is held without any lease, for whoever may not use them: nothing keeps a
    /// second holder away. Must be called inside a tokio runtime.
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

    /// Whether leases may be used in a namespace, as the API server says. Without an answer they
    /// may.
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

    /// Leave to write for a shard; `None` when its lease is not held.
    pub fn fence(&self, shard: usize) -> Option<Fence> {
        self.tenures.get(shard).cloned().and_then(Fence::of)
    }

    /// How many shards there are.
    pub fn count(&self) -> usize {
        self.tenures.len()
    }

    /// Changes whenever a lease came or went.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// How large the shares of shards are; equal where they are not balanced. A change is one of
    /// [`Leases::changes`], too.
    pub fn weights(&self) -> Weights {
        self.weights.borrow().clone()
    }

    /// Gives all leases back, so that others need not wait.
    pub async fn release(&self) {
        self.stop.cancel();
        self.keeper.lock().await.join_next().await;
    }
}
