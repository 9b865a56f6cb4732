//! Messages of repository.RepoServerService, which is served only over gRPC: what controllers and
//! API servers ask a repo-server. Most of them are messages of the package `repository`, too.

pub use super::repository::{
    AppList, HelmChart, HelmChartsRequest, HelmChartsResponse, ListAppsRequest, ListRefsRequest,
    ManifestFileChunk, ManifestFileMetadata, ManifestRequest, ManifestRequestWithFiles,
    ManifestResponse, PluginInfo, PluginList, Refs, RepoAppDetailsResponse,
    RepoServerAppDetailsQuery, RepoServerRevisionChartDetailsRequest,
    RepoServerRevisionMetadataRequest, ResolveRevisionRequest, ResolveRevisionResponse,
    TestRepositoryRequest, TestRepositoryResponse, UpdateRevisionForPathsRequest,
    UpdateRevisionForPathsResponse,
};

use crate::{project::SourceIntegrity, repository::Repository};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requests the contents of the files that match a pattern.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitFilesRequest {
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    #[prost(bool, tag = "2")]
    pub submodule_enabled: bool,
    #[prost(string, tag = "3")]
    pub revision: String,
    /// Empty: every file.
    #[prost(string, tag = "4")]
    pub path: String,
    /// Whether `**` is for folders, and `*` ends at a slash; else as git matches paths.
    #[prost(bool, tag = "5")]
    pub new_git_file_globbing_enabled: bool,
    #[prost(bool, tag = "6")]
    pub no_revision_cache: bool,
    #[prost(bool, tag = "7")]
    pub verify_commit: bool,
    #[prost(message, optional, tag = "8")]
    pub source_integrity: Option<SourceIntegrity>,
}

/// Contents by path.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitFilesResponse {
    #[prost(btree_map = "string, bytes", tag = "1")]
    pub map: BTreeMap<String, Vec<u8>>,
}

/// Requests the folders of a repository.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitDirectoriesRequest {
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    #[prost(bool, tag = "2")]
    pub submodule_enabled: bool,
    #[prost(string, tag = "3")]
    pub revision: String,
    #[prost(bool, tag = "4")]
    pub no_revision_cache: bool,
    #[prost(bool, tag = "5")]
    pub verify_commit: bool,
    #[prost(message, optional, tag = "6")]
    pub source_integrity: Option<SourceIntegrity>,
}

/// Paths of folders, without that of the root.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitDirectoriesResponse {
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}
