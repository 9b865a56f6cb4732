//! Which changes lead to an evaluation of which Applications.

use super::controller::{Changed, Controller, lock};
use crate::runtime::next;
use std::{sync::Arc, time::Duration};
use tiphys_apimachinery::Object;
use tiphys_cluster::{ChangeType, app_state::AppKey, records::RecordChange};
use tokio::sync::broadcast::Receiver;

/// Between two looks at whether the lease is held now.
const LOOK: Duration = Duration::from_secs(2);

type Changes = Receiver<Arc<RecordChange<Object>>>;

/// The next change; never, if there is no feed.
async fn next_of(feed: &mut Option<Changes>) -> Option<Option<Arc<RecordChange<Object>>>> {
    match feed {
        Some(feed) => next(feed).await,
        None => std::future::pending().await,
    }
}

impl Controller {
    /// Follows all changes until the records end.
    pub async fn follow(&self) {
        let records = &self.dependencies.records;
        let mut applications = records.applications.changes();
        let mut projects = records.projects.changes();
        let mut config_maps = records.config_maps.changes();
        let mut secrets = records.secrets.changes();
        let own = self.dependencies.self_service.as_ref();
        let mut own_config_maps = own.map(|own| own.config_maps.changes());
        let mut own_secrets = own.map(|own| own.secrets.changes());
        // What changed before the feeds began.
        self.read_settings();
        self.add_all();
        let mut held = self.turn().is_ours();
        loop {
            let goes_on = tokio::select! {
                change = next(&mut applications) => change.map(|change| match change {
                    Some(change) => self.application(&change.record.meta, change.change_type),
                    None => self.add_all(),
                }),
                change = next(&mut projects) => change.map(|_| self.add_all()),
                change = next(&mut config_maps) => change.map(|change| {
                    self.configured(change.map(|c| c.record.meta.name == self.dependencies.config_map));
                }),
                change = next(&mut secrets) => change.map(|change| {
                    self.configured(change.map(|c| c.record.meta.name == self.dependencies.secret));
                }),
                // Only what concerns us is watched.
                change = next_of(&mut own_config_maps) => change.map(|_| self.configured(None)),
                change = next_of(&mut own_secrets) => change.map(|_| self.configured(None)),
                () = tokio::time::sleep(LOOK) => {
                    let before = std::mem::replace(&mut held, self.turn().is_ours());
                    if held && !before {
                        self.add_all();
                    }
                    Some(())
                }
            };
            if goes_on.is_none() {
                return;
            }
        }
    }

    fn application(&self, meta: &tiphys_cluster::records::Meta, change: ChangeType) {
        let key = AppKey::new(&meta.namespace, &meta.name);
        if change == ChangeType::Deleted {
            lock(&self.memos).remove(&key);
            return;
        }
        let own = lock(&self.memos)
            .get(&key)
            .is_some_and(|memo| memo.written == meta.resource_version);
        if !own {
            self.queue.add(key, Changed);
        }
    }

    /// `None`: changes were missed.
    fn configured(&self, concerns_us: Option<bool>) {
        if concerns_us.unwrap_or(true) {
            self.read_settings();
            self.add_all();
        }
    }
}
