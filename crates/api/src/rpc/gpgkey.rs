//! Messages of gpgkey.GPGKeyService.

use crate::meta::ListMeta;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GnuPGPublicKey {
    #[prost(string, tag = "1")]
    #[serde(rename = "keyID", deserialize_with = "crate::null_default")]
    pub key_id: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub fingerprint: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub owner: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub trust: String,
    /// Such as `rsa4096`.
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sub_type: String,
    /// Armored.
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub key_data: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GnuPGPublicKeyList {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<GnuPGPublicKey>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GnuPGPublicKeyQuery {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "keyID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub key_id: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GnuPGPublicKeyCreateRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publickey: Option<GnuPGPublicKey>,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub upsert: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GnuPGPublicKeyCreateResponse {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<GnuPGPublicKeyList>,
    /// The ids of keys that exist already.
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub skipped: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
pub struct GnuPGPublicKeyResponse {}
