//! Where manifests come from. Field names and numbers are Argo CD's; no behaviour here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSource {
    #[prost(string, tag = "1")]
    #[serde(rename = "repoURL", deserialize_with = "crate::null_default")]
    pub repo_url: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub path: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub target_revision: String,
    #[prost(message, optional, boxed, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<Box<ApplicationSourceHelm>>,
    #[prost(message, optional, boxed, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<Box<ApplicationSourceKustomize>>,
    #[prost(message, optional, boxed, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Box<ApplicationSourceDirectory>>,
    #[prost(message, optional, boxed, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Box<ApplicationSourcePlugin>>,
    #[prost(string, tag = "12")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub chart: String,
    #[prost(string, tag = "13")]
    #[serde(
        rename = "ref",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ref_: String,
    #[prost(string, tag = "14")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "15")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tag_prefix: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSourceDirectory {
    #[prost(bool, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub recurse: bool,
    #[prost(message, required, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub jsonnet: ApplicationSourceJsonnet,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub exclude: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub include: String,
    #[prost(bool, tag = "5")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub disable_extension_filter: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSourceHelm {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub value_files: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub parameters: Vec<HelmParameter>,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub release_name: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: String,
    #[prost(message, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub file_parameters: Vec<HelmFileParameter>,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub version: String,
    #[prost(bool, tag = "7")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub pass_credentials: bool,
    #[prost(bool, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub ignore_missing_value_files: bool,
    #[prost(bool, tag = "9")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub skip_crds: bool,
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_object: Option<crate::meta::RawExtension>,
    #[prost(string, tag = "11")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(string, tag = "12")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kube_version: String,
    #[prost(string, repeated, tag = "13")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_versions: Vec<String>,
    #[prost(bool, tag = "14")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub skip_tests: bool,
    #[prost(bool, tag = "15")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub skip_schema_validation: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSourceJsonnet {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ext_vars: Vec<JsonnetVar>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tlas: Vec<JsonnetVar>,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub libs: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSourceKustomize {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name_prefix: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name_suffix: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub images: Vec<String>,
    #[prost(btree_map = "string, string", tag = "4")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub common_labels: BTreeMap<String, String>,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub version: String,
    #[prost(btree_map = "string, string", tag = "6")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub common_annotations: BTreeMap<String, String>,
    #[prost(bool, tag = "7")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_common_labels: bool,
    #[prost(bool, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_common_annotations: bool,
    #[prost(string, tag = "9")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(bool, tag = "10")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub common_annotations_envsubst: bool,
    #[prost(message, repeated, tag = "11")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub replicas: Vec<KustomizeReplica>,
    #[prost(message, repeated, tag = "12")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub patches: Vec<KustomizePatch>,
    #[prost(string, repeated, tag = "13")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub components: Vec<String>,
    #[prost(bool, tag = "17")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub ignore_missing_components: bool,
    #[prost(bool, tag = "14")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub label_without_selector: bool,
    #[prost(string, tag = "15")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kube_version: String,
    #[prost(string, repeated, tag = "16")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_versions: Vec<String>,
    #[prost(bool, tag = "18")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub label_include_templates: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSourcePlugin {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub env: Vec<EnvEntry>,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub parameters: Vec<ApplicationSourcePluginParameter>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(from = "PluginParameterFields", into = "PluginParameterFields")]
pub struct ApplicationSourcePluginParameter {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, optional, tag = "5")]
    pub string: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub map: Option<OptionalMap>,
    #[prost(message, optional, tag = "4")]
    pub array: Option<OptionalArray>,
}

/// A parameter in JSON: what is empty differs from what is not there.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ApplicationSourcePluginParameter")]
struct PluginParameterFields {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    string: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<Vec<String>>,
}

impl From<PluginParameterFields> for ApplicationSourcePluginParameter {
    fn from(fields: PluginParameterFields) -> Self {
        Self {
            name: fields.name,
            string: fields.string,
            map: fields.map.map(|map| OptionalMap { map }),
            array: fields.array.map(|array| OptionalArray { array }),
        }
    }
}

impl From<ApplicationSourcePluginParameter> for PluginParameterFields {
    fn from(parameter: ApplicationSourcePluginParameter) -> Self {
        Self {
            name: parameter.name,
            string: parameter.string,
            map: parameter.map.map(|map| map.map),
            array: parameter.array.map(|array| array.array),
        }
    }
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DrySource {
    #[prost(string, tag = "1")]
    #[serde(rename = "repoURL", deserialize_with = "crate::null_default")]
    pub repo_url: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub target_revision: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub path: String,
    #[prost(message, optional, boxed, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<Box<ApplicationSourceHelm>>,
    #[prost(message, optional, boxed, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<Box<ApplicationSourceKustomize>>,
    #[prost(message, optional, boxed, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Box<ApplicationSourceDirectory>>,
    #[prost(message, optional, boxed, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Box<ApplicationSourcePlugin>>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvEntry {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmFileParameter {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub path: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmParameter {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub value: String,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_string: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HydrateTo {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub target_branch: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonnetVar {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub value: String,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub code: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeGvk {
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
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizePatch {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub path: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub patch: String,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<KustomizeSelector>,
    #[prost(btree_map = "string, bool", tag = "4")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub options: BTreeMap<String, bool>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeReplica {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub count: crate::meta::IntOrString,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeResId {
    #[prost(message, required, tag = "1")]
    #[serde(flatten)]
    pub gvk: KustomizeGvk,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeSelector {
    #[prost(message, required, tag = "1")]
    #[serde(flatten)]
    pub res_id: KustomizeResId,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub annotation_selector: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub label_selector: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OptionalArray {
    #[prost(string, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub array: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OptionalMap {
    #[prost(btree_map = "string, string", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub map: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceHydrator {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub dry_source: DrySource,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub sync_source: SyncSource,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hydrate_to: Option<HydrateTo>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncSource {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub target_branch: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub path: String,
    #[prost(string, tag = "3")]
    #[serde(
        rename = "repoURL",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub repo_url: String,
}
