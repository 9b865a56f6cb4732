//! The generators of an ApplicationSet. Field names and numbers are Argo CD's; no behaviour here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSetGenerator {
    #[prost(message, optional, boxed, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Box<ListGenerator>>,
    #[prost(message, optional, boxed, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Box<ClusterGenerator>>,
    #[prost(message, optional, boxed, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Box<GitGenerator>>,
    #[prost(message, optional, boxed, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scm_provider: Option<Box<super::hosts::SCMProviderGenerator>>,
    #[prost(message, optional, boxed, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_decision_resource: Option<Box<DuckTypeGenerator>>,
    #[prost(message, optional, boxed, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<Box<super::hosts::PullRequestGenerator>>,
    #[prost(message, optional, boxed, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Box<MatrixGenerator>>,
    #[prost(message, optional, boxed, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Box<MergeGenerator>>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<crate::meta::LabelSelector>,
    #[prost(message, optional, boxed, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Box<PluginGenerator>>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSetNestedGenerator {
    #[prost(message, optional, boxed, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Box<ListGenerator>>,
    #[prost(message, optional, boxed, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Box<ClusterGenerator>>,
    #[prost(message, optional, boxed, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Box<GitGenerator>>,
    #[prost(message, optional, boxed, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scm_provider: Option<Box<super::hosts::SCMProviderGenerator>>,
    #[prost(message, optional, boxed, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_decision_resource: Option<Box<DuckTypeGenerator>>,
    #[prost(message, optional, boxed, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<Box<super::hosts::PullRequestGenerator>>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<crate::meta::Json>,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<crate::meta::Json>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<crate::meta::LabelSelector>,
    #[prost(message, optional, boxed, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Box<PluginGenerator>>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSetTerminalGenerator {
    #[prost(message, optional, boxed, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Box<ListGenerator>>,
    #[prost(message, optional, boxed, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Box<ClusterGenerator>>,
    #[prost(message, optional, boxed, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Box<GitGenerator>>,
    #[prost(message, optional, boxed, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scm_provider: Option<Box<super::hosts::SCMProviderGenerator>>,
    #[prost(message, optional, boxed, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_decision_resource: Option<Box<DuckTypeGenerator>>,
    #[prost(message, optional, boxed, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<Box<super::hosts::PullRequestGenerator>>,
    #[prost(message, optional, boxed, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Box<PluginGenerator>>,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<crate::meta::LabelSelector>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterGenerator {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub selector: crate::meta::LabelSelector,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
    #[prost(btree_map = "string, string", tag = "3")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: BTreeMap<String, String>,
    #[prost(bool, tag = "4")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub flat_list: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DuckTypeGenerator {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub config_map_ref: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(int64, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<i64>,
    #[prost(message, required, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub label_selector: crate::meta::LabelSelector,
    #[prost(message, required, tag = "5")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
    #[prost(btree_map = "string, string", tag = "6")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GitDirectoryGeneratorItem {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub path: String,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub exclude: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GitFileGeneratorItem {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub path: String,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub exclude: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GitGenerator {
    #[prost(string, tag = "1")]
    #[serde(rename = "repoURL", deserialize_with = "crate::null_default")]
    pub repo_url: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub directories: Vec<GitDirectoryGeneratorItem>,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub files: Vec<GitFileGeneratorItem>,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub revision: String,
    #[prost(int64, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<i64>,
    #[prost(message, required, tag = "6")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub path_param_prefix: String,
    #[prost(btree_map = "string, string", tag = "8")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ListGenerator {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub elements: Vec<crate::meta::Json>,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub elements_yaml: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MatrixGenerator {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub generators: Vec<ApplicationSetNestedGenerator>,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MergeGenerator {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub generators: Vec<ApplicationSetNestedGenerator>,
    #[prost(string, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub merge_keys: Vec<String>,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NestedMatrixGenerator {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub generators: Vec<ApplicationSetTerminalGenerator>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NestedMergeGenerator {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub generators: Vec<ApplicationSetTerminalGenerator>,
    #[prost(string, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub merge_keys: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginConfigMapRef {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginGenerator {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub config_map_ref: PluginConfigMapRef,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub input: PluginInput,
    #[prost(int64, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<i64>,
    #[prost(message, required, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub template: super::ApplicationSetTemplate,
    #[prost(btree_map = "string, string", tag = "5")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginInput {
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub parameters: BTreeMap<String, crate::meta::Json>,
}
