//! Messages of version.VersionService.

use serde::{Deserialize, Serialize};

/// [`VersionMessage::compiler`] of this program, whichever role it has; Argo CD's is another one.
pub const COMPILER: &str = "rustc";

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VersionMessage {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "Version",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub version: String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "BuildDate",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub build_date: String,
    #[prost(string, tag = "3")]
    #[serde(
        rename = "GitCommit",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub git_commit: String,
    #[prost(string, tag = "4")]
    #[serde(
        rename = "GitTag",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub git_tag: String,
    #[prost(string, tag = "5")]
    #[serde(
        rename = "GitTreeState",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub git_tree_state: String,
    #[prost(string, tag = "6")]
    #[serde(
        rename = "GoVersion",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub go_version: String,
    #[prost(string, tag = "7")]
    #[serde(
        rename = "Compiler",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub compiler: String,
    #[prost(string, tag = "8")]
    #[serde(
        rename = "Platform",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub platform: String,
    #[prost(string, tag = "10")]
    #[serde(
        rename = "KustomizeVersion",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kustomize_version: String,
    #[prost(string, tag = "11")]
    #[serde(
        rename = "HelmVersion",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub helm_version: String,
    #[prost(string, tag = "12")]
    #[serde(
        rename = "KubectlVersion",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kubectl_version: String,
    #[prost(string, tag = "13")]
    #[serde(
        rename = "JsonnetVersion",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub jsonnet_version: String,
    #[prost(string, tag = "14")]
    #[serde(
        rename = "ExtraBuildInfo",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub extra_build_info: String,
}
