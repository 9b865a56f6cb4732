//! Messages of notification.NotificationService.

use serde::{Deserialize, Serialize};

/// Each of its three calls has an empty request.
#[derive(Clone, Copy, PartialEq, prost::Message, Serialize, Deserialize)]
pub struct ListRequest {}

/// The name of a trigger, service or template.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    #[prost(string, required, tag = "1")]
    pub name: String,
}

/// TriggerList, ServiceList and TemplateList.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedList {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub items: Vec<Named>,
}
