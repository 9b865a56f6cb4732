//! Clusters and how to reach them. Field names and numbers are Argo CD's; no behaviour here.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AWSAuthConfig {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub cluster_name: String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "roleARN",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub role_arn: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub profile: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub server: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub config: ClusterConfig,
    #[prost(message, required, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub connection_state: ConnectionState,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub server_version: String,
    #[prost(string, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespaces: Vec<String>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_requested_at: Option<crate::meta::Time>,
    #[prost(message, required, tag = "8")]
    #[serde(deserialize_with = "crate::null_default")]
    pub info: ClusterInfo,
    #[prost(int64, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<i64>,
    #[prost(bool, tag = "10")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub cluster_resources: bool,
    #[prost(string, tag = "11")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub project: String,
    #[prost(btree_map = "string, string", tag = "12")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "13")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterCacheInfo {
    #[prost(int64, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub resources_count: i64,
    #[prost(int64, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub apis_count: i64,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cache_sync_time: Option<crate::meta::Time>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterConfig {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub username: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub password: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub bearer_token: String,
    #[prost(message, required, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub tls_client_config: TLSClientConfig,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_auth_config: Option<AWSAuthConfig>,
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_provider_config: Option<ExecProviderConfig>,
    #[prost(bool, tag = "7")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub disable_compression: bool,
    #[prost(string, tag = "8")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub proxy_url: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInfo {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub connection_state: ConnectionState,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub server_version: String,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub cache_info: ClusterCacheInfo,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub applications_count: i64,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_versions: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterList {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<Cluster>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionState {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub status: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub message: String,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempted_at: Option<crate::meta::Time>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecProviderConfig {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub command: String,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub args: Vec<String>,
    #[prost(btree_map = "string, string", tag = "3")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub env: BTreeMap<String, String>,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_version: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub install_hint: String,
    #[prost(bool, tag = "6")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub provide_cluster_info: bool,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<crate::meta::RawExtension>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TLSClientConfig {
    #[prost(bool, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub insecure: bool,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub server_name: String,
    #[prost(bytes = "vec", tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        with = "crate::meta::base64_bytes"
    )]
    pub cert_data: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        with = "crate::meta::base64_bytes"
    )]
    pub key_data: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        with = "crate::meta::base64_bytes"
    )]
    pub ca_data: Vec<u8>,
}
