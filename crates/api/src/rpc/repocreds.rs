//! Messages of repocreds.RepoCredsService.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCredsQuery {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub url: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCredsDeleteRequest {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub url: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCredsResponse {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCredsCreateRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creds: Option<crate::repository::RepoCreds>,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub upsert: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCredsUpdateRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creds: Option<crate::repository::RepoCreds>,
}
