//! Repositories, their credentials, and facts about revisions. Field names and numbers are Argo
//! CD's; no behaviour here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartDetails {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub description: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub home: String,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub maintainers: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommitMetadata {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub author: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub date: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub subject: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub body: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sha: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub repo_url: String,
}

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
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub sub_type: String,
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
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<GnuPGPublicKey>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmOptions {
    #[prost(string, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub values_file_schemes: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeOptions {
    #[prost(string, optional, tag = "1")]
    #[serde(rename = "BuildOptions", skip_serializing_if = "Option::is_none")]
    pub build_options: Option<String>,
    #[prost(string, optional, tag = "2")]
    #[serde(rename = "BinaryPath", skip_serializing_if = "Option::is_none")]
    pub binary_path: Option<String>,
    #[prost(message, repeated, tag = "3")]
    #[serde(
        rename = "Versions",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub versions: Vec<KustomizeVersion>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KustomizeVersion {
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_options: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OCIMetadata {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub created_at: String,
    #[prost(string, tag = "2")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub authors: String,
    #[prost(string, tag = "3")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub image_url: String,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub docs_url: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub source_url: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub version: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub description: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCreds {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub url: String,
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
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tls_client_cert_data: String,
    #[prost(string, tag = "6")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tls_client_cert_key: String,
    #[prost(string, tag = "7")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_private_key: String,
    #[prost(int64, tag = "8")]
    #[serde(
        rename = "githubAppID",
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_id: i64,
    #[prost(int64, tag = "9")]
    #[serde(
        rename = "githubAppInstallationID",
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_installation_id: i64,
    #[prost(string, tag = "10")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_enterprise_base_url: String,
    #[prost(bool, tag = "11")]
    #[serde(
        rename = "enableOCI",
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub enable_oci: bool,
    #[prost(string, tag = "12")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
    #[prost(string, tag = "13")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub gcp_service_account_key: String,
    #[prost(string, tag = "19")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub proxy: String,
    #[prost(bool, tag = "20")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_http_basic_auth: bool,
    #[prost(string, tag = "23")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub no_proxy: String,
    #[prost(bool, tag = "24")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub use_azure_workload_identity: bool,
    #[prost(string, tag = "25")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub bearer_token: String,
    #[prost(bool, tag = "26")]
    #[serde(
        rename = "insecureOCIForceHttp",
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub insecure_oci_force_http: bool,
    #[prost(string, tag = "29")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_client_id: String,
    #[prost(string, tag = "30")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_client_secret: String,
    #[prost(string, tag = "31")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_tenant_id: String,
    #[prost(string, tag = "32")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_active_directory_endpoint: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepoCredsList {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<RepoCreds>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Repository {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
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
    #[prost(message, required, tag = "5")]
    #[serde(deserialize_with = "crate::null_default")]
    pub connection_state: crate::cluster::ConnectionState,
    #[prost(bool, tag = "6")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub insecure_ignore_host_key: bool,
    #[prost(bool, tag = "7")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub insecure: bool,
    #[prost(bool, tag = "8")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub enable_lfs: bool,
    #[prost(string, tag = "9")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tls_client_cert_data: String,
    #[prost(string, tag = "10")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tls_client_cert_key: String,
    #[prost(string, tag = "11")]
    #[serde(
        rename = "type",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub type_: String,
    #[prost(string, tag = "12")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub name: String,
    #[prost(bool, tag = "13")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub inherited_creds: bool,
    #[prost(bool, tag = "14")]
    #[serde(
        rename = "enableOCI",
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub enable_oci: bool,
    #[prost(string, tag = "15")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_private_key: String,
    #[prost(int64, tag = "16")]
    #[serde(
        rename = "githubAppID",
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_id: i64,
    #[prost(int64, tag = "17")]
    #[serde(
        rename = "githubAppInstallationID",
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_installation_id: i64,
    #[prost(string, tag = "18")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub github_app_enterprise_base_url: String,
    #[prost(string, tag = "19")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub proxy: String,
    #[prost(string, tag = "20")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub project: String,
    #[prost(string, tag = "21")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub gcp_service_account_key: String,
    #[prost(bool, tag = "22")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub force_http_basic_auth: bool,
    #[prost(string, tag = "23")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub no_proxy: String,
    #[prost(bool, tag = "24")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub use_azure_workload_identity: bool,
    #[prost(string, tag = "25")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub bearer_token: String,
    #[prost(bool, tag = "26")]
    #[serde(
        rename = "insecureOCIForceHttp",
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub insecure_oci_force_http: bool,
    #[prost(int64, tag = "27")]
    #[serde(
        skip_serializing_if = "crate::is_zero",
        deserialize_with = "crate::null_default"
    )]
    pub depth: i64,
    #[prost(bool, tag = "28")]
    #[serde(
        skip_serializing_if = "crate::is_false",
        deserialize_with = "crate::null_default"
    )]
    pub webhook_manifest_cache_warm_disabled: bool,
    #[prost(string, tag = "29")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_client_id: String,
    #[prost(string, tag = "30")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_client_secret: String,
    #[prost(string, tag = "31")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_service_principal_tenant_id: String,
    #[prost(string, tag = "32")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub azure_active_directory_endpoint: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryCertificate {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub server_name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub cert_type: String,
    #[prost(string, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub cert_sub_type: String,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(with = "crate::meta::base64_bytes")]
    pub cert_data: Vec<u8>,
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "crate::null_default")]
    pub cert_info: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryCertificateList {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<RepositoryCertificate>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryList {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub metadata: crate::meta::ListMeta,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub items: Vec<Repository>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionMetadata {
    #[prost(string, tag = "1")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub author: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<crate::meta::Time>,
    #[prost(string, repeated, tag = "3")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub tags: Vec<String>,
    #[prost(string, tag = "4")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub message: String,
    #[prost(string, tag = "5")]
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub signature_info: String,
    #[prost(message, repeated, tag = "6")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub references: Vec<RevisionReference>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity_result: Option<SourceIntegrityCheckResult>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionReference {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitMetadata>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrityCheckResult {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub checks: Vec<SourceIntegrityCheckResultItem>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceIntegrityCheckResultItem {
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::null_default"
    )]
    pub problems: Vec<String>,
}
