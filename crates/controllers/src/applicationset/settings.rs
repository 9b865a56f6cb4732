//! The settings of the controller. Main type: [`ControllerSettings`].

use std::time::Duration;
use tiphys_appset::reconcile::{self, DeleteLimit};
use tiphys_cluster::Settings;
use tiphys_gocompat::duration;
use tiphys_sources::HostSettings;

/// What flags say; `None`: as in argocd-cmd-params-cm.
#[derive(Clone, Debug, Default)]
pub struct ControllerSettings {
    pub policy: Option<String>,
    pub policy_override: Option<bool>,
    pub progressive_syncs: Option<bool>,
    pub new_git_file_globbing: Option<bool>,
    pub preserved_annotations: Option<Vec<String>>,
    pub preserved_labels: Option<Vec<String>>,
    pub most_resources: Option<usize>,
    /// Concurrent writes of one set.
    pub concurrent_updates: Option<usize>,
    pub hosts: HostSettings,
    /// Nothing is written; the log says what would be.
    pub dry_run: bool,
}

const PREFIX: &str = "applicationsetcontroller.";
/// Our own.
const DELETE_LIMIT: &str = "tiphys.applicationsetcontroller.delete.limit";
const KEEP_DELETED: &str = "tiphys.applicationsetcontroller.deleted.keep";

impl ControllerSettings {
    /// For deciding what a set does.
    pub(super) fn of_reconcile(&self, settings: &Settings) -> reconcile::Settings {
        let param = |name: &str| settings.param(&format!("{PREFIX}{name}")).to_owned();
        let list = |name: &str| -> Vec<String> {
            let text = param(name);
            let items = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            items.map(str::to_owned).collect()
        };
        let policy = self.policy.clone().unwrap_or_else(|| param("policy"));
        // As in Argo CD: a policy for all sets turns theirs off, unless that is said.
        let policy_override = match (self.policy_override, param("enable.policy.override")) {
            (Some(said), _) => said,
            (None, text) if text.is_empty() => policy.is_empty(),
            (None, text) => text == "true",
        };
        let time = |text: &str| {
            let nanos = duration::parse(text).ok()?;
            u64::try_from(nanos).ok().map(Duration::from_nanos)
        };
        let requeue = time(&param("requeue.after"));
        let most = param("status.max.resources.count").parse().ok();
        let defaults = reconcile::Settings::default();
        reconcile::Settings {
            policy,
            policy_override,
            progressive_syncs: self
                .progressive_syncs
                .unwrap_or_else(|| param("enable.progressive.syncs") == "true"),
            preserved_annotations: self
                .preserved_annotations
                .clone()
                .unwrap_or_else(|| list("global.preserved.annotations")),
            preserved_labels: self
                .preserved_labels
                .clone()
                .unwrap_or_else(|| list("global.preserved.labels")),
            most_resources: self
                .most_resources
                .or(most)
                .unwrap_or(defaults.most_resources),
            requeue: requeue
                .filter(|after| *after >= Duration::from_secs(1))
                .unwrap_or(defaults.requeue),
            delete_limit: DeleteLimit::parse(settings.param(DELETE_LIMIT)).unwrap_or_default(),
            keep_deleted: time(settings.param(KEEP_DELETED)).unwrap_or(defaults.keep_deleted),
        }
    }
}
