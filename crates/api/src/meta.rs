//! The parts of Kubernetes' meta/v1 and core/v1 used in our messages, in JSON and in protobuf.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{borrow::Cow, collections::BTreeMap};

/// google.protobuf.Empty.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
pub struct Empty {}

/// A time, with second precision in JSON (RFC 3339, UTC).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
pub struct Time {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Time {
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::new(self.seconds, self.nanos).unwrap_or_default()
    }
}

impl From<Timestamp> for Time {
    /// Truncates to whole seconds, as the JSON form does.
    fn from(t: Timestamp) -> Self {
        Self {
            seconds: t.as_second(),
            nanos: 0,
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(d)?;
        Ok(text
            .parse::<Timestamp>()
            .map_err(|e| D::Error::custom(format!("{text:?} is not an RFC 3339 time: {e}")))?
            .into())
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// A time with microseconds in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
pub struct MicroTime {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let t = Timestamp::new(self.seconds, self.nanos).unwrap_or_default();
        s.collect_str(&t.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
    }
}

impl<'de> Deserialize<'de> for MicroTime {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(d)?;
        let t = text
            .parse::<Timestamp>()
            .map_err(|e| D::Error::custom(format!("{text:?} is not an RFC 3339 time: {e}")))?;
        Ok(Self {
            seconds: t.as_second(),
            nanos: t.subsec_nanosecond(),
        })
    }
}

/// Any JSON value; in protobuf its text.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Json {
    #[prost(bytes = "vec", tag = "1")]
    pub raw: Vec<u8>,
}

/// An embedded object of an unknown kind: a JSON value, in protobuf its text.
pub type RawExtension = Json;

impl Json {
    /// The value; `null` if the text is empty or not JSON.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_slice(&self.raw).unwrap_or_default()
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        Self {
            raw: value.to_string().into_bytes(),
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(s)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self::from(&serde_json::Value::deserialize(d)?))
    }
}

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-preserve-unknown-fields": true})
    }
}

/// A number or a string, such as a replica count or a percentage.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct IntOrString {
    /// 0: number, 1: string.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(int32, tag = "2")]
    pub int_val: i32,
    #[prost(string, tag = "3")]
    pub str_val: String,
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.kind == 0 {
            s.serialize_i32(self.int_val)
        } else {
            s.serialize_str(&self.str_val)
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(d)? {
            serde_json::Value::String(str_val) => Ok(Self {
                kind: 1,
                int_val: 0,
                str_val,
            }),
            serde_json::Value::Number(n) => n
                .as_i64()
                .and_then(|n| i32::try_from(n).ok())
                .map(|int_val| Self {
                    kind: 0,
                    int_val,
                    str_val: String::new(),
                })
                .ok_or_else(|| D::Error::custom(format!("{n} does not fit in 32 bits"))),
            other => Err(D::Error::custom(format!(
                "{other} is neither a number nor a string"
            ))),
        }
    }
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
    }
}

/// meta/v1 ObjectMeta.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[prost(string, tag = "4")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub self_link: String,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    #[prost(int64, tag = "7")]
    #[serde(skip_serializing_if = "crate::is_zero")]
    pub generation: i64,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    #[prost(int64, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    #[prost(btree_map = "string, string", tag = "11")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub finalizers: Vec<String>,
    #[prost(message, repeated, tag = "17")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// The API server defines it; a CRD must not describe it.
impl JsonSchema for ObjectMeta {
    fn schema_name() -> Cow<'static, str> {
        "ObjectMeta".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

/// meta/v1 OwnerReference.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    #[prost(string, tag = "5")]
    pub api_version: String,
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub uid: String,
    #[prost(bool, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// meta/v1 ManagedFieldsEntry.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedFieldsEntry {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manager: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fields_type: String,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields_v1: Option<Json>,
    #[prost(string, tag = "8")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

/// meta/v1 ListMeta.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub self_link: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_: String,
    #[prost(int64, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// meta/v1 GroupKind.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupKind {
    #[prost(string, tag = "1")]
    pub group: String,
    #[prost(string, tag = "2")]
    pub kind: String,
}

/// meta/v1 LabelSelector.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[prost(btree_map = "string, string", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub match_labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// meta/v1 LabelSelectorRequirement.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelectorRequirement {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub operator: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values: Vec<String>,
}

/// core/v1 LoadBalancerIngress.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerIngress {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
}

/// core/v1 NodeSystemInfo.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSystemInfo {
    #[prost(string, tag = "1")]
    #[serde(rename = "machineID")]
    pub machine_id: String,
    #[prost(string, tag = "2")]
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "bootID")]
    pub boot_id: String,
    #[prost(string, tag = "4")]
    pub kernel_version: String,
    #[prost(string, tag = "5")]
    pub os_image: String,
    #[prost(string, tag = "6")]
    pub container_runtime_version: String,
    #[prost(string, tag = "7")]
    pub kubelet_version: String,
    #[prost(string, tag = "8")]
    pub kube_proxy_version: String,
    #[prost(string, tag = "9")]
    pub operating_system: String,
    #[prost(string, tag = "10")]
    pub architecture: String,
}

/// Bytes as base64 text in JSON, as Go's `[]byte`.
pub mod base64_bytes {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Go encodes an absent byte slice as `null`.
    pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        if bytes.is_empty() {
            return s.serialize_none();
        }
        s.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        let text = Option::<String>::deserialize(d)?.unwrap_or_default();
        STANDARD
            .decode(text)
            .map_err(|e| D::Error::custom(format!("not base64: {e}")))
    }
}
