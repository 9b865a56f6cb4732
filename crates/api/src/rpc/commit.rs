//! Messages of CommitService, which is served only over gRPC: what a controller asks a commit
//! server to write into a branch.

use crate::repository::{Repository, RevisionMetadata};
use serde::{Deserialize, Serialize};

/// Requests a commit with hydrated manifests.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommitHydratedManifestsRequest {
    /// With the credentials for pushing.
    #[prost(message, optional, tag = "1")]
    pub repo: Option<Repository>,
    /// The branch that is synced; created if it is missing.
    #[prost(string, tag = "2")]
    pub sync_branch: String,
    /// The branch that is written to; if it is missing, it begins where the other one is.
    #[prost(string, tag = "3")]
    pub target_branch: String,
    /// The commit that was rendered.
    #[prost(string, tag = "4")]
    pub dry_sha: String,
    #[prost(string, tag = "5")]
    pub commit_message: String,
    #[prost(message, repeated, tag = "6")]
    pub paths: Vec<PathDetails>,
    /// Of the commit that was rendered.
    #[prost(message, optional, tag = "7")]
    pub dry_commit_metadata: Option<RevisionMetadata>,
    #[prost(string, tag = "8")]
    pub author_name: String,
    #[prost(string, tag = "9")]
    pub author_email: String,
    /// The template of each README.md.
    #[prost(string, tag = "10")]
    pub readme_message: String,
}

/// What one folder of the branch gets.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathDetails {
    #[prost(string, tag = "1")]
    pub path: String,
    /// In the order of the file.
    #[prost(message, repeated, tag = "2")]
    pub manifests: Vec<HydratedManifestDetails>,
    /// The commands that render the same.
    #[prost(string, repeated, tag = "3")]
    pub commands: Vec<String>,
}

/// One object.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HydratedManifestDetails {
    /// The object as JSON.
    #[prost(string, tag = "1")]
    #[serde(rename = "manifestJSON")]
    pub manifest_json: String,
}

/// The commit of the branch that has the manifests.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommitHydratedManifestsResponse {
    #[prost(string, tag = "1")]
    pub hydrated_sha: String,
}
