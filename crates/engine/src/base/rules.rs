//! The parts of [`CompareRules`](crate::rules::CompareRules). Plain data: callers provide it, and
//! its meaning is decided where it is used.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How a live object is assigned to its Application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TrackingMethod {
    /// The annotation `argocd.argoproj.io/tracking-id`.
    #[default]
    #[serde(rename = "annotation")]
    Annotation,
    /// The annotation decides; the label is written too, for users and other tools.
    #[serde(rename = "annotation+label")]
    AnnotationAndLabel,
    /// The instance label alone.
    #[serde(rename = "label")]
    Label,
}

/// Everything needed to write and to recognize tracking metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// The instance name: the Application's name, or `<namespace>_<name>` for one outside the
    /// control plane's namespace.
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

/// The default of `application.instanceLabelKey`.
pub const DEFAULT_LABEL_KEY: &str = "app.kubernetes.io/instance";

/// An entry of a project's whitelists and blacklists. `*` and globs are allowed in all fields; an
/// empty name means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindRule {
    pub group: String,
    pub kind: String,
    pub name: String,
}

/// An entry of a project's destinations; every field is a glob, a leading `!` denies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DestinationRule {
    pub server: String,
    pub name: String,
    pub namespace: String,
}

/// A project's settings for orphaned resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanRules {
    /// Report their number as a condition.
    pub warn: bool,
    /// Globs. An empty kind or name means any; an empty group is the core group.
    pub ignore: Vec<KindRule>,
}

/// What a project permits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectRules {
    pub name: String,
    pub cluster_whitelist: Vec<KindRule>,
    pub cluster_blacklist: Vec<KindRule>,
    /// `None` permits every namespaced kind; an empty list permits none.
    pub namespace_whitelist: Option<Vec<KindRule>>,
    pub namespace_blacklist: Vec<KindRule>,
    pub destinations: Vec<DestinationRule>,
    /// With `permitOnlyProjectScopedClusters`, whether the destination cluster belongs to the
    /// project; otherwise true.
    pub cluster_permitted: bool,
    /// `None`: orphans are not monitored.
    pub orphans: Option<OrphanRules>,
}

impl ProjectRules {
    /// The `default` project as installed: everything is permitted.
    pub fn allow_all(name: &str) -> Self {
        let any = KindRule {
            group: "*".into(),
            kind: "*".into(),
            name: String::new(),
        };
        let anywhere = DestinationRule {
            server: "*".into(),
            name: String::new(),
            namespace: "*".into(),
        };
        Self {
            name: name.to_owned(),
            cluster_whitelist: vec![any],
            cluster_blacklist: Vec::new(),
            namespace_whitelist: None,
            namespace_blacklist: Vec::new(),
            destinations: vec![anywhere],
            cluster_permitted: true,
            orphans: None,
        }
    }
}

/// Differences to ignore (`spec.ignoreDifferences`, `resource.customizations.ignoreDifferences`).
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

impl From<&tiphys_api::resource::ResourceIgnoreDifferences> for IgnoreRule {
    fn from(rule: &tiphys_api::resource::ResourceIgnoreDifferences) -> Self {
        Self {
            group: rule.group.clone(),
            kind: rule.kind.clone(),
            name: rule.name.clone(),
            namespace: rule.namespace.clone(),
            json_pointers: rule.json_pointers.clone(),
            jq_path_expressions: rule.jq_path_expressions.clone(),
            managed_fields_managers: rule.managed_fields_managers.clone(),
        }
    }
}

/// An entry of `resource.exclusions` or `resource.inclusions`; an empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExclusionRule {
    pub api_groups: Vec<String>,
    pub kinds: Vec<String>,
    pub clusters: Vec<String>,
}

/// For which kinds `status` is ignored in comparisons (`ignoreResourceStatusField`).
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

impl IgnoreStatus {
    /// Reads the value in `resource.compareoptions`. YAML reads a plain `off` as false.
    pub fn of_option(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Bool(false)) => Self::None,
            Some(Value::String(name)) => match name.as_str() {
                "crd" => Self::Crd,
                "none" | "off" | "false" => Self::None,
                _ => Self::All,
            },
            _ => Self::All,
        }
    }
}

/// Options of Server-Side Diff (`ServerSideDiff=true`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerSideDiff {
    /// Changes by mutating webhooks count as differences (`IncludeMutationWebhook=true`).
    pub include_webhooks: bool,
}

/// Labels and annotations that the Application manages on its destination namespace
/// (`syncPolicy.managedNamespaceMetadata`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceMetadata {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// They differ from those of the last sync.
    pub changed: bool,
}
