//! What repo-servers tell each other through a cache, Redis in practice: manifests and the metadata
//! of commits, under the names and in the form that Argo CD's repo-server uses, so that replicas of
//! both kinds use each other's.
//!
//! Main types: [`SharedCache`], which a role provides, and [`Shared`]. What is demanded of a
//! signature is never taken from there: whoever can write to the cache would vouch for commits.

mod entry;
mod name;

use futures::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tiphys_api::{
    repository::RevisionMetadata,
    rpc::repo_server::{ManifestRequest, ManifestResponse},
};

pub(crate) use name::{ResolvedRefs, manifests as name_of_manifests, normalized};

/// JSON by names, shared by several processes. Whatever fails there is told by the implementation,
/// and is here as if there were nothing.
pub trait SharedCache: Send + Sync {
    fn get(&self, name: String) -> BoxFuture<'_, Option<Vec<u8>>>;
    fn put(&self, name: String, json: Vec<u8>, keep: Duration) -> BoxFuture<'_, ()>;
}

/// The cache, and how long values are kept there.
#[derive(Clone)]
pub struct Shared {
    pub cache: Arc<dyn SharedCache>,
    pub keep: Duration,
}

impl Shared {
    /// The manifests under a name, for this revision: the same manifests may be those of several.
    pub(crate) async fn manifests(&self, name: &str, revision: &str) -> Option<ManifestResponse> {
        let json = self.cache.get(name.to_owned()).await?;
        let found = tiphys_rpc::heavy::run(move || entry::read(&json)).await?;
        Some(ManifestResponse {
            revision: revision.to_owned(),
            ..found
        })
    }

    pub(crate) async fn put_manifests(&self, name: String, response: ManifestResponse) {
        let written = tiphys_rpc::heavy::run(move || entry::written(&response));
        if let Some(json) = written.await {
            self.cache.put(name, json, self.keep).await;
        }
    }

    /// The metadata of a commit, unless they tell of signatures.
    pub(crate) async fn metadata(&self, repo: &str, sha: &str) -> Option<RevisionMetadata> {
        let json = self.cache.get(name::metadata(repo, sha)).await?;
        let found: RevisionMetadata = serde_json::from_slice(&json).ok()?;
        let tells = found.source_integrity_result.is_some() || !found.signature_info.is_empty();
        (!tells && found.date.is_some()).then_some(found)
    }

    pub(crate) async fn put_metadata(&self, repo: &str, sha: &str, metadata: &RevisionMetadata) {
        if let Some(json) = entry::json(metadata) {
            let name = name::metadata(repo, sha);
            self.cache.put(name, json.into_bytes(), self.keep).await;
        }
    }
}

/// The first text that is not empty.
pub(crate) fn first(texts: [&str; 2]) -> &str {
    texts
        .into_iter()
        .find(|t| !t.is_empty())
        .unwrap_or_default()
}

/// The label or annotation that manifests get, as it is part of their name.
fn tracking(request: &ManifestRequest) -> String {
    let label = &request.app_label_key;
    match first([&request.tracking_method, "label"]) {
        "label" => label.clone(),
        method => format!("{method}:{label}"),
    }
}
