//! Messages of kubeapps' core packages API, as far as they read. Names and numbers are kubeapps'.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Context {
    #[prost(string, tag = "1")]
    pub cluster: String,
    #[prost(string, tag = "2")]
    pub namespace: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plugin {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A package or a repository.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    #[prost(message, optional, tag = "1")]
    pub context: Option<Context>,
    /// Of a package `REPOSITORY/NAME`, a slash in the name as `%2F`.
    #[prost(string, tag = "2")]
    pub identifier: String,
    #[prost(message, optional, tag = "3")]
    pub plugin: Option<Plugin>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilterOptions {
    #[prost(string, tag = "1")]
    pub query: String,
    #[prost(string, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub categories: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub repositories: Vec<String>,
    #[prost(string, tag = "4")]
    #[serde(alias = "pkg_version")]
    pub pkg_version: String,
    #[prost(string, tag = "5")]
    #[serde(alias = "app_version")]
    pub app_version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PaginationOptions {
    #[prost(string, tag = "1")]
    #[serde(alias = "page_token")]
    pub page_token: String,
    #[prost(int32, tag = "2")]
    #[serde(alias = "page_size")]
    pub page_size: i32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummariesRequest {
    #[prost(message, optional, tag = "1")]
    pub context: Option<Context>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "filter_options")]
    pub filter_options: Option<FilterOptions>,
    #[prost(message, optional, tag = "3")]
    #[serde(alias = "pagination_options")]
    pub pagination_options: Option<PaginationOptions>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageAppVersion {
    #[prost(string, tag = "1")]
    pub pkg_version: String,
    #[prost(string, tag = "2")]
    pub app_version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageSummary {
    #[prost(message, optional, tag = "1")]
    pub available_package_ref: Option<Reference>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, optional, tag = "3")]
    pub latest_version: Option<PackageAppVersion>,
    #[prost(string, tag = "4")]
    pub icon_url: String,
    #[prost(string, tag = "5")]
    pub display_name: String,
    #[prost(string, tag = "6")]
    pub short_description: String,
    #[prost(string, repeated, tag = "7")]
    pub categories: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummariesResponse {
    #[prost(message, repeated, tag = "1")]
    pub available_package_summaries: Vec<PackageSummary>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
    /// All of them, whatever the filter is.
    #[prost(string, repeated, tag = "3")]
    pub categories: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "available_package_ref")]
    pub available_package_ref: Option<Reference>,
    #[prost(string, tag = "2")]
    #[serde(alias = "pkg_version")]
    pub pkg_version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Maintainer {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub email: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageDetail {
    #[prost(message, optional, tag = "1")]
    pub available_package_ref: Option<Reference>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, optional, tag = "3")]
    pub version: Option<PackageAppVersion>,
    #[prost(string, tag = "4")]
    pub repo_url: String,
    #[prost(string, tag = "5")]
    pub home_url: String,
    #[prost(string, tag = "6")]
    pub icon_url: String,
    #[prost(string, tag = "7")]
    pub display_name: String,
    #[prost(string, tag = "8")]
    pub short_description: String,
    #[prost(string, tag = "9")]
    pub long_description: String,
    #[prost(string, tag = "10")]
    pub readme: String,
    #[prost(string, tag = "11")]
    pub default_values: String,
    #[prost(string, tag = "12")]
    pub values_schema: String,
    #[prost(string, repeated, tag = "13")]
    pub source_urls: Vec<String>,
    #[prost(message, repeated, tag = "14")]
    pub maintainers: Vec<Maintainer>,
    #[prost(string, repeated, tag = "15")]
    pub categories: Vec<String>,
    #[prost(btree_map = "string, string", tag = "17")]
    pub additional_default_values: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DetailResponse {
    #[prost(message, optional, tag = "1")]
    pub available_package_detail: Option<PackageDetail>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VersionsResponse {
    #[prost(message, repeated, tag = "1")]
    pub package_app_versions: Vec<PackageAppVersion>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoriesRequest {
    #[prost(message, optional, tag = "1")]
    pub context: Option<Context>,
}

/// The states of a repository, as REST has them.
pub const STATUS_REASONS: [&str; 4] = [
    "STATUS_REASON_UNSPECIFIED",
    "STATUS_REASON_SUCCESS",
    "STATUS_REASON_FAILED",
    "STATUS_REASON_PENDING",
];

/// The states of an installed package, as REST has them.
pub const INSTALLED_REASONS: [&str; 5] = [
    "STATUS_REASON_UNSPECIFIED",
    "STATUS_REASON_INSTALLED",
    "STATUS_REASON_UNINSTALLED",
    "STATUS_REASON_FAILED",
    "STATUS_REASON_PENDING",
];

fn word<'a>(reason: i32, words: &[&'a str]) -> &'a str {
    let known = usize::try_from(reason).ok();
    let word = known.and_then(|reason| words.get(reason));
    word.copied().unwrap_or("STATUS_REASON_UNSPECIFIED")
}

fn reason_name<S: Serializer>(reason: &i32, out: S) -> Result<S::Ok, S::Error> {
    word(*reason, &STATUS_REASONS).serialize(out)
}

fn installed_name<S: Serializer>(reason: &i32, out: S) -> Result<S::Ok, S::Error> {
    word(*reason, &INSTALLED_REASONS).serialize(out)
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryStatus {
    #[prost(bool, tag = "1")]
    pub ready: bool,
    /// Index into [`STATUS_REASONS`].
    #[prost(int32, tag = "2")]
    #[serde(serialize_with = "reason_name")]
    pub reason: i32,
    #[prost(string, tag = "3")]
    pub user_reason: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositorySummary {
    #[prost(message, optional, tag = "1")]
    pub package_repo_ref: Option<Reference>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(bool, tag = "4")]
    pub namespace_scoped: bool,
    /// `helm` or `oci`.
    #[prost(string, tag = "5")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "6")]
    pub url: String,
    #[prost(message, optional, tag = "7")]
    pub status: Option<RepositoryStatus>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoriesResponse {
    #[prost(message, repeated, tag = "1")]
    pub package_repository_summaries: Vec<RepositorySummary>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "package_repo_ref")]
    pub package_repo_ref: Option<Reference>,
}

/// Never with credentials.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryDetail {
    #[prost(message, optional, tag = "1")]
    pub package_repo_ref: Option<Reference>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(bool, tag = "4")]
    pub namespace_scoped: bool,
    /// `helm` or `oci`.
    #[prost(string, tag = "5")]
    #[serde(rename = "type")]
    pub type_: String,
    #[prost(string, tag = "6")]
    pub url: String,
    #[prost(message, optional, tag = "11")]
    pub status: Option<RepositoryStatus>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryResponse {
    #[prost(message, optional, tag = "1")]
    pub detail: Option<RepositoryDetail>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginsRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginsResponse {
    #[prost(message, repeated, tag = "1")]
    pub plugins: Vec<Plugin>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledRequest {
    #[prost(message, optional, tag = "1")]
    pub context: Option<Context>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "pagination_options")]
    pub pagination_options: Option<PaginationOptions>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VersionReference {
    /// A version or a range.
    #[prost(string, tag = "1")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledStatus {
    #[prost(bool, tag = "1")]
    pub ready: bool,
    /// Index into [`INSTALLED_REASONS`].
    #[prost(int32, tag = "2")]
    #[serde(serialize_with = "installed_name")]
    pub reason: i32,
    #[prost(string, tag = "3")]
    pub user_reason: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledSummary {
    #[prost(message, optional, tag = "1")]
    pub installed_package_ref: Option<Reference>,
    #[prost(string, tag = "2")]
    pub name: String,
    /// What is asked for.
    #[prost(message, optional, tag = "3")]
    pub pkg_version_reference: Option<VersionReference>,
    #[prost(message, optional, tag = "4")]
    pub current_version: Option<PackageAppVersion>,
    #[prost(string, tag = "5")]
    pub icon_url: String,
    #[prost(string, tag = "6")]
    pub pkg_display_name: String,
    #[prost(string, tag = "7")]
    pub short_description: String,
    /// Never there, as with kubeapps' plugin for Helm.
    #[prost(message, optional, tag = "8")]
    pub latest_matching_version: Option<PackageAppVersion>,
    #[prost(message, optional, tag = "9")]
    pub latest_version: Option<PackageAppVersion>,
    #[prost(message, optional, tag = "10")]
    pub status: Option<InstalledStatus>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledResponse {
    #[prost(message, repeated, tag = "1")]
    pub installed_package_summaries: Vec<InstalledSummary>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledPackageRequest {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "installed_package_ref")]
    pub installed_package_ref: Option<Reference>,
}

/// Without reconciliation options and details of a plugin, which only others have.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledDetail {
    #[prost(message, optional, tag = "1")]
    pub installed_package_ref: Option<Reference>,
    /// What is asked for.
    #[prost(message, optional, tag = "2")]
    pub pkg_version_reference: Option<VersionReference>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(message, optional, tag = "4")]
    pub current_version: Option<PackageAppVersion>,
    /// JSON, which is YAML as well.
    #[prost(string, tag = "5")]
    pub values_applied: String,
    #[prost(message, optional, tag = "7")]
    pub status: Option<InstalledStatus>,
    #[prost(string, tag = "8")]
    pub post_installation_notes: String,
    #[prost(message, optional, tag = "9")]
    pub available_package_ref: Option<Reference>,
    /// Never there, as with kubeapps' plugin for Helm.
    #[prost(message, optional, tag = "10")]
    pub latest_matching_version: Option<PackageAppVersion>,
    #[prost(message, optional, tag = "11")]
    pub latest_version: Option<PackageAppVersion>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledDetailResponse {
    #[prost(message, optional, tag = "1")]
    pub installed_package_detail: Option<InstalledDetail>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRef {
    #[prost(string, tag = "1")]
    pub api_version: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub namespace: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRefsResponse {
    #[prost(message, optional, tag = "1")]
    pub context: Option<Context>,
    #[prost(message, repeated, tag = "2")]
    pub resource_refs: Vec<ResourceRef>,
}
