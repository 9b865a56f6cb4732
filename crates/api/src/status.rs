//! What the controller writes into an Application. Field names and numbers are Argo CD's; no
//! behaviour here.

use crate::Shared;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::resource::HealthStatus;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppHealthStatus {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub status: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub message: String,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<crate::meta::Time>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationCondition {
    #[prost(string, tag = "1")]
    #[serde(rename = "type", deserialize_with = "crate::null_default")]
    pub type_: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub message: String,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<crate::meta::Time>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationStatus {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resources: Vec<ResourceStatus>,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub sync: SyncStatus,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub health: AppHealthStatus,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub history: Vec<RevisionHistory>,
    #[prost(message, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub conditions: Vec<ApplicationCondition>,
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciled_at: Option<crate::meta::Time>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_state: Option<Shared<crate::operation::OperationState>>,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<crate::meta::Time>,
    #[prost(string, tag = "9")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub source_type: String,
    #[prost(message, required, tag = "10")]
    #[serde(deserialize_with = "crate::null_default")]
    pub summary: ApplicationSummary,
    #[prost(string, tag = "11")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resource_health_source: String,
    #[prost(string, repeated, tag = "12")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub source_types: Vec<String>,
    #[prost(string, tag = "13")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub controller_namespace: String,
    #[prost(message, required, tag = "14")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source_hydrator: crate::operation::SourceHydratorStatus,
}

/// All fields with their JSON names.
macro_rules! fields {
    ($($field:ident $name:literal,)*) => {
        impl ApplicationStatus {
            /// Both values reduced to the fields in which they differ.
            #[must_use]
            pub fn differing(&self, other: &Self) -> (Self, Self) {
                let (mut ours, mut theirs) = (Self::default(), Self::default());
                let Self { $($field,)* } = self;
                $(if *$field != other.$field {
                    ours.$field.clone_from($field);
                    theirs.$field.clone_from(&other.$field);
                })*
                (ours, theirs)
            }

            /// Copies the field with this name, if there is one.
            pub fn adopt(&mut self, name: &str, from: &mut Self) {
                match name {
                    $($name => std::mem::swap(&mut self.$field, &mut from.$field),)*
                    _ => {}
                }
            }
        }
    };
}

fields! {
    resources "resources",
    sync "sync",
    health "health",
    history "history",
    conditions "conditions",
    reconciled_at "reconciledAt",
    operation_state "operationState",
    observed_at "observedAt",
    source_type "sourceType",
    summary "summary",
    resource_health_source "resourceHealthSource",
    source_types "sourceTypes",
    controller_namespace "controllerNamespace",
    source_hydrator "sourceHydrator",
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSummary {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        rename = "externalURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub external_urls: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub images: Vec<String>,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub is_app_of_apps: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ComparedTo {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source: crate::source::ApplicationSource,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub destination: crate::destination::ApplicationDestination,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sources: Vec<crate::source::ApplicationSource>,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ignore_differences: Vec<crate::resource::ResourceIgnoreDifferences>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceStatus {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub group: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub version: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kind: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub status: String,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    #[prost(bool, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub hook: bool,
    #[prost(bool, tag = "9")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub requires_pruning: bool,
    #[prost(int64, tag = "10")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub sync_wave: i64,
    #[prost(bool, tag = "11")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub requires_deletion_confirmation: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionHistory {
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<crate::meta::Time>,
    #[prost(int64, tag = "5")]
    #[serde(deserialize_with = "crate::null_default")]
    pub id: i64,
    #[prost(message, required, tag = "6")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source: crate::source::ApplicationSource,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_started_at: Option<crate::meta::Time>,
    #[prost(message, repeated, tag = "8")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sources: Vec<crate::source::ApplicationSource>,
    #[prost(string, repeated, tag = "9")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revisions: Vec<String>,
    #[prost(message, required, tag = "10")]
    #[serde(deserialize_with = "crate::null_default")]
    pub initiated_by: crate::operation::OperationInitiator,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStatus {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub status: String,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub compared_to: Shared<ComparedTo>,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(string, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revisions: Vec<String>,
}
