//! Messages of certificate.CertificateService.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryCertificateQuery {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub host_name_pattern: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub cert_type: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub cert_sub_type: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryCertificateCreateRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<crate::repository::RepositoryCertificateList>,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub upsert: bool,
}
