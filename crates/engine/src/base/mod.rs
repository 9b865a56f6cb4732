//! The values that all modules of the engine share: states, conditions, kinds and differences.
//! Callers know them as a part of [`crate::types`].
//!
//! Everything here is plain data that can be printed, compared and stored; nothing here decides.

mod rules;

pub use rules::*;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};
use tiphys_apimachinery::{GroupKind, Gvk, Object, ResourceKey, packed::PackedText};

/// Whether the live state matches the target state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SyncStatus {
    Synced,
    OutOfSync,
    #[default]
    Unknown,
}

/// The health of a resource or an Application. Ordered from better to worse, so that the worst of
/// many is their maximum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum HealthStatus {
    Healthy,
    Suspended,
    Progressing,
    Missing,
    Degraded,
    #[default]
    Unknown,
}

/// A health status with its message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub status: HealthStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The type of an Application's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionType {
    DeletionError,
    InvalidSpecError,
    ComparisonError,
    SyncError,
    UnknownError,
    SharedResourceWarning,
    RepeatedResourceWarning,
    ExcludedResourceWarning,
    OrphanedResourceWarning,
    /// Tiphys's own: why the Application is still OutOfSync although its last sync succeeded.
    OutOfSyncWarning,
}

/// A problem of an Application that its users should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: ConditionType,
    pub message: String,
}

/// The cluster's knowledge about kinds.
pub trait KindInfo {
    /// `None`: the cluster does not have the kind (or not yet, if its CRD is part of the same
    /// Application).
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool>;

    /// Whether the cluster serves the kind in exactly this version.
    fn serves(&self, gvk: &Gvk) -> bool {
        self.is_namespaced(&gvk.group_kind()).is_some()
    }

    /// The kind in the cluster's preferred version or, failing that, a kind of this name in another
    /// group.
    fn installed(&self, _gk: &GroupKind) -> Option<Gvk> {
        None
    }

    /// Whether the cluster serves this version of the group, whichever kinds are in it.
    fn serves_version(&self, _group: &str, _version: &str) -> bool {
        false
    }

    /// Why a kind is unknown, if discovery of its group failed; the kind may then exist.
    fn failure(&self, _gk: &GroupKind) -> Option<String> {
        None
    }
}

/// The results of server-side dry runs, or why they were refused, by the key of the pair.
pub type DryRuns = BTreeMap<ResourceKey, Result<Object, String>>;

/// The difference between a desired and a live object. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    pub modified: bool,
    /// The live object without ignored fields; `Null` if there is none.
    pub normalized_live: Arc<Value>,
    /// The live object as it would be after a sync; `Null` if it would be deleted.
    pub predicted_live: Arc<Value>,
}

/// A [`Diff`] with its documents as compressed JSON, for long-term storage: as trees of maps they
/// would take many times the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffText {
    pub modified: bool,
    pub normalized_live: PackedText,
    pub predicted_live: PackedText,
}

impl Default for DiffText {
    fn default() -> Self {
        Self::from(Diff::default())
    }
}

impl From<Diff> for DiffText {
    fn from(diff: Diff) -> Self {
        let text = |document: &Value| PackedText::new(&document.to_string());
        let normalized_live = text(&diff.normalized_live);
        let same = diff.normalized_live == diff.predicted_live;
        let predicted_live = if same {
            normalized_live.clone()
        } else {
            text(&diff.predicted_live)
        };
        Self {
            modified: diff.modified,
            normalized_live,
            predicted_live,
        }
    }
}

impl DiffText {
    /// Decompresses the documents.
    pub fn read(&self) -> Diff {
        let tree = |text: &PackedText| {
            Arc::new(serde_json::from_str(&text.read()).expect("written by us"))
        };
        Diff {
            modified: self.modified,
            normalized_live: tree(&self.normalized_live),
            predicted_live: tree(&self.predicted_live),
        }
    }
}

impl Health {
    pub fn new(status: HealthStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

impl Condition {
    pub fn new(kind: ConditionType, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Errors stop a sync, warnings do not.
    pub fn is_error(&self) -> bool {
        self.kind.as_str().ends_with("Error")
    }
}

impl SyncStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::OutOfSync => "OutOfSync",
            Self::Unknown => "Unknown",
        }
    }
}

impl HealthStatus {
    /// The status with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::Healthy,
            Self::Suspended,
            Self::Progressing,
            Self::Missing,
            Self::Degraded,
            Self::Unknown,
        ]
        .into_iter()
        .find(|s| s.as_str() == name)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Missing => "Missing",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }
}

impl ConditionType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeletionError => "DeletionError",
            Self::InvalidSpecError => "InvalidSpecError",
            Self::ComparisonError => "ComparisonError",
            Self::SyncError => "SyncError",
            Self::UnknownError => "UnknownError",
            Self::SharedResourceWarning => "SharedResourceWarning",
            Self::RepeatedResourceWarning => "RepeatedResourceWarning",
            Self::ExcludedResourceWarning => "ExcludedResourceWarning",
            Self::OrphanedResourceWarning => "OrphanedResourceWarning",
            Self::OutOfSyncWarning => "OutOfSyncWarning",
        }
    }
}

impl fmt::Display for SyncStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
