//! Which Applications are this replica's, and what happens when that changes.

use super::controller::Controller;
use super::shards::*;
use crate::runtime::next;
use crate::sharding::Method;
use std::time::Duration;
use tiphys_api::Application;
use tiphys_cluster::records::{Record, RecordChange};
use tiphys_engine::spec;
use tokio::time::{Instant, sleep_until};

/// The shard of Applications whose destination does not exist.
const NOWHERE: usize = 0;

/// Applications come and go in bursts; the assignment is recomputed after this time.
const SETTLE: Duration = Duration::from_secs(1);

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
