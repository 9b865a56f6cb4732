//! Messages of repository.RepositoryService.

mod app_details;

pub use app_details::{
    DirectoryAppSpec, HelmAppSpec, KustomizeAppSpec, ParameterAnnouncement, PluginAppSpec,
    RepoAppDetailsQuery, RepoAppDetailsResponse, RepoServerAppDetailsQuery,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoAppsQuery {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub repo: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_name: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_project: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppInfo {
    #[prost(string, tag = "1")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub path: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoAppsResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub items: Vec<AppInfo>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoQuery {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub repo: String,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_refresh: bool,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_project: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoAccessQuery {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub repo: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub username: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub password: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ssh_private_key: String,
    #[prost(bool, tag = "5")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub insecure: bool,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tls_client_cert_data: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tls_client_cert_key: String,
    #[prost(string, tag = "9")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
    #[prost(string, tag = "10")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(bool, tag = "11")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub enable_oci: bool,
    #[prost(string, tag = "12")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_private_key: String,
    #[prost(int64, tag = "13")]
    #[serde(
        rename = "githubAppID",
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_id: i64,
    #[prost(int64, tag = "14")]
    #[serde(
        rename = "githubAppInstallationID",
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_installation_id: i64,
    #[prost(string, tag = "15")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_enterprise_base_url: String,
    #[prost(string, tag = "16")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub proxy: String,
    #[prost(string, tag = "17")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub project: String,
    #[prost(string, tag = "18")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub gcp_service_account_key: String,
    #[prost(bool, tag = "19")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_http_basic_auth: bool,
    #[prost(bool, tag = "20")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub use_azure_workload_identity: bool,
    #[prost(string, tag = "21")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub bearer_token: String,
    #[prost(bool, tag = "22")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub insecure_oci_force_http: bool,
    #[prost(string, tag = "23")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_client_id: String,
    #[prost(string, tag = "24")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_client_secret: String,
    #[prost(string, tag = "25")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_tenant_id: String,
    #[prost(string, tag = "26")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_active_directory_endpoint: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoResponse {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCreateRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(bool, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub upsert: bool,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub creds_only: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoUpdateRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub no_cache: bool,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_label_key: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_name: String,
    #[prost(string, tag = "8")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_source: Option<crate::source::ApplicationSource>,
    #[prost(message, repeated, tag = "11")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub repos: Vec<crate::repository::Repository>,
    #[prost(message, repeated, tag = "12")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub plugins: Vec<crate::resource::ConfigManagementPlugin>,
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize_options: Option<crate::repository::KustomizeOptions>,
    #[prost(string, tag = "14")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kube_version: String,
    #[prost(string, repeated, tag = "15")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_versions: Vec<String>,
    #[prost(bool, tag = "16")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub verify_signature: bool,
    #[prost(message, repeated, tag = "17")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub helm_repo_creds: Vec<crate::repository::RepoCreds>,
    #[prost(bool, tag = "18")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub no_revision_cache: bool,
    #[prost(string, tag = "19")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tracking_method: String,
    #[prost(btree_map = "string, bool", tag = "20")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub enabled_source_types: BTreeMap<String, bool>,
    #[prost(message, optional, tag = "21")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm_options: Option<crate::repository::HelmOptions>,
    #[prost(bool, tag = "22")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub has_multiple_sources: bool,
    #[prost(btree_map = "string, message", tag = "23")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ref_sources: BTreeMap<String, crate::operation::RefTarget>,
    #[prost(string, repeated, tag = "24")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub project_source_repos: Vec<String>,
    #[prost(string, tag = "25")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub project_name: String,
    #[prost(string, tag = "26")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub annotation_manifest_generate_paths: String,
    #[prost(string, tag = "27")]
    #[serde(
        rename = "installationID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub installation_id: String,
    #[prost(message, optional, tag = "28")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity: Option<crate::project::SourceIntegrity>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestRequestWithFiles {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ManifestRequest>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ManifestFileMetadata>,
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ManifestFileChunk>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestFileMetadata {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub checksum: String,
    #[prost(int64, tag = "2")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub size: i64,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestFileChunk {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        with = "crate::meta::base64_bytes"
    )]
    pub chunk: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TestRepositoryRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TestRepositoryResponse {
    #[prost(bool, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub verified_repository: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResolveRevisionRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<crate::application::Application>,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ambiguous_revision: String,
    #[prost(int64, tag = "4")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub source_index: i64,
    #[prost(bool, tag = "5")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub no_revision_cache: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResolveRevisionResponse {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ambiguous_revision: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestResponse {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub manifests: Vec<String>,
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
    pub server: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub source_type: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub verify_result: String,
    #[prost(string, repeated, tag = "8")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub commands: Vec<String>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity_result: Option<crate::project::SourceIntegrityCheckResult>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListRefsRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Refs {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub branches: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tags: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListAppsRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(btree_map = "string, bool", tag = "3")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub enabled_source_types: BTreeMap<String, bool>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppList {
    #[prost(btree_map = "string, string", tag = "1")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub apps: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginInfo {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginList {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub items: Vec<PluginInfo>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoServerRevisionMetadataRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(bool, tag = "3")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub check_signature: bool,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity: Option<crate::project::SourceIntegrity>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoServerRevisionChartDetailsRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
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
    pub revision: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmChartsRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmChart {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub versions: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmChartsResponse {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub items: Vec<HelmChart>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRevisionForPathsRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<crate::repository::Repository>,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_label_key: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub app_name: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub namespace: String,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_source: Option<crate::source::ApplicationSource>,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tracking_method: String,
    #[prost(btree_map = "string, message", tag = "7")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub ref_sources: BTreeMap<String, crate::operation::RefTarget>,
    #[prost(string, tag = "8")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub kube_version: String,
    #[prost(string, repeated, tag = "9")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub api_versions: Vec<String>,
    #[prost(bool, tag = "10")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub has_multiple_sources: bool,
    #[prost(string, tag = "11")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub synced_revision: String,
    #[prost(string, tag = "12")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
    #[prost(string, repeated, tag = "13")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub paths: Vec<String>,
    #[prost(bool, tag = "14")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub no_revision_cache: bool,
    #[prost(string, tag = "15")]
    #[serde(
        rename = "installationID",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub installation_id: String,
    #[prost(btree_map = "string, message", tag = "16")]
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub synced_ref_sources: BTreeMap<String, crate::operation::RefTarget>,
    #[prost(message, optional, tag = "17")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity: Option<crate::project::SourceIntegrity>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateRevisionForPathsResponse {
    #[prost(bool, tag = "1")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub changes: bool,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub revision: String,
}
