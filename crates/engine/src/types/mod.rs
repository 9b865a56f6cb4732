//! The values that the engine's modules exchange with each other and with callers.
//!
//! Main type: [`Comparison`], which answers whether the cluster matches Git and is healthy.
//! Everything here is plain data that can be printed, compared and stored; nothing here decides.

mod rules;

pub use rules::*;

use crate::normalize::targets::Targets;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};
use tiphys_api::resource::ResourceNode;
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey, packed::PackedText};

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

/// The desired objects: the rendered objects, and the errors of rendering. Objects are shared with
/// the renderer, so that an unchanged one is recognized without being parsed.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    pub objects: Vec<Arc<Kept>>,
    /// If there are any, missing objects may still be desired, and nothing is pruned.
    pub errors: Vec<Condition>,
}

impl From<Vec<Object>> for Desired {
    fn from(objects: Vec<Object>) -> Self {
        Self {
            objects: objects.into_iter().map(|o| Arc::new(o.into())).collect(),
            errors: Vec::new(),
        }
    }
}

/// One resource of an Application: the desired object, the live object, and the result of comparing
/// them.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: ResourceKey,
    pub gvk: Gvk,
    /// The object to apply, with namespace and tracking metadata. `None`: it is not (or no longer)
    /// in Git.
    pub desired: Option<Arc<Kept>>,
    pub live: Option<Arc<Kept>>,
    pub diff: DiffText,
    /// `None` for hooks and skipped resources.
    pub status: Option<SyncStatus>,
    /// `None` for kinds without health.
    pub health: Option<Health>,
    /// Its node in the resource tree.
    pub node: ResourceNode,
    pub hook: bool,
    pub requires_pruning: bool,
    pub requires_deletion_confirmation: bool,
    pub sync_wave: i64,
    /// Problems of this resource that users should know.
    pub conditions: Vec<Condition>,
    /// It makes the Application OutOfSync.
    pub(crate) drift: bool,
    pub(crate) judged: Judged,
    /// It is neither a hook nor skipped, and counts towards the Application's health.
    pub(crate) counts: bool,
    /// Its health could not be read; the health's message says why.
    pub(crate) unreadable: bool,
}

impl Entry {
    /// A pair that has not been compared yet.
    pub fn new(
        key: ResourceKey,
        gvk: Gvk,
        desired: Option<Arc<Kept>>,
        live: Option<Arc<Kept>>,
    ) -> Self {
        Self {
            key,
            gvk,
            desired,
            live,
            diff: DiffText::default(),
            status: None,
            health: None,
            node: ResourceNode::default(),
            hook: false,
            requires_pruning: false,
            requires_deletion_confirmation: false,
            sync_wave: 0,
            conditions: Vec::new(),
            drift: false,
            judged: Judged::Yes,
            counts: true,
            unreadable: false,
        }
    }
}

/// Whether a pair's difference could be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Yes,
    /// A dry run is needed first.
    NotYet,
    /// The API server refused the dry run, or its result cannot be used; or the desired object
    /// could not be prepared.
    Refused,
}

/// The result of comparing an Application with its cluster.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// In the order of their keys. Unchanged entries are shared with the next comparison.
    pub entries: Vec<Arc<Entry>>,
    /// Desired hooks of a sync; they never count as drift.
    pub hooks: Vec<Arc<Kept>>,
    /// Desired hooks that run when the Application is deleted, and only then.
    pub delete_hooks: Vec<Arc<Kept>>,
    pub conditions: Vec<Condition>,
    pub sync: SyncStatus,
    pub health: Health,
    /// Pairs that need a dry run that was not provided. If there are any, the comparison is
    /// incomplete.
    pub unanswered: Vec<ResourceKey>,
    /// The rules of this comparison: entries are reused only if the rules are the same.
    pub rules: Arc<CompareRules>,
    pub(crate) basis: Basis,
}

impl Comparison {
    /// Whether both comparisons share all entries, because no entry changed.
    pub fn has_entries_of(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Compresses all its objects, because they will not be read soon.
    pub fn rest(&self) {
        self.basis.targets.rest();
        self.entries
            .iter()
            .flat_map(|e| [&e.desired, &e.live])
            .flatten()
            .for_each(|o| o.rest());
    }
}

/// The other inputs of a comparison; if they change, no entry is reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Basis {
    pub targets: Arc<Targets>,
    /// The scopes of the kinds that were looked up.
    pub scopes: Vec<(GroupKind, Option<bool>)>,
    /// The desired objects were incomplete.
    pub failed: bool,
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
