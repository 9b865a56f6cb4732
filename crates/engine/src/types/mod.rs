//! The values that the engine's modules hand to each other and to its callers.
//!
//! Main type: [`Comparison`], the answer to "does the cluster look like Git, and is it well?".
//! Everything here is plain data that can be printed, compared and stored; nothing here decides.

mod rules;

pub use rules::*;

use crate::normalize::targets::Targets;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};
use tiphys_api::resource::ResourceNode;
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey, packed::PackedText};

/// Whether the live state looks like the target state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SyncStatus {
    Synced,
    OutOfSync,
    #[default]
    Unknown,
}

/// How well a resource or an Application is. Ordered from better to worse, so that the worst of
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

/// A health and, in words, why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub status: HealthStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What a condition of an Application is about.
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

/// Something a user should know about an Application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: ConditionType,
    pub message: String,
}

/// What the cluster knows about kinds.
pub trait KindInfo {
    /// `None`: the cluster does not have the kind (or not yet, when its CRD is part of the same
    /// Application).
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool>;

    /// Whether the cluster has the kind in exactly this version.
    fn serves(&self, gvk: &Gvk) -> bool {
        self.is_namespaced(&gvk.group_kind()).is_some()
    }

    /// The kind in the version that the cluster prefers; failing that, a kind of this name in
    /// another group.
    fn installed(&self, _gk: &GroupKind) -> Option<Gvk> {
        None
    }

    /// Why nothing is known of a kind, when its group could not be asked: then it may well exist.
    fn failure(&self, _gk: &GroupKind) -> Option<String> {
        None
    }
}

/// What the API server answered to a server-side apply in dry run, or why it refused, by the key of
/// the pair.
pub type DryRuns = BTreeMap<ResourceKey, Result<Object, String>>;

/// What differs between a desired and a live object. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    pub modified: bool,
    /// The live object without what does not count; `Null` when there is none.
    pub normalized_live: Arc<Value>,
    /// What the live object would look like after a sync; `Null` when it would be gone.
    pub predicted_live: Arc<Value>,
}

/// A [`Diff`] at rest, with its documents as compressed JSON: as trees of maps they would take many
/// times the room.
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
    /// The documents as trees again.
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

/// What Git wants: the rendered objects as they come, and what could not be rendered. Objects are
/// shared with those who rendered them, so that one that is the same as last time is known as such
/// without reading it.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    pub objects: Vec<Arc<Kept>>,
    /// When there are any, nothing is known about objects that are missing here, and nothing is
    /// pruned.
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

/// One resource of an Application: what Git wants, what the cluster has, and the verdict.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: ResourceKey,
    pub gvk: Gvk,
    /// As it would be applied: namespace and tracking mark are set. `None`: it is not in Git (any
    /// more).
    pub desired: Option<Arc<Kept>>,
    pub live: Option<Arc<Kept>>,
    pub diff: DiffText,
    /// `None` for hooks and skipped resources.
    pub status: Option<SyncStatus>,
    /// `None` for kinds without a notion of health.
    pub health: Option<Health>,
    /// What a tree shows of it.
    pub node: ResourceNode,
    pub hook: bool,
    pub requires_pruning: bool,
    pub requires_deletion_confirmation: bool,
    pub sync_wave: i64,
    /// What a user should know about this resource.
    pub conditions: Vec<Condition>,
    /// It makes the Application OutOfSync.
    pub(crate) drift: bool,
    pub(crate) judged: Judged,
    /// It is neither a hook nor skipped, and counts for the Application's health.
    pub(crate) counts: bool,
    /// Its health could not be read; the health's message says why.
    pub(crate) unreadable: bool,
}

impl Entry {
    /// A pair about which nothing is decided yet.
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

/// Whether the difference of a pair could be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Yes,
    /// A dry run has to be made first.
    NotYet,
    /// The API server refused the dry run, or its answer cannot be used; or the desired object
    /// could not be made ready.
    Refused,
}

/// The result of comparing an Application with its cluster.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// In the order of their keys. Shared with a later comparison that found the same.
    pub entries: Vec<Arc<Entry>>,
    /// Desired hooks of a sync; they never count as drift.
    pub hooks: Vec<Arc<Kept>>,
    /// Desired hooks that run when the Application is deleted, and only then.
    pub delete_hooks: Vec<Arc<Kept>>,
    pub conditions: Vec<Condition>,
    pub sync: SyncStatus,
    pub health: Health,
    /// Pairs whose difference only a dry run can tell, and for which none was given: with any of
    /// them, this is not an answer yet.
    pub unanswered: Vec<ResourceKey>,
    /// What it was made with: results are only taken over from a comparison with the same rules.
    pub rules: Arc<CompareRules>,
    pub(crate) basis: Basis,
}

impl Comparison {
    /// Whether it says the same of the same resources as another, in which nothing was judged anew.
    pub fn has_entries_of(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Lets all its objects rest: nobody will look into them soon.
    pub fn rest(&self) {
        self.basis.targets.rest();
        self.entries
            .iter()
            .flat_map(|e| [&e.desired, &e.live])
            .flatten()
            .for_each(|o| o.rest());
    }
}

/// What else a comparison was made of; with anything else here, nothing is taken over from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Basis {
    pub targets: Arc<Targets>,
    /// What the cluster said of the kinds that were asked about.
    pub scopes: Vec<(GroupKind, Option<bool>)>,
    /// Not all desired objects were known.
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
    /// The status of this name.
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
