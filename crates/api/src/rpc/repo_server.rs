//! Messages of repository.RepoServerService, which is served only over gRPC: the requests of a
//! controller to a repo-server, and its responses.

use crate::{
    operation::RefTarget,
    project::{SourceIntegrity, SourceIntegrityCheckResult},
    repository::{HelmOptions, KustomizeOptions, RepoCreds, Repository},
    source::ApplicationSource,
};
use std::collections::BTreeMap;

/// Requests the manifests of a source.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ManifestRequest {
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    #[prost(string, tag = "2")]
    pub revision: String,
    #[prost(bool, tag = "3")]
    pub no_cache: bool,
    #[prost(string, tag = "4")]
    pub app_label_key: String,
    #[prost(string, tag = "5")]
    pub app_name: String,
    #[prost(string, tag = "8")]
    pub namespace: String,
    #[prost(message, optional, tag = "10")]
    pub application_source: Option<ApplicationSource>,
    #[prost(message, repeated, tag = "11")]
    pub repos: Vec<Repository>,
    #[prost(message, optional, tag = "13")]
    pub kustomize_options: Option<KustomizeOptions>,
    #[prost(string, tag = "14")]
    pub kube_version: String,
    #[prost(string, repeated, tag = "15")]
    pub api_versions: Vec<String>,
    #[prost(bool, tag = "16")]
    pub verify_signature: bool,
    #[prost(message, repeated, tag = "17")]
    pub helm_repo_creds: Vec<RepoCreds>,
    #[prost(bool, tag = "18")]
    pub no_revision_cache: bool,
    #[prost(string, tag = "19")]
    pub tracking_method: String,
    #[prost(btree_map = "string, bool", tag = "20")]
    pub enabled_source_types: BTreeMap<String, bool>,
    #[prost(message, optional, tag = "21")]
    pub helm_options: Option<HelmOptions>,
    #[prost(bool, tag = "22")]
    pub has_multiple_sources: bool,
    #[prost(btree_map = "string, message", tag = "23")]
    pub ref_sources: BTreeMap<String, RefTarget>,
    #[prost(string, repeated, tag = "24")]
    pub project_source_repos: Vec<String>,
    #[prost(string, tag = "25")]
    pub project_name: String,
    #[prost(string, tag = "26")]
    pub annotation_manifest_generate_paths: String,
    #[prost(string, tag = "27")]
    pub installation_id: String,
    #[prost(message, optional, tag = "28")]
    pub source_integrity: Option<SourceIntegrity>,
}

/// JSON objects with the Application's tracking metadata, and the commit or chart version that they
/// come from.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ManifestResponse {
    #[prost(string, repeated, tag = "1")]
    pub manifests: Vec<String>,
    #[prost(string, tag = "2")]
    pub namespace: String,
    #[prost(string, tag = "3")]
    pub server: String,
    #[prost(string, tag = "4")]
    pub revision: String,
    #[prost(string, tag = "6")]
    pub source_type: String,
    #[prost(string, tag = "7")]
    pub verify_result: String,
    #[prost(string, repeated, tag = "8")]
    pub commands: Vec<String>,
    #[prost(message, optional, tag = "9")]
    pub source_integrity_result: Option<SourceIntegrityCheckResult>,
}

/// Requests the commit or chart version that a revision resolves to.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResolveRevisionRequest {
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    #[prost(message, optional, tag = "2")]
    pub app: Option<crate::Application>,
    #[prost(string, tag = "3")]
    pub ambiguous_revision: String,
    #[prost(int64, tag = "4")]
    pub source_index: i64,
    #[prost(bool, tag = "5")]
    pub no_revision_cache: bool,
}

/// The resolved revision, and a text for display.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResolveRevisionResponse {
    #[prost(string, tag = "1")]
    pub revision: String,
    #[prost(string, tag = "2")]
    pub ambiguous_revision: String,
}

/// Asks whether any file below some paths differs between two revisions; if not, cached manifests
/// of one are valid for the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpdateRevisionForPathsRequest {
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    #[prost(string, tag = "2")]
    pub app_label_key: String,
    #[prost(string, tag = "3")]
    pub app_name: String,
    #[prost(string, tag = "4")]
    pub namespace: String,
    #[prost(message, optional, tag = "5")]
    pub application_source: Option<ApplicationSource>,
    #[prost(string, tag = "6")]
    pub tracking_method: String,
    #[prost(btree_map = "string, message", tag = "7")]
    pub ref_sources: BTreeMap<String, RefTarget>,
    #[prost(string, tag = "8")]
    pub kube_version: String,
    #[prost(string, repeated, tag = "9")]
    pub api_versions: Vec<String>,
    #[prost(bool, tag = "10")]
    pub has_multiple_sources: bool,
    #[prost(string, tag = "11")]
    pub synced_revision: String,
    #[prost(string, tag = "12")]
    pub revision: String,
    #[prost(string, repeated, tag = "13")]
    pub paths: Vec<String>,
    #[prost(bool, tag = "14")]
    pub no_revision_cache: bool,
    #[prost(string, tag = "15")]
    pub installation_id: String,
    #[prost(btree_map = "string, message", tag = "16")]
    pub synced_ref_sources: BTreeMap<String, RefTarget>,
    #[prost(message, optional, tag = "17")]
    pub source_integrity: Option<SourceIntegrity>,
}

/// The commit that `revision` resolves to.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpdateRevisionForPathsResponse {
    #[prost(bool, tag = "1")]
    pub changes: bool,
    #[prost(string, tag = "2")]
    pub revision: String,
}
