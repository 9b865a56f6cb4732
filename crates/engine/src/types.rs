//! The values that the engine's modules hand to each other and to its callers.
//!
//! Main type: [`Comparison`], the answer to "does the cluster look like Git, and is it well?". Everything here is plain data that can
//! be printed, compared and stored; nothing here decides.

use crate::customize::Customizations;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};
use tiphys_apimachinery::{GroupKind, Gvk, Object, ResourceKey};

/// Whether the live state looks like the target state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SyncStatus {
    Synced,
    OutOfSync,
    #[default]
    Unknown,
}

/// How well a resource or an Application is. Ordered from better to worse, so that the worst of many is their maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// `None`: the cluster does not have the kind (or not yet, when its CRD is part of the same Application).
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool>;

    /// Why nothing is known of a kind, when its group could not be asked: then it may well exist.
    fn failure(&self, _gk: &GroupKind) -> Option<String> {
        None
    }
}

/// How a live object says which Application it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TrackingMethod {
    /// The annotation `argocd.argoproj.io/tracking-id`.
    #[default]
    #[serde(rename = "annotation")]
    Annotation,
    /// The annotation decides; the label is written too, for people and other tools.
    #[serde(rename = "annotation+label")]
    AnnotationAndLabel,
    /// The instance label alone.
    #[serde(rename = "label")]
    Label,
}

/// Everything needed to mark an object as part of an Application and to recognise the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// The instance name: the Application's name, or `<namespace>_<name>` for one outside the control plane's namespace.
    pub app_name: String,
    pub method: TrackingMethod,
    /// Usually `app.kubernetes.io/instance`.
    pub label_key: String,
    /// Empty when only one installation manages the cluster.
    pub installation_id: String,
}

impl Tracking {
    /// Annotation tracking with the default label key and no installation id.
    pub fn annotation(app_name: &str) -> Self {
        Self {
            app_name: app_name.to_owned(),
            method: TrackingMethod::Annotation,
            label_key: DEFAULT_LABEL_KEY.to_owned(),
            installation_id: String::new(),
        }
    }
}

/// The label key that `application.instanceLabelKey` has when it is not set.
pub const DEFAULT_LABEL_KEY: &str = "app.kubernetes.io/instance";

/// An entry of a project's white and black lists. `*` and globs are allowed in all fields; an empty name means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindRule {
    pub group: String,
    pub kind: String,
    pub name: String,
}

/// An entry of a project's destinations; every field is a glob, `!` in front denies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DestinationRule {
    pub server: String,
    pub name: String,
    pub namespace: String,
}

/// What a project permits, as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectRules {
    pub name: String,
    pub cluster_whitelist: Vec<KindRule>,
    pub cluster_blacklist: Vec<KindRule>,
    /// `None` permits every namespaced kind; an empty list none.
    pub namespace_whitelist: Option<Vec<KindRule>>,
    pub namespace_blacklist: Vec<KindRule>,
    pub destinations: Vec<DestinationRule>,
    /// With `permitOnlyProjectScopedClusters`, whether the destination cluster belongs to the project; otherwise true.
    pub cluster_permitted: bool,
}

impl ProjectRules {
    /// The `default` project as it is installed: everything is permitted.
    pub fn allow_all(name: &str) -> Self {
        let any = KindRule { group: "*".into(), kind: "*".into(), name: String::new() };
        let anywhere = DestinationRule { server: "*".into(), name: String::new(), namespace: "*".into() };
        Self {
            name: name.to_owned(),
            cluster_whitelist: vec![any],
            cluster_blacklist: Vec::new(),
            namespace_whitelist: None,
            namespace_blacklist: Vec::new(),
            destinations: vec![anywhere],
            cluster_permitted: true,
        }
    }
}

/// Differences that do not count (`spec.ignoreDifferences`, `resource.customizations.ignoreDifferences`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IgnoreRule {
    /// Glob.
    pub group: String,
    /// Glob.
    pub kind: String,
    /// Empty means any.
    pub name: String,
    /// Empty means any.
    pub namespace: String,
    pub json_pointers: Vec<String>,
    pub jq_path_expressions: Vec<String>,
    pub managed_fields_managers: Vec<String>,
}

/// An entry of `resource.exclusions` or `resource.inclusions`; an empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExclusionRule {
    pub api_groups: Vec<String>,
    pub kinds: Vec<String>,
    pub clusters: Vec<String>,
}

/// Of which kinds `status` is left out of a comparison (`ignoreResourceStatusField`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IgnoreStatus {
    #[serde(rename = "crd")]
    Crd,
    #[default]
    #[serde(rename = "all")]
    All,
    #[serde(rename = "none")]
    None,
}

/// How the API server's own answers are compared (`ServerSideDiff=true`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerSideDiff {
    /// What mutating webhooks add counts as a difference (`IncludeMutationWebhook=true`).
    pub include_webhooks: bool,
}

/// What the API server answered to a server-side apply in dry run, or why it refused, by the key of the pair.
pub type DryRuns = BTreeMap<ResourceKey, Result<Object, String>>;

/// Everything a comparison depends on besides the objects themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareRules {
    pub tracking: Tracking,
    /// Namespace of the Application itself.
    pub app_namespace: String,
    /// Name of the Application itself (the tracking name may carry the namespace as well).
    pub app_name: String,
    /// Empty when it is not known.
    pub app_uid: String,
    pub dest_server: String,
    /// Empty when the destination is given by its server.
    pub dest_name: String,
    pub dest_namespace: String,
    pub project: ProjectRules,
    pub ignore_differences: Vec<IgnoreRule>,
    /// Users' scripts and the like; its rules of what to ignore are in `ignore_differences` as well.
    pub customizations: Arc<Customizations>,
    pub exclusions: Vec<ExclusionRule>,
    pub inclusions: Vec<ExclusionRule>,
    pub ignore_status: IgnoreStatus,
    pub ignore_aggregated_roles: bool,
    /// Differences are those that the API server itself tells; `None`: they are predicted here.
    pub server_side_diff: Option<ServerSideDiff>,
    /// The Application's own sync options; `Prune=confirm` and `Delete=confirm` show in the entries.
    pub sync_options: Vec<String>,
    pub managed_namespace: Option<NamespaceMetadata>,
}

impl CompareRules {
    /// Defaults of a fresh installation for one Application.
    pub fn new(tracking: Tracking, app_namespace: &str, app_name: &str, dest_server: &str, dest_namespace: &str) -> Self {
        Self {
            tracking,
            app_namespace: app_namespace.to_owned(),
            app_name: app_name.to_owned(),
            app_uid: String::new(),
            dest_server: dest_server.to_owned(),
            dest_name: String::new(),
            dest_namespace: dest_namespace.to_owned(),
            project: ProjectRules::allow_all("default"),
            ignore_differences: Vec::new(),
            customizations: Arc::default(),
            exclusions: Vec::new(),
            inclusions: Vec::new(),
            ignore_status: IgnoreStatus::All,
            ignore_aggregated_roles: false,
            server_side_diff: None,
            sync_options: Vec::new(),
            managed_namespace: None,
        }
    }
}

/// What differs between a desired and a live object. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    pub modified: bool,
    /// The live object without what does not count; `Null` when there is none.
    pub normalized_live: Arc<Value>,
    /// What the live object would look like after a sync; `Null` when it would be gone.
    pub predicted_live: Arc<Value>,
}

/// What Git wants: the rendered objects as they come, and what could not be rendered.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    pub objects: Vec<Object>,
    /// When there are any, nothing is known about objects that are missing here, and nothing is pruned.
    pub errors: Vec<Condition>,
}

impl From<Vec<Object>> for Desired {
    fn from(objects: Vec<Object>) -> Self {
        Self { objects, errors: Vec::new() }
    }
}

/// Labels and annotations that the Application keeps on its destination namespace (`syncPolicy.managedNamespaceMetadata`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceMetadata {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// They differ from those of the last sync.
    pub changed: bool,
}

/// One resource of an Application: what Git wants, what the cluster has, and the verdict.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: ResourceKey,
    pub gvk: Gvk,
    /// As it would be applied: namespace and tracking mark are set. `None`: it is not in Git (any more).
    pub desired: Option<Object>,
    pub live: Option<Arc<Object>>,
    pub diff: Diff,
    /// `None` for hooks and skipped resources.
    pub status: Option<SyncStatus>,
    /// `None` for kinds without a notion of health.
    pub health: Option<Health>,
    pub hook: bool,
    pub requires_pruning: bool,
    pub requires_deletion_confirmation: bool,
    pub sync_wave: i64,
}

/// The result of comparing an Application with its cluster.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub entries: Vec<Entry>,
    /// Desired hooks of a sync; they never count as drift.
    pub hooks: Vec<Object>,
    /// Desired hooks that run when the Application is deleted, and only then.
    pub delete_hooks: Vec<Object>,
    pub conditions: Vec<Condition>,
    pub sync: SyncStatus,
    pub health: Health,
    /// Pairs whose difference only a dry run can tell, and for which none was given: with any of them, this is not an answer yet.
    pub unanswered: Vec<ResourceKey>,
    /// Sorted, without duplicates.
    pub images: Vec<String>,
    /// Sorted, without duplicates.
    pub external_urls: Vec<String>,
    /// What it was made with: results are only taken over from a comparison with the same rules.
    pub rules: CompareRules,
}

impl Health {
    pub fn new(status: HealthStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl Condition {
    pub fn new(kind: ConditionType, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
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
        [Self::Healthy, Self::Suspended, Self::Progressing, Self::Missing, Self::Degraded, Self::Unknown]
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
