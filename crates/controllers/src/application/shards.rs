//! Which Applications this replica reconciles: those whose destination is in a shard whose lease it
//! holds.
//!
//! Main type: [`Shards`]. Replicas may learn about a new cluster at different times and until then
//! both consider it theirs; the resourceVersion of the Application lets only one of them proceed.

use crate::sharding::{Apart, Distribution, Member, Method};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use tiphys_api::{Application, constants::IN_CLUSTER};
use tiphys_cluster::{
    leases::{DURATION, Fence, Leases, Loads, Weights},
    records::{Record, Records},
};
use tokio::{sync::watch, time::Instant};

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
    pub sharding: Sharding,
    division: RwLock<Division>,
}

/// Values that must be consistent: the leases belong to the shards of this distribution.
#[derive(Clone)]
pub struct Division {
    pub leases: Arc<Leases>,
    pub distribution: Arc<Distribution>,
    weights: Weights,
    /// The previous weights, and until when other replicas may still use them.
    pub settling: Option<(Weights, Instant)>,
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
    pub fn fence(&self, shard: usize) -> Option<Fence> {
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

    pub fn division(&self) -> Division {
        self.division
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Recomputes the assignment; returns whether any cluster moved.
    pub fn spread(&self, records: &Records) -> bool {
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

pub fn destination(app: &Record<Application>) -> String {
    app.value()
        .map(|app| app.spec.destination.server.clone())
        .unwrap_or_default()
}
