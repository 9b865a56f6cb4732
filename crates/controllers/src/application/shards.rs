//! Which Applications this replica reconciles: those whose destination is in a shard whose lease it
//! holds.
//!
//! Main type: [`Shards`]. Replicas may learn about a new cluster at different times and until then
//! both consider it theirs; the resourceVersion of the Application lets only one of them proceed.

use super::Controller;
use crate::runtime::next;
use crate::sharding::{Apart, Distribution, Member, Method};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tiphys_api::{Application, constants::IN_CLUSTER};
use tiphys_cluster::{
    leases::{DURATION, Fence, Leases, Loads, Weights},
    records::{Record, RecordChange, Records},
};
use tiphys_engine::spec;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Applications come and go in bursts; the assignment is recomputed after this time.
const SETTLE: Duration = Duration::from_secs(1);
/// The shard of Applications whose destination does not exist.
const NOWHERE: usize = 0;

/// How replicas share the work.
#[derive(Clone)]
pub struct Sharding {
    /// Replaced when the number of shards changes.
    pub leases: watch::Receiver<Arc<Leases>>,
    pub method: Method,
    /// Counts the load of each shard.
    pub loads: Arc<Loads>,
}

impl Sharding {
    /// With a fixed number of shards.
    pub fn fixed(leases: Arc<Leases>, method: Method, loads: Arc<Loads>) -> Self {
        Self {
            leases: watch::channel(leases).1,
            method,
            loads,
        }
    }
}

/// The clusters' shards, and the leases of this replica.
pub(super) struct Shards {
    sharding: Sharding,
    division: RwLock<Division>,
}

/// Values that must be consistent: the leases belong to the shards of this distribution.
#[derive(Clone)]
struct Division {
    leases: Arc<Leases>,
    distribution: Arc<Distribution>,
    weights: Weights,
    /// The previous weights, and until when other replicas may still use them.
    settling: Option<(Weights, Instant)>,
}

/// Who reconciles an Application.
pub(super) enum Turn {
    /// This replica; writes are made under the fence, if there are other replicas.
    Ours(Option<(usize, Fence)>),
    /// Another replica or, if the cluster's Secret says to skip it, no one.
    Others,
}

impl Division {
    fn new(sharding: &Sharding, records: &Records, before: Option<&Self>) -> Self {
        let leases = sharding.leases.borrow().clone();
        let (weights, now) = (leases.weights(), Instant::now());
        let before = before.filter(|b| Arc::ptr_eq(&b.leases, &leases));
        // A replica that has not read the weights for this long has no lease any more.
        let settling = match before {
            Some(before) if before.weights != weights => {
                Some((before.weights.clone(), now + DURATION))
            }
            before => before
                .and_then(|b| b.settling.clone())
                .filter(|(_, until)| *until > now),
        };
        let apart = Apart {
            weights: weights.clone(),
            before: settling.as_ref().map(|(before, _)| before.clone()),
        };
        let distribution =
            Arc::new(distribution(sharding.method, leases.count(), records).weighted(apart));
        Self {
            leases,
            distribution,
            weights,
            settling,
        }
    }

    /// The permission to write for a shard.
    fn fence(&self, shard: usize) -> Option<Fence> {
        self.leases.fence(shard)
    }
}

impl Shards {
    pub fn new(sharding: Sharding, records: &Records) -> Self {
        let division = RwLock::new(Division::new(&sharding, records, None));
        Self { sharding, division }
    }

    pub async fn release(&self) {
        let leases = self.sharding.leases.borrow().clone();
        leases.release().await;
    }

    fn division(&self) -> Division {
        self.division
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Recomputes the assignment; returns whether any cluster moved.
    fn spread(&self, records: &Records) -> bool {
        let old = self.division();
        let new = Division::new(&self.sharding, records, Some(&old));
        let moved = old.distribution != new.distribution || !Arc::ptr_eq(&old.leases, &new.leases);
        if moved {
            *self
                .division
                .write()
                .unwrap_or_else(PoisonError::into_inner) = new;
        }
        moved
    }
}

fn distribution(method: Method, shards: usize, records: &Records) -> Distribution {
    let settings = records.settings();
    let secrets = settings.clusters.iter();
    let mut members: Vec<Member> = secrets
        .map(|c| Member {
            id: c.uid.clone(),
            server: c.server.clone(),
            shard: c.shard,
        })
        .collect();
    match (
        settings.in_cluster_enabled(),
        members.iter().position(|m| m.server == IN_CLUSTER),
    ) {
        (true, None) => members.push(Member {
            server: IN_CLUSTER.to_owned(),
            ..Member::default()
        }),
        (false, Some(own)) => drop(members.remove(own)),
        _ => {}
    }
    let mut applications = HashMap::new();
    if method == Method::ConsistentHashing {
        for app in records.applications.list() {
            *applications.entry(destination(&app)).or_default() += 1;
        }
    }
    Distribution::new(method, shards, &members, &applications)
}

fn destination(app: &Record<Application>) -> String {
    app.value()
        .map(|app| app.spec.destination.server.clone())
        .unwrap_or_default()
}

/// Whether a change affects the number of Applications of a cluster.
fn counts(change: Option<&RecordChange<Application>>) -> bool {
    let Some(change) = change else { return true };
    let before = change.before.as_deref().map(destination);
    change.change_type == tiphys_cluster::ChangeType::Deleted
        || before != Some(destination(&change.record))
}

impl Controller {
    /// Who reconciles an Application.
    pub(super) fn turn(&self, record: &Record<Application>) -> Turn {
        let named = record
            .value()
            .ok()
            .and_then(|app| spec::destination(&app.spec.destination, &self.destinations()).ok());
        let settings = self.records.settings();
        if named
            .as_ref()
            .and_then(|d| settings.cluster(&d.server, &d.name))
            .is_some_and(|cluster| cluster.skipped)
        {
            return Turn::Others;
        }
        let Some(shards) = &self.shards else {
            return Turn::Ours(None);
        };
        let (division, name) = (
            shards.division(),
            format!("{}/{}", record.meta.namespace, record.meta.name),
        );
        let shard = match named {
            // A cluster that is not assigned yet is reconciled once it is.
            Some(destination) => division.distribution.shard(&destination.server, &name),
            None => Some(NOWHERE),
        };
        let fence = shard.and_then(|shard| division.fence(shard));
        shard
            .zip(fence)
            .map_or(Turn::Others, |held| Turn::Ours(Some(held)))
    }

    /// Runs work for a shard and counts its cost.
    pub(super) async fn costing<T>(
        &self,
        shard: Option<usize>,
        work: impl Future<Output = T>,
    ) -> T {
        let (mut work, mut busy) = (std::pin::pin!(work), Duration::ZERO);
        let result = std::future::poll_fn(|context| {
            let began = Instant::now();
            let poll = work.as_mut().poll(context);
            busy += began.elapsed();
            poll
        })
        .await;
        if let (Some(shards), Some(shard)) = (&self.shards, shard) {
            shards.sharding.loads.add(shard, busy);
        }
        result
    }

    /// Reconciles everything when a lease or a cluster was added or removed.
    pub(super) async fn follow_shards(&self) {
        let Some(shards) = &self.shards else { return };
        let mut divisions = shards.sharding.leases.clone();
        let mut leases = shards.division().leases.changes();
        let mut settings = self.records.watch_settings();
        let mut applications = self.records.applications.changes();
        let mut due: Option<Instant> = None;
        loop {
            let settled = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let reconcile = tokio::select! {
                Ok(()) = leases.changed() => {
                    shards.spread(&self.records);
                    due = shards.division().settling.map(|(_, until)| until).or(due);
                    true
                }
                Ok(()) = divisions.changed() => {
                    let moved = shards.spread(&self.records);
                    leases = shards.division().leases.changes();
                    moved
                }
                Ok(()) = settings.changed() => shards.spread(&self.records),
                Some(change) = next(&mut applications), if shards.sharding.method == Method::ConsistentHashing => {
                    if due.is_none() && counts(change.as_deref()) {
                        due = Some(Instant::now() + SETTLE);
                    }
                    false
                }
                () = settled => {
                    due = None;
                    shards.spread(&self.records)
                }
                else => return,
            };
            if reconcile {
                self.add_all(super::Reason::RECONCILE);
            }
        }
    }
}
