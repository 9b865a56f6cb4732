//! kubeapps' AppRepository resource: a repository of charts. Field names are kubeapps'; its status
//! is ours. It exists in JSON only.

use crate::meta::{ObjectMeta, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub const GROUP: &str = "kubeapps.com";
pub const VERSION: &str = "v1alpha1";
pub const KIND: &str = "AppRepository";
pub const PLURAL: &str = "apprepositories";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRepository {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: ObjectMeta,
    pub spec: AppRepositorySpec,
    #[serde(deserialize_with = "crate::null_default")]
    pub status: AppRepositoryStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRepositorySpec {
    /// `helm` or `oci`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["helm", "oci"]))]
    pub form: String,
    /// http or https; of a registry also `oci://`.
    pub url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(deserialize_with = "crate::null_default")]
    pub auth: AppRepositoryAuth,
    /// Secrets to pull the images of installed charts with.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub docker_registry_secrets: Vec<String>,
    pub tls_insecure_skip_verify: bool,
    /// Send the credentials to other hosts, too.
    pub pass_credentials: bool,
    /// A duration of Go, or a crontab.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interval: String,
    #[serde(deserialize_with = "crate::null_default")]
    pub filter_rule: FilterRule,
    /// Paths below the URL of a registry.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub oci_repositories: Vec<String>,
    /// Another number asks for a sync now.
    pub resync_requests: i64,
    /// A PodTemplateSpec; kubeapps leaves nulls in it.
    #[serde(
        skip_serializing_if = "Map::is_empty",
        deserialize_with = "crate::null_default"
    )]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub sync_job_pod_template: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRepositoryAuth {
    /// The whole `Authorization` header, or with the key `.dockerconfigjson` a docker config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<SecretReference>,
    /// Authorities in PEM.
    #[serde(rename = "customCA", skip_serializing_if = "Option::is_none")]
    pub custom_ca: Option<SecretReference>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretReference {
    pub secret_key_ref: SecretKeyRef,
}

/// A key of a Secret in the repository's namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SecretKeyRef {
    pub name: String,
    pub key: String,
}

/// Which charts are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FilterRule {
    #[serde(deserialize_with = "crate::null_default")]
    pub jq: String,
    /// Text by variable, the names with their `$`.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub variables: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRepositoryStatus {
    /// The conditions in one word: Ready, Syncing or Stalled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The generation that was read last.
    #[serde(skip_serializing_if = "crate::is_zero")]
    pub observed_generation: i64,
    /// The `resyncRequests` that was obeyed last.
    #[serde(skip_serializing_if = "crate::is_zero")]
    pub observed_resync_requests: i64,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub conditions: Vec<AppRepositoryCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<i64>,
    /// Entries of the index that cannot be used.
    #[serde(skip_serializing_if = "crate::is_zero")]
    pub skipped: i64,
    /// The first of the charts that cannot be used, or not as they are, with the reasons.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub problems: Vec<AppRepositoryProblem>,
    /// The end of the last complete sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_sync_time: Option<Time>,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
}

/// What is wrong with a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRepositoryProblem {
    pub chart: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `skipped`, `ambiguous`, `files` or `icon`.
    pub kind: String,
    pub reason: String,
}

/// `Ready`, `Syncing` or `Stalled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppRepositoryCondition {
    #[serde(rename = "type")]
    pub name: String,
    /// True, False or Unknown.
    pub status: String,
    pub reason: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}
