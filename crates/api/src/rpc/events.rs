//! Messages of core/v1 events as the API returns them.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventList {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub items: Vec<Event>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ObjectMeta,
    #[prost(message, required, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub involved_object: ObjectReference,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub reason: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub message: String,
    #[prost(message, required, tag = "5")]
    #[serde(deserialize_with = "crate::null_default")]
    pub source: EventSource,
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_timestamp: Option<crate::meta::Time>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<crate::meta::Time>,
    #[prost(int32, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub count: i32,
    #[prost(string, tag = "9")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_time: Option<crate::meta::MicroTime>,
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<EventSeries>,
    #[prost(string, tag = "12")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub action: String,
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<ObjectReference>,
    #[prost(string, tag = "14")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub reporting_component: String,
    #[prost(string, tag = "15")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub reporting_instance: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventSource {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub component: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub host: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventSeries {
    #[prost(int32, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub count: i32,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_observed_time: Option<crate::meta::MicroTime>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
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
    pub namespace: String,
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
    pub uid: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_version: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub resource_version: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub field_path: String,
}
