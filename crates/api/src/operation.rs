//! Operations on an Application: the request and its state. Field names and numbers are Argo CD's;
//! no behaviour here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub duration: String,
    #[prost(int64, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<i64>,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub max_duration: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HydrateOperation {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<crate::meta::Time>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<crate::meta::Time>,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub phase: String,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub message: String,
    #[prost(string, tag = "5")]
    #[serde(
        rename = "drySHA",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub dry_sha: String,
    #[prost(string, tag = "6")]
    #[serde(
        rename = "hydratedSHA",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub hydrated_sha: String,
    #[prost(message, required, tag = "7")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source_hydrator: crate::source::SourceHydrator,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedNamespaceMetadata {
    #[prost(btree_map = "string, string", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "2")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Operation {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncOperation>,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub initiated_by: OperationInitiator,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub info: Vec<Info>,
    #[prost(message, required, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub retry: RetryStrategy,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationInitiator {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub username: String,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub automated: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationState {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub operation: Operation,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub phase: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub message: String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_result: Option<SyncOperationResult>,
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<crate::meta::Time>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<crate::meta::Time>,
    #[prost(int64, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub retry_count: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RefTarget {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_revision: Option<String>,
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceResult {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub group: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub version: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub kind: String,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub namespace: String,
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub status: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub message: String,
    #[prost(string, tag = "8")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub hook_type: String,
    #[prost(string, tag = "9")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub hook_phase: String,
    #[prost(string, tag = "10")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sync_phase: String,
    #[prost(string, repeated, tag = "11")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub images: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryStrategy {
    #[prost(int64, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub limit: i64,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub refresh: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceHydratorStatus {
    #[prost(message, optional, boxed, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_operation: Option<Box<SuccessfulHydrateOperation>>,
    #[prost(message, optional, boxed, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_operation: Option<Box<HydrateOperation>>,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub last_compared_dry_revision: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessfulHydrateOperation {
    #[prost(string, tag = "5")]
    #[serde(
        rename = "drySHA",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub dry_sha: String,
    #[prost(string, tag = "6")]
    #[serde(
        rename = "hydratedSHA",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub hydrated_sha: String,
    #[prost(message, required, tag = "7")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source_hydrator: crate::source::SourceHydrator,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperation {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub prune: bool,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub dry_run: bool,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_strategy: Option<SyncStrategy>,
    #[prost(message, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resources: Vec<SyncOperationResource>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<crate::source::ApplicationSource>,
    #[prost(string, repeated, tag = "8")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub manifests: Vec<String>,
    #[prost(string, repeated, tag = "9")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sync_options: Vec<String>,
    #[prost(message, repeated, tag = "10")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sources: Vec<crate::source::ApplicationSource>,
    #[prost(string, repeated, tag = "11")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revisions: Vec<String>,
    #[prost(int64, tag = "12")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub auto_heal_attempts_count: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperationResource {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub group: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub kind: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOperationResult {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resources: Vec<ResourceResult>,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub revision: String,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source: crate::source::ApplicationSource,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sources: Vec<crate::source::ApplicationSource>,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revisions: Vec<String>,
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStrategy {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<SyncStrategyApply>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<SyncStrategyHook>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStrategyApply {
    #[prost(bool, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStrategyHook {
    #[prost(message, required, tag = "1")]
    #[serde(flatten)]
    pub sync_strategy_apply: SyncStrategyApply,
}
