//! The request for one sync operation.
//!
//! Main type: [`SyncRequest`]. It holds no state; what was done so far is in `progress`.

use super::options::SyncOptions;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tiphys_apimachinery::ResourceKey;

/// One resource selected for a selective sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSelector {
    pub group: String,
    pub kind: String,
    pub name: String,
    /// Empty means any.
    pub namespace: String,
}

impl ResourceSelector {
    pub fn matches(&self, key: &ResourceKey) -> bool {
        self.name == key.name
            && self.kind == key.kind
            && self.group == key.group
            && (self.namespace.is_empty() || self.namespace == key.namespace)
    }
}

/// Labels and annotations that the Application sets on its destination namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceMetadata {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// A sync operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncRequest {
    /// Identifies one attempt of one operation: a retry must have another id, or it would adopt the
    /// hooks of the previous attempt.
    pub operation_id: String,
    /// The revision being synced; the names of generated hooks contain it.
    pub revision: String,
    pub started_at: Timestamp,
    pub prune: bool,
    /// Only report what would be done.
    pub dry_run: bool,
    /// Strategy `apply`: no hooks.
    pub strategy_apply: bool,
    pub force: bool,
    /// Empty for a full sync. A selective sync runs no hooks.
    pub resources: Vec<ResourceSelector>,
    pub options: SyncOptions,
    pub dest_namespace: String,
    pub namespace_metadata: Option<NamespaceMetadata>,
    /// Pause between waves. The sync waits for health between waves anyway, so 0 is right; Argo CD
    /// waits 2 s.
    pub wave_delay_secs: u32,
    /// Time limit for waiting for a wave, see [`super::timeout`]; 0 means no limit.
    pub wave_timeout_secs: u32,
    /// A newer revision to sync as soon as this sync can be interrupted.
    pub superseded_by: Option<String>,
    /// Stop: terminate running hooks and finish.
    pub terminate: bool,
    /// Whether prunes that need confirmation were confirmed, see [`deletion_confirmed`].
    pub prune_confirmed: bool,
    /// Skip the dry run that precedes a sync, for a caller that has checked the objects itself.
    pub skip_dry_run: bool,
}

impl SyncRequest {
    /// Hooks run only in full syncs with the hook strategy.
    pub fn skips_hooks(&self) -> bool {
        self.strategy_apply || !self.resources.is_empty()
    }

    pub fn selects(&self, key: &ResourceKey) -> bool {
        self.resources.is_empty() || self.resources.iter().any(|r| r.matches(key))
    }
}

/// Whether the Application's `argocd.argoproj.io/deletion-approved` annotation confirms an
/// operation started at `since`.
pub fn deletion_confirmed(annotation: Option<&str>, since: Timestamp) -> bool {
    // Kubernetes stores times in whole seconds, so an approval in the same second counts.
    annotation
        .and_then(|t| t.parse::<Timestamp>().ok())
        .is_some_and(|t| t.as_second() >= since.as_second())
}
