//! The Application resource and its spec. Field names and numbers are Argo CD's; no behaviour here.

pub mod watch_event;

use crate::{Shared, source::ApplicationSource, status::ComparedTo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::destination::ApplicationDestination;
pub use watch_event::{ApplicationDelta, ApplicationWatchEvent};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Application {
    /// Never sent in protobuf by Argo CD; the number is ours.
    #[prost(string, tag = "18001")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Never sent in protobuf by Argo CD; the number is ours.
    #[prost(string, tag = "18002")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: Shared<crate::meta::ObjectMeta>,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub spec: Shared<ApplicationSpec>,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub status: Shared<crate::status::ApplicationStatus>,
    #[prost(message, optional, boxed, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Box<crate::operation::Operation>>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationList {
    /// Never sent in protobuf by Argo CD; the number is ours.
    #[prost(string, tag = "18001")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Never sent in protobuf by Argo CD; the number is ours.
    #[prost(string, tag = "18002")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<Application>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationPreservedFields {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub annotations: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub labels: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSpec {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<crate::source::ApplicationSource>,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub destination: ApplicationDestination,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub project: String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_policy: Option<SyncPolicy>,
    #[prost(message, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ignore_differences: Vec<crate::resource::ResourceIgnoreDifferences>,
    #[prost(message, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub info: Vec<crate::operation::Info>,
    #[prost(int64, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i64>,
    #[prost(message, repeated, tag = "8")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sources: Vec<crate::source::ApplicationSource>,
    #[prost(message, optional, boxed, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_hydrator: Option<Box<crate::source::SourceHydrator>>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentParameter {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub component: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicy {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automated: Option<SyncPolicyAutomated>,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sync_options: Vec<String>,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<crate::operation::RetryStrategy>,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespace_metadata: Option<crate::operation::ManagedNamespaceMetadata>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicyAutomated {
    #[prost(bool, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
    #[prost(bool, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_heal: Option<bool>,
    #[prost(bool, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_empty: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

impl ComparedTo {
    /// Whether the sources of the specification were compared. With several sources the status does
    /// not record `source`.
    pub fn is_of(&self, spec: &ApplicationSpec) -> bool {
        let same = match spec.source.as_ref().filter(|_| spec.sources.is_empty()) {
            Some(source) => *source == self.source,
            None => self.source == ApplicationSource::default(),
        };
        same && spec.sources == self.sources
    }
}
