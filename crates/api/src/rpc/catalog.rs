//! Messages of catalog.CatalogService: the chart catalogue. The service is ours; Argo CD has none.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchRequest {
    /// Every word must be found.
    #[prost(string, tag = "1")]
    pub query: String,
    /// Names of repositories, as [`ChartSummary`] has them.
    #[prost(string, repeated, tag = "2")]
    #[serde(deserialize_with = "crate::null_default")]
    pub repositories: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    #[serde(deserialize_with = "crate::null_default")]
    pub categories: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    #[serde(deserialize_with = "crate::null_default")]
    pub keywords: Vec<String>,
    /// Where the last page ended.
    #[prost(string, tag = "5")]
    pub page_token: String,
    #[prost(int32, tag = "6")]
    pub page_size: i32,
    /// Of repositories.
    #[prost(string, repeated, tag = "7")]
    #[serde(deserialize_with = "crate::null_default")]
    pub namespaces: Vec<String>,
    /// Whole names of charts, as they are written.
    #[prost(string, repeated, tag = "8")]
    #[serde(deserialize_with = "crate::null_default")]
    pub names: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartSummary {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub repository: String,
    /// Where it is below its repository: its name, of a registry a path.
    #[prost(string, tag = "3")]
    pub path: String,
    #[prost(string, tag = "4")]
    pub name: String,
    /// The newest version.
    #[prost(string, tag = "5")]
    pub version: String,
    #[prost(string, tag = "6")]
    pub app_version: String,
    #[prost(string, tag = "7")]
    pub description: String,
    #[prost(string, tag = "8")]
    pub category: String,
    #[prost(string, repeated, tag = "9")]
    pub keywords: Vec<String>,
    #[prost(bool, tag = "10")]
    pub deprecated: bool,
    /// How many versions there are.
    #[prost(int32, tag = "11")]
    pub versions: i32,
    /// A PNG in base64, drawn by the catalogue; empty: there is none.
    #[prost(string, tag = "12")]
    pub icon: String,
}

/// How many charts have a value.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facet {
    #[prost(string, tag = "1")]
    pub value: String,
    #[prost(int32, tag = "2")]
    pub count: i32,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchResponse {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<ChartSummary>,
    #[prost(int32, tag = "2")]
    pub total: i32,
    #[prost(message, repeated, tag = "3")]
    pub repositories: Vec<Facet>,
    #[prost(message, repeated, tag = "4")]
    pub categories: Vec<Facet>,
    #[prost(message, repeated, tag = "5")]
    pub keywords: Vec<Facet>,
    /// Empty: this is the last page.
    #[prost(string, tag = "6")]
    pub next_page_token: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartRequest {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub repository: String,
    #[prost(string, tag = "3")]
    pub path: String,
    /// Empty: the newest.
    #[prost(string, tag = "4")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartVersion {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(string, tag = "2")]
    pub app_version: String,
    /// RFC 3339.
    #[prost(string, tag = "3")]
    pub created: String,
    #[prost(string, tag = "4")]
    pub digest: String,
    /// Where its archive is, without credentials; relative ones begin at the repository.
    #[prost(string, repeated, tag = "5")]
    pub urls: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Maintainer {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub email: String,
    #[prost(string, tag = "3")]
    pub url: String,
}

/// A file with values, without `.yaml`.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValuesFile {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub content: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartResponse {
    #[prost(message, required, tag = "1")]
    pub chart: ChartSummary,
    #[prost(string, tag = "2")]
    pub repo_url: String,
    #[prost(string, tag = "3")]
    pub home: String,
    #[prost(string, repeated, tag = "4")]
    pub sources: Vec<String>,
    /// Their names.
    #[prost(string, repeated, tag = "5")]
    pub maintainers: Vec<String>,
    /// The newest first.
    #[prost(message, repeated, tag = "6")]
    pub versions: Vec<ChartVersion>,
    /// The version whose files these are.
    #[prost(message, required, tag = "7")]
    pub shown: ChartVersion,
    /// Markdown, as the chart has it.
    #[prost(string, tag = "8")]
    pub readme: String,
    #[prost(string, tag = "9")]
    pub values: String,
    /// JSON schema.
    #[prost(string, tag = "10")]
    pub schema: String,
    #[prost(message, repeated, tag = "11")]
    pub additional_values: Vec<ValuesFile>,
    /// Why there are no files; empty: there are.
    #[prost(string, tag = "12")]
    pub missing: String,
    /// What else is wrong with the chart: first what is wrong with the version that is shown.
    #[prost(message, repeated, tag = "13")]
    pub problems: Vec<ChartProblem>,
    /// The maintainers with what else they say of themselves.
    #[prost(message, repeated, tag = "14")]
    pub people: Vec<Maintainer>,
}

/// What is wrong with a chart.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartProblem {
    /// Its path below the repository.
    #[prost(string, tag = "1")]
    pub chart: String,
    /// Empty: the chart as a whole.
    #[prost(string, tag = "2")]
    pub version: String,
    /// `skipped`, `ambiguous`, `files` or `icon`.
    #[prost(string, tag = "3")]
    pub kind: String,
    #[prost(string, tag = "4")]
    pub reason: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message, Serialize, Deserialize)]
pub struct ListRequest {}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartRepository {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub url: String,
    #[prost(int64, tag = "4")]
    pub charts: i64,
    #[prost(int64, tag = "5")]
    pub versions: i64,
    /// Entries of the index that are not in the catalogue.
    #[prost(int64, tag = "6")]
    pub skipped: i64,
    /// Seconds since 1970; 0: never.
    #[prost(int64, tag = "7")]
    pub synced_at: i64,
    /// Why the last attempt failed; empty: it did not.
    #[prost(string, tag = "8")]
    pub error: String,
    /// The first charts with which something is wrong.
    #[prost(message, repeated, tag = "9")]
    pub problems: Vec<ChartProblem>,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartRepositoryList {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<ChartRepository>,
}

/// A chart repository that is added, as an AppRepository in the namespace of the control plane.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[prost(skip_debug)]
pub struct AddRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub url: String,
    /// `helm` or `oci`; empty: `oci` for a URL that begins so, else `helm`.
    #[prost(string, tag = "3")]
    #[serde(rename = "type")]
    pub type_: String,
    /// Paths below a registry's URL; empty: those that it lists.
    #[prost(string, repeated, tag = "4")]
    pub oci_repositories: Vec<String>,
    /// A duration or a crontab; empty: the usual one.
    #[prost(string, tag = "5")]
    pub interval: String,
    #[prost(string, tag = "6")]
    pub username: String,
    #[prost(string, tag = "7")]
    pub password: String,
}

/// Without the password.
impl std::fmt::Debug for AddRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AddRequest({:?})", self.name)
    }
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncRequest {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub name: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message, Serialize, Deserialize)]
pub struct EmptyResponse {}

/// What would be installed. Nothing is written: the Application of the response is created with
/// application.ApplicationService/Create.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallRequest {
    #[prost(message, required, tag = "1")]
    #[serde(deserialize_with = "crate::null_default")]
    pub chart: ChartRequest,
    /// Of the Application.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Empty: `default`.
    #[prost(string, tag = "3")]
    pub project: String,
    /// Empty: this cluster.
    #[prost(string, tag = "4")]
    pub dest_server: String,
    /// Empty: the name.
    #[prost(string, tag = "5")]
    pub dest_namespace: String,
    /// YAML.
    #[prost(string, tag = "6")]
    pub values: String,
    #[prost(bool, tag = "7")]
    pub auto_sync: bool,
    /// Whether to compare with what is in the cluster.
    #[prost(bool, tag = "8")]
    pub compare: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallResponse {
    #[prost(message, required, tag = "1")]
    pub application: crate::application::Application,
    /// YAML; values of Secrets are hidden.
    #[prost(string, tag = "2")]
    pub manifests: String,
    /// What is worth to know.
    #[prost(string, repeated, tag = "3")]
    pub notes: Vec<String>,
    /// Unified: what would change in the cluster; values of Secrets are hidden.
    #[prost(string, tag = "4")]
    pub difference: String,
    /// Whether it was compared with the cluster.
    #[prost(bool, tag = "5")]
    pub compared: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub application: String,
    /// `NAMESPACE/REPOSITORY/NAME`.
    #[prost(string, tag = "3")]
    pub chart: String,
    #[prost(string, tag = "4")]
    pub version: String,
    /// Empty if the origin is gone.
    #[prost(string, tag = "5")]
    pub newest: String,
    /// It was installed from a repository that is no longer in the catalogue, or not at that
    /// address.
    #[prost(bool, tag = "6")]
    pub origin_gone: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateList {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<Update>,
}

/// What an upgrade would do. Nothing is written: the Application of the response is written with
/// application.ApplicationService/Update.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub app_namespace: String,
    /// The chart among several sources, counted from 1; 0: the only one.
    #[prost(int32, tag = "3")]
    pub source_position: i32,
    /// Empty: the newest.
    #[prost(string, tag = "4")]
    pub version: String,
    /// `ours` or `theirs`, for conflicts; empty: `ours`.
    #[prost(string, tag = "5")]
    pub prefer: String,
    /// YAML: values that count in any case.
    #[prost(string, tag = "6")]
    pub values: String,
}

/// A value that the user and the chart changed. Values are JSON; empty: there is none.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Conflict {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(string, tag = "2")]
    pub old: String,
    #[prost(string, tag = "3")]
    pub ours: String,
    #[prost(string, tag = "4")]
    pub theirs: String,
    /// Decided by the values of the request.
    #[prost(bool, tag = "5")]
    pub decided: bool,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeResponse {
    #[prost(message, required, tag = "1")]
    pub application: crate::application::Application,
    #[prost(string, tag = "2")]
    pub from: String,
    #[prost(string, tag = "3")]
    pub to: String,
    #[prost(message, repeated, tag = "4")]
    pub conflicts: Vec<Conflict>,
    #[prost(string, repeated, tag = "5")]
    pub taken_from_new: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    pub gone: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub removed_in_chart: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    pub unknown_to_chart: Vec<String>,
    #[prost(string, repeated, tag = "9")]
    pub notes: Vec<String>,
    /// Unified, of the manifests; values of Secrets are hidden.
    #[prost(string, tag = "10")]
    pub difference: String,
    /// Whether manifests could be compared.
    #[prost(bool, tag = "11")]
    pub compared: bool,
    /// YAML: the values that the Application would have.
    #[prost(string, tag = "12")]
    pub values: String,
    /// The versions that it could have, the newest first.
    #[prost(string, repeated, tag = "13")]
    pub versions: Vec<String>,
    /// YAML, of the new version; values of Secrets are hidden. Empty if it cannot be rendered here.
    #[prost(string, tag = "14")]
    pub manifests: String,
}

/// The way back to a version of its chart that an Application had. Nothing is written: the
/// Application of the response is written with application.ApplicationService/Update.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub app_namespace: String,
    /// The chart among several sources, counted from 1; 0: the only one.
    #[prost(int32, tag = "3")]
    pub source_position: i32,
    /// Empty: the one before.
    #[prost(string, tag = "4")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackResponse {
    #[prost(message, required, tag = "1")]
    pub application: crate::application::Application,
    /// The version that is installed.
    #[prost(string, tag = "2")]
    pub from: String,
    #[prost(string, tag = "3")]
    pub to: String,
    /// Why manifests are not compared, and what else is worth to know.
    #[prost(string, repeated, tag = "4")]
    pub notes: Vec<String>,
    /// Unified, of the manifests; values of Secrets are hidden.
    #[prost(string, tag = "5")]
    pub difference: String,
    /// Whether manifests could be compared.
    #[prost(bool, tag = "6")]
    pub compared: bool,
}
