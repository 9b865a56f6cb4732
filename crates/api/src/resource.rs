//! Resources of an Application as clients see them: tree, differences, actions. Field names and
//! numbers are Argo CD's; no behaviour here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationTree {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub nodes: Vec<ResourceNode>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub orphaned_nodes: Vec<ResourceNode>,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub hosts: Vec<HostInfo>,
    #[prost(int64, tag = "4")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub shards_count: i64,
    /// Tiphys's own; Argo CD's clients ignore it. The kinds that could not be read: objects of
    /// them may be missing from the tree.
    #[prost(message, repeated, tag = "1000")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub unreadable_kinds: Vec<UnreadableKind>,
}

/// A kind that could not be read, and why.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnreadableKind {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub group: String,
    /// `*`: every kind of the group.
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub kind: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub message: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Command {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub command: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub args: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigManagementPlugin {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<Command>,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub generate: Command,
    #[prost(bool, tag = "4")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub lock_repo: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostInfo {
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
    pub resources_info: Vec<HostResourceInfo>,
    #[prost(message, required, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub system_info: crate::meta::NodeSystemInfo,
    #[prost(btree_map = "string, string", tag = "4")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostResourceInfo {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resource_name: String,
    #[prost(int64, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub requested_by_app: i64,
    #[prost(int64, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub requested_by_neighbors: i64,
    #[prost(int64, tag = "4")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub capacity: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfoItem {
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
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KnownTypeField {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub field: String,
    #[prost(string, tag = "2")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideIgnoreDiff {
    #[prost(string, repeated, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub json_pointers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub jq_path_expressions: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub managed_fields_managers: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceAction {
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
    pub params: Vec<ResourceActionParam>,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub disabled: bool,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub icon_class: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub display_name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceActionDefinition {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(rename = "action.lua", deserialize_with = "crate::null_default")]
    pub action_lua: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceActionParam {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceActions {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "discovery.lua",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub action_discovery_lua: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub definitions: Vec<ResourceActionDefinition>,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub merge_builtin_actions: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDiff {
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
    pub namespace: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub target_state: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub live_state: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub diff: String,
    #[prost(bool, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub hook: bool,
    #[prost(string, tag = "9")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub normalized_live_state: String,
    #[prost(string, tag = "10")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub predicted_live_state: String,
    #[prost(string, tag = "11")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resource_version: String,
    #[prost(bool, tag = "12")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub modified: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceIgnoreDifferences {
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
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub json_pointers: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub jq_path_expressions: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub managed_fields_managers: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceNetworkingInfo {
    #[prost(btree_map = "string, string", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub target_labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub target_refs: Vec<ResourceRef>,
    #[prost(btree_map = "string, string", tag = "3")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ingress: Vec<crate::meta::LoadBalancerIngress>,
    #[prost(string, repeated, tag = "5")]
    #[serde(
        rename = "externalURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub external_urls: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceNode {
    #[prost(message, required, tag = "1")]
    #[serde(flatten)]
    pub resource_ref: ResourceRef,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub parent_refs: Vec<ResourceRef>,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub info: Vec<InfoItem>,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networking_info: Option<ResourceNetworkingInfo>,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resource_version: String,
    #[prost(string, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub images: Vec<String>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<crate::meta::Time>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceOverride {
    #[prost(string, optional, tag = "1")]
    #[serde(rename = "health.lua", skip_serializing_if = "Option::is_none")]
    pub health_lua: Option<String>,
    #[prost(bool, optional, tag = "5")]
    #[serde(
        rename = "health.lua.useOpenLibs",
        skip_serializing_if = "Option::is_none"
    )]
    pub use_open_libs: Option<bool>,
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<String>,
    #[prost(message, optional, tag = "2")]
    #[serde(with = "rules_as_text")]
    pub ignore_differences: Option<OverrideIgnoreDiff>,
    #[prost(message, optional, tag = "6")]
    #[serde(with = "rules_as_text")]
    pub ignore_resource_updates: Option<OverrideIgnoreDiff>,
    #[prost(message, repeated, tag = "4")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub known_type_fields: Vec<KnownTypeField>,
}

/// Argo CD writes the rules of an override as YAML inside its JSON.
mod rules_as_text {
    use super::OverrideIgnoreDiff;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        rules: &Option<OverrideIgnoreDiff>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let none = OverrideIgnoreDiff::default();
        let rules = rules.as_ref().unwrap_or(&none);
        let list = |name: &str, items: &[String]| {
            let items: String = items
                .iter()
                .map(|item| format!("- {}\n", scalar(item)))
                .collect();
            let after = if items.is_empty() { " null\n" } else { "\n" };
            format!("{name}:{after}{items}")
        };
        serializer.serialize_str(
            &[
                list("jqPathExpressions", &rules.jq_path_expressions),
                list("jsonPointers", &rules.json_pointers),
                list("managedFieldsManagers", &rules.managed_fields_managers),
            ]
            .concat(),
        )
    }

    /// Plain where YAML reads that as the same text, and a JSON string, which YAML reads too,
    /// elsewhere.
    fn scalar(text: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/.-_~".contains(c);
        let begins = text.starts_with('/') || text.starts_with('.');
        if begins && text.chars().all(is_plain) {
            text.to_owned()
        } else {
            serde_json::Value::from(text).to_string()
        }
    }

    /// Reads the rules as fields only: clients have them as text, which needs no structure here.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<OverrideIgnoreDiff>, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let is_text = value.is_null() || value.is_string();
        Ok(if is_text {
            None
        } else {
            serde_json::from_value(value).ok()
        })
    }
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRef {
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
    pub uid: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthStatus {
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
