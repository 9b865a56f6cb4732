//! Messages of plugin.ConfigManagementPluginService, which the servers of plugins offer on unix
//! sockets, and of askpass.AskPassService, which tells the programs of a plugin the credentials of a
//! repository.

use super::repository::ParameterAnnouncement;
use serde::{Deserialize, Serialize};

/// A part of what is sent: first the metadata, then the archive in chunks. One of the fields is
/// set.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppStreamRequest {
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<ManifestRequestMetadata>,
    #[prost(message, optional, tag = "2")]
    pub file: Option<File>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestRequestMetadata {
    #[prost(string, tag = "1")]
    pub app_name: String,
    /// The Application's folder in the archive.
    #[prost(string, tag = "2")]
    pub app_rel_path: String,
    /// SHA-256 of the archive, in hexadecimal.
    #[prost(string, tag = "3")]
    pub checksum: String,
    #[prost(int64, tag = "4")]
    pub size: i64,
    #[prost(message, repeated, tag = "5")]
    pub env: Vec<EnvEntry>,
}

/// A variable for the commands of a plugin.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvEntry {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(with = "crate::meta::base64_bytes")]
    pub chunk: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestResponse {
    #[prost(string, repeated, tag = "1")]
    pub manifests: Vec<String>,
    #[prost(string, tag = "2")]
    pub source_type: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryResponse {
    #[prost(bool, tag = "1")]
    pub is_supported: bool,
    #[prost(bool, tag = "2")]
    pub is_discovery_enabled: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParametersAnnouncementResponse {
    #[prost(message, repeated, tag = "1")]
    pub parameter_announcements: Vec<ParameterAnnouncement>,
}

/// google.protobuf.Empty.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
pub struct Nothing {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckPluginConfigurationResponse {
    #[prost(bool, tag = "1")]
    pub is_discovery_configured: bool,
    #[prost(bool, tag = "2")]
    pub provide_git_creds: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CredentialsRequest {
    #[prost(string, tag = "1")]
    pub nonce: String,
}

/// It has a password: it is never logged, nor shown.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[prost(skip_debug)]
pub struct CredentialsResponse {
    #[prost(string, tag = "1")]
    pub username: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

impl std::fmt::Debug for CredentialsResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialsResponse")
    }
}
