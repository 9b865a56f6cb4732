//! The AppProject resource. Field names and numbers are Argo CD's; no behaviour here.

use crate::meta::GroupKind;
use prost::{
    DecodeError,
    bytes::{Buf, BufMut},
    encoding::{self, DecodeContext, WireType},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::repository::{SourceIntegrityCheckResult, SourceIntegrityCheckResultItem};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProject {
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
    pub metadata: crate::meta::ObjectMeta,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub spec: AppProjectSpec,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub status: AppProjectStatus,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProjectList {
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
    pub items: Vec<AppProject>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProjectSpec {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub source_repos: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub destinations: Vec<crate::destination::ApplicationDestination>,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub description: String,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub roles: Vec<ProjectRole>,
    #[prost(message, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub cluster_resource_whitelist: Vec<ClusterResourceRestrictionItem>,
    #[prost(message, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace_resource_blacklist: Vec<GroupKind>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaned_resources: Option<OrphanedResourcesMonitorSettings>,
    #[prost(message, repeated, tag = "8")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sync_windows: Vec<SyncWindow>,
    /// None is every kind, and an empty list is no kind.
    #[prost(oneof = "KindList", tags = "9, 18001")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_resource_whitelist: Option<KindList>,
    #[prost(message, repeated, tag = "10")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub signature_keys: Vec<SignatureKey>,
    #[prost(message, repeated, tag = "11")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub cluster_resource_blacklist: Vec<ClusterResourceRestrictionItem>,
    #[prost(string, repeated, tag = "12")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub source_namespaces: Vec<String>,
    #[prost(bool, tag = "13")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub permit_only_project_scoped_clusters: bool,
    #[prost(message, repeated, tag = "14")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub destination_service_accounts: Vec<ApplicationDestinationServiceAccount>,
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity: Option<SourceIntegrity>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProjectStatus {
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub jwt_tokens_by_role: BTreeMap<String, JWTTokens>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationDestinationServiceAccount {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub server: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub default_service_account: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterResourceRestrictionItem {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub group: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub kind: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
}

/// A list of kinds that differs from none when it is empty.
///
/// To prost it is a `oneof`, the only kind of field whose encoding a type brings itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KindList(pub Vec<GroupKind>);

impl KindList {
    const ITEM: u32 = 9;
    /// Stands for an empty list, which Argo CD's messages cannot say; the number is ours.
    const EMPTY: u32 = 18001;

    pub fn encode(&self, buf: &mut impl BufMut) {
        if self.0.is_empty() {
            encoding::bool::encode(Self::EMPTY, &true, buf);
        }
        encoding::message::encode_repeated(Self::ITEM, &self.0, buf);
    }

    #[must_use]
    pub fn encoded_len(&self) -> usize {
        if self.0.is_empty() {
            return encoding::bool::encoded_len(Self::EMPTY, &true);
        }
        encoding::message::encoded_len_repeated(Self::ITEM, &self.0)
    }

    /// # Errors
    /// What was sent is no such field.
    pub fn merge(
        field: &mut Option<Self>,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag == Self::EMPTY {
            let mut is_empty = false;
            encoding::bool::merge(wire_type, &mut is_empty, buf, ctx)?;
            if is_empty {
                field.get_or_insert_default();
            }
            return Ok(());
        }
        let list = &mut field.get_or_insert_default().0;
        encoding::message::merge_repeated(wire_type, list, buf, ctx)
    }
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JWTToken {
    #[prost(int64, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub iat: i64,
    #[prost(int64, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub exp: i64,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub id: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JWTTokens {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub items: Vec<JWTToken>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OrphanedResourceKey {
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
    pub kind: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OrphanedResourcesMonitorSettings {
    #[prost(bool, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<bool>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ignore: Vec<OrphanedResourceKey>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectRole {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub description: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub policies: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub jwt_tokens: Vec<JWTToken>,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub groups: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SignatureKey {
    #[prost(string, optional, tag = "1")]
    #[serde(rename = "keyID", skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrity {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<SourceIntegrityGit>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrityGit {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub policies: Vec<SourceIntegrityGitPolicy>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrityGitPolicy {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub repos: Vec<SourceIntegrityGitPolicyRepo>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpg: Option<SourceIntegrityGitPolicyGPG>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrityGitPolicyGPG {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub mode: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub keys: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrityGitPolicyRepo {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub url: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncWindow {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kind: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub schedule: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub duration: String,
    #[prost(string, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub applications: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespaces: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub clusters: Vec<String>,
    #[prost(bool, tag = "7")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub manual_sync: bool,
    #[prost(string, tag = "8")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub time_zone: String,
    #[prost(bool, tag = "9")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub and_operator: bool,
    #[prost(string, tag = "10")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub description: String,
    #[prost(bool, tag = "11")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub sync_overrun: bool,
}
