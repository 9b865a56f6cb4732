//! The values that the engine's modules exchange with each other and with callers.
//!
//! Main type: [`Comparison`], which answers whether the cluster matches Git and is healthy.
//! Everything here is plain data that can be printed, compared and stored; nothing here decides.

pub use crate::{base::*, rules::CompareRules};

use crate::normalize::targets::Targets;
use std::sync::Arc;
use tiphys_api::resource::ResourceNode;
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey};

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
    /// Why its health could not be read.
    pub(crate) unreadable: Option<String>,
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
            unreadable: None,
        }
    }

    /// Whether it makes the Application OutOfSync.
    pub fn is_drift(&self) -> bool {
        self.drift
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
