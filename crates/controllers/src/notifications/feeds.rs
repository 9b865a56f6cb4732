//! Which changes lead to an evaluation of which Applications.

use super::controller::{Changed, Controller, Turn, lock};
use crate::runtime::next;
use std::time::Duration;
use tiphys_cluster::{ChangeType, app_state::AppKey};

/// Between two looks at whether the lease is held now.
const LOOK: Duration = Duration::from_secs(2);

impl Controller {
    /// Follows all changes until the records end.
    pub async fn follow(&self) {
        let records = &self.dependencies.records;
        let mut applications = records.applications.changes();
        let mut projects = records.projects.changes();
        let mut config_maps = records.config_maps.changes();
        let mut secrets = records.secrets.changes();
        // What changed before the feeds began.
        self.read_settings();
        self.add_all();
        let mut held = matches!(self.turn(), Turn::Ours(_));
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
                () = tokio::time::sleep(LOOK) => {
                    let before = std::mem::replace(&mut held, matches!(self.turn(), Turn::Ours(_)));
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
