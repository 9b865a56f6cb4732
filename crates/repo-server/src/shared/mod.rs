//! What repo-servers tell each other through a cache, Redis in practice: manifests and the metadata
//! of commits, under the names and in the form that Argo CD's repo-server uses, so that replicas of
//! both kinds use each other's.
//!
//! Main types: [`SharedCache`], which a role provides, and [`Shared`]. What is demanded of a
//! signature is never taken from there: whoever can write to the cache would vouch for commits.

mod entry;
mod name;

use crate::{manifests::first, server::Server};
use futures::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tiphys_api::{
    repository::RevisionMetadata,
    rpc::repo_server::{ManifestRequest, ManifestResponse},
};

pub(crate) use name::{ResolvedRefs, normalized};

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
    async fn manifests(&self, name: &str, revision: &str) -> Option<ManifestResponse> {
        let json = self.cache.get(name.to_owned()).await?;
        let found = tiphys_rpc::heavy::run(move || entry::read(&json)).await?;
        Some(ManifestResponse {
            revision: revision.to_owned(),
            ..found
        })
    }

    async fn put_manifests(&self, name: String, response: ManifestResponse) {
        let written = tiphys_rpc::heavy::run(move || entry::written(&response));
        if let Some(json) = written.await {
            self.cache.put(name, json, self.keep).await;
        }
    }
}

/// Whether a request demands something of signatures.
pub(crate) fn is_demanding(request: &ManifestRequest) -> bool {
    request.source_integrity.is_some() || request.verify_signature
}

impl Server {
    /// The shared manifests for a request that has been resolved, and the name to keep them under;
    /// without a name they are not shared.
    pub(crate) async fn shared_manifests(
        &self,
        request: &ManifestRequest,
        revision: &str,
        refs: &ResolvedRefs,
    ) -> (Option<String>, Option<ManifestResponse>) {
        let Some(shared) = self.shared.as_ref().filter(|_| !is_demanding(request)) else {
            return (None, None);
        };
        let Some(name) = name::manifests(request, revision, refs) else {
            return (None, None);
        };
        if request.no_cache {
            return (Some(name), None);
        }
        let found = shared.manifests(&name, revision).await;
        (Some(name), found)
    }

    pub(crate) async fn share_manifests(&self, name: Option<String>, response: &ManifestResponse) {
        if let (Some(shared), Some(name)) = (&self.shared, name) {
            shared.put_manifests(name, response.clone()).await;
        }
    }

    /// The shared metadata of a commit, unless it tells of signatures.
    pub(crate) async fn shared_metadata(&self, repo: &str, sha: &str) -> Option<RevisionMetadata> {
        let shared = self.shared.as_ref()?;
        let json = shared.cache.get(name::metadata(repo, sha)).await?;
        let found: RevisionMetadata = serde_json::from_slice(&json).ok()?;
        let tells = found.source_integrity_result.is_some() || !found.signature_info.is_empty();
        (!tells && found.date.is_some()).then_some(found)
    }

    pub(crate) async fn share_metadata(&self, repo: &str, sha: &str, metadata: &RevisionMetadata) {
        let Some(shared) = &self.shared else {
            return;
        };
        if let Some(json) = entry::json(metadata) {
            let name = name::metadata(repo, sha);
            shared.cache.put(name, json.into_bytes(), shared.keep).await;
        }
    }
}

/// The label or annotation that manifests get, as it is part of their name.
fn tracking(request: &ManifestRequest) -> String {
    let label = &request.app_label_key;
    match first([&request.tracking_method, "label"]) {
        "label" => label.clone(),
        method => format!("{method}:{label}"),
    }
}
