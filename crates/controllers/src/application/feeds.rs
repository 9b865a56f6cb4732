//! Which changes lead to a reconcile of which Applications, and how thorough it must be.

use super::{
    controller::Controller,
    refresh::{Level, Reason},
};
use crate::runtime::next;
use std::{sync::Arc, time::Duration};
use tiphys_api::{Application, constants};
use tiphys_cluster::{Change, app_state::AppKey, clusters::LiveCluster, records::RecordChange};
use tokio::task::JoinSet;

/// Live objects change in bursts; one reconcile is enough for a burst.
pub const SETTLE: Duration = Duration::from_millis(10);

/// The feeds that trigger reconciles.
#[derive(Clone, Copy)]
pub enum Feed {
    Applications,
    Projects,
    Clusters,
    Settings,
    Shards,
}

impl Feed {
    pub const ALL: [Self; 5] = [
        Self::Applications,
        Self::Projects,
        Self::Clusters,
        Self::Settings,
        Self::Shards,
    ];
}

impl Controller {
    pub async fn follow(self: Arc<Self>, feed: Feed) {
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

    pub fn add_all(&self, reason: Reason) {
        for record in self.records.applications.list() {
            self.queue.add(
                AppKey::new(&record.meta.namespace, &record.meta.name),
                reason,
            );
        }
    }
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

/// Whether its annotation says to skip reconciling.
pub fn skips(app: &Application) -> Option<&str> {
    app.metadata
        .annotations
        .get(constants::SKIP_RECONCILE)
        .map(String::as_str)
}
