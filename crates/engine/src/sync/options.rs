//! Sync options: of the Application (`syncPolicy.syncOptions`, or those of one operation) and of
//! individual resources (an annotation).
//!
//! Main type: [`SyncOptions`]. An option is the exact string `Name=value`; any other spelling is
//! ignored, as in Argo CD.

use serde::{Deserialize, Serialize};
use tiphys_apimachinery::Object;

/// Comma-separated sync options of one resource.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// On an Application: the time (RFC 3339) since which its prunes and deletions are approved.
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// The manager whose fields are migrated when an object moves to server-side apply.
pub const CLIENT_SIDE_MANAGER: &str = "kubectl-client-side-apply";

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    #[default]
    Foreground,
    Background,
    Orphan,
}

impl Propagation {
    /// Kubernetes' name for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "Foreground",
            Self::Background => "Background",
            Self::Orphan => "Orphan",
        }
    }
}

/// The Application-wide options of one sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncOptions {
    pub validate: bool,
    pub prune_last: bool,
    pub replace: bool,
    pub server_side_apply: bool,
    pub apply_out_of_sync_only: bool,
    pub create_namespace: bool,
    pub skip_dry_run_on_missing_resource: bool,
    pub fail_on_shared_resource: bool,
    pub respect_ignore_differences: bool,
    pub client_side_apply_migration: bool,
    /// The field manager to migrate; an annotation of the Application may name another one.
    pub migration_manager: String,
    pub propagation: Propagation,
    /// Value of `Prune=`, the default for resources without that option: `true`, `false` or
    /// `confirm`.
    pub prune: Option<String>,
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            validate: true,
            prune_last: false,
            replace: false,
            server_side_apply: false,
            apply_out_of_sync_only: false,
            create_namespace: false,
            skip_dry_run_on_missing_resource: false,
            fail_on_shared_resource: false,
            respect_ignore_differences: false,
            client_side_apply_migration: true,
            migration_manager: CLIENT_SIDE_MANAGER.to_owned(),
            propagation: Propagation::Foreground,
            prune: None,
        }
    }
}

impl SyncOptions {
    /// Parses a list such as `["CreateNamespace=true", "Prune=confirm"]`. Unknown options are
    /// ignored.
    pub fn parse<S: AsRef<str>>(list: &[S]) -> Self {
        let has = |option: &str| list.iter().any(|o| o.as_ref() == option);
        let propagation = if has("PrunePropagationPolicy=background") {
            Propagation::Background
        } else if has("PrunePropagationPolicy=orphan") && !has("PrunePropagationPolicy=foreground")
        {
            Propagation::Orphan
        } else {
            Propagation::Foreground
        };
        Self {
            validate: !has("Validate=false"),
            prune_last: has("PruneLast=true"),
            replace: has("Replace=true"),
            server_side_apply: has("ServerSideApply=true"),
            apply_out_of_sync_only: has("ApplyOutOfSyncOnly=true"),
            create_namespace: has("CreateNamespace=true"),
            skip_dry_run_on_missing_resource: has("SkipDryRunOnMissingResource=true"),
            fail_on_shared_resource: has("FailOnSharedResource=true"),
            respect_ignore_differences: has("RespectIgnoreDifferences=true"),
            client_side_apply_migration: !has("ClientSideApplyMigration=false"),
            migration_manager: CLIENT_SIDE_MANAGER.to_owned(),
            propagation,
            prune: list
                .iter()
                .find_map(|o| o.as_ref().strip_prefix("Prune="))
                .map(str::to_owned),
        }
    }

    /// Sets the field manager to migrate, if the Application names one.
    #[must_use]
    pub fn migrating_from(mut self, manager: Option<&str>) -> Self {
        if let Some(manager) = manager.filter(|name| !name.is_empty()) {
            manager.clone_into(&mut self.migration_manager);
        }
        self
    }
}

/// Splits an annotation at commas; values are trimmed, empty and repeated ones dropped.
pub fn csv(value: Option<&str>) -> Vec<&str> {
    let mut list: Vec<&str> = Vec::new();
    for item in value.unwrap_or("").split(',').map(str::trim) {
        if !item.is_empty() && !list.contains(&item) {
            list.push(item);
        }
    }
    list
}

/// Whether a resource has an option, such as `Replace=true`.
pub fn has(object: &Object, option: &str) -> bool {
    csv(object.annotation(SYNC_OPTIONS)).contains(&option)
}

/// The value of a resource's option: the first `name=value`.
pub fn value<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    csv(object.annotation(SYNC_OPTIONS))
        .into_iter()
        .find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
}

/// Whether pruning a resource is allowed, disabled or needs confirmation: its own option takes
/// precedence over the Application's default.
pub fn prune_value<'a>(live: &'a Object, default: Option<&'a str>) -> Option<&'a str> {
    value(live, "Prune").or(default)
}
