//! One step of a sync: what is done with one object in one phase and wave.
//!
//! Main type: [`Step`]. A step knows the target and how to write it, but not whether that was done;
//! that is `progress`.

use super::hook::DeletePolicy;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};
use tiphys_apimachinery::{Gvk, Object, ResourceKey};

/// The phases of a sync in order; `SyncFail` runs only if the others failed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum SyncPhase {
    PreSync,
    #[default]
    Sync,
    PostSync,
    SyncFail,
}

impl SyncPhase {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [Self::PreSync, Self::Sync, Self::PostSync, Self::SyncFail]
            .into_iter()
            .find(|p| p.as_str() == word)
    }
}

impl fmt::Display for SyncPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The action on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Apply,
    RunHook,
    Prune(PruneRule),
    /// The destination namespace, created because of `CreateNamespace=true`. `always`: also if it
    /// exists, because its metadata is managed.
    CreateNamespace {
        always: bool,
    },
}

/// Whether a resource that is not in Git may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PruneRule {
    Delete,
    /// The operation was started without prune.
    NotRequested,
    /// `Prune=false`.
    Disabled,
    /// `Prune=confirm`, and no one has confirmed yet.
    Unconfirmed,
}

/// Identifies a result within an operation: the object, as the result shows it, and the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepKey {
    pub key: ResourceKey,
    pub phase: SyncPhase,
}

/// `<group>/<kind>/<namespace>/<name>:<phase>`
impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.phase)
    }
}

/// Why a step cannot be executed; one such step stops the whole sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invalid {
    /// For the message of the operation.
    pub reason: String,
    /// For the result of the resource.
    pub message: String,
}

/// Why the project does not permit an object, for each scope that its kind may have. Which of them
/// it has is certain only when the object is written: its kind may be newer than the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    pub namespaced: Option<String>,
    pub cluster_wide: Option<String>,
}

impl Refused {
    /// Asks about both scopes: whether an object is permitted if its kind is namespaced, and if it
    /// is not.
    pub fn ask(permit: impl Fn(bool) -> Result<(), String>) -> Self {
        Self {
            namespaced: permit(true).err(),
            cluster_wide: permit(false).err(),
        }
    }

    /// Why the object is not permitted in this scope; `None`: it is.
    pub fn at(&self, namespaced: bool) -> Option<&str> {
        let why = if namespaced {
            &self.namespaced
        } else {
            &self.cluster_wide
        };
        why.as_deref()
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Identifies the step and its result: `<group>/<kind>/<namespace>/<name>:<phase>`, see
    /// [`StepKey`].
    pub id: String,
    pub phase: SyncPhase,
    pub wave: i64,
    pub action: Action,
    pub gvk: Gvk,
    /// The object's key in the cluster.
    pub key: ResourceKey,
    /// Namespace in the result: for a cluster-scoped target, that of the destination.
    pub result_namespace: String,
    /// The object to apply; none for a prune, and none in a plan that was read from JSON.
    #[serde(skip)]
    pub target: Option<Arc<Object>>,
    /// UID of the live object that a prune deletes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    pub replace: bool,
    pub force: bool,
    pub server_side: bool,
    pub validate: bool,
    /// The kind is not known yet, because its CRD is part of the same sync.
    pub skip_dry_run: bool,
    /// Already in sync and skipped, because only OutOfSync resources are applied.
    pub unchanged: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<DeletePolicy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Invalid>,
    /// For whoever executes the step, who knows the scope; missing like `target` in a plan that was
    /// read from JSON.
    #[serde(skip)]
    pub refused: Refused,
}

impl Step {
    pub fn is_hook(&self) -> bool {
        matches!(self.action, Action::RunHook)
    }

    pub fn is_prune(&self) -> bool {
        matches!(self.action, Action::Prune(_))
    }

    pub fn has_policy(&self, policy: DeletePolicy) -> bool {
        self.is_hook() && self.delete_policies.contains(&policy)
    }

    pub fn step_key(&self) -> StepKey {
        let key = ResourceKey {
            namespace: self.result_namespace.clone(),
            ..self.key.clone()
        };
        StepKey {
            key,
            phase: self.phase,
        }
    }

    /// Phase and wave: what runs together.
    pub fn group(&self) -> (SyncPhase, i64) {
        (self.phase, self.wave)
    }

    /// `<group>/<kind>/<name>`, as messages name a resource.
    pub fn short_name(&self) -> String {
        format!("{}/{}/{}", self.gvk.group, self.gvk.kind, self.key.name)
    }

    pub fn is_crd(&self) -> bool {
        self.gvk.group == "apiextensions.k8s.io" && self.gvk.kind == "CustomResourceDefinition"
    }

    /// A namespace that is created if missing and not changed otherwise: the sync does not wait for
    /// it, and its result stays that of its creation.
    pub fn is_left_alone(&self) -> bool {
        self.action == Action::CreateNamespace { always: false }
    }

    /// Whether the target is the namespace of this name.
    pub fn is_namespace(&self, name: &str) -> bool {
        !self.is_prune()
            && self.gvk.group.is_empty()
            && self.gvk.kind == "Namespace"
            && self.key.name == name
    }
}
