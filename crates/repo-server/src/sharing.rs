//! What a server takes from the shared cache for a request, and what it leaves there.

use crate::{
    server::Server,
    shared::{ResolvedRefs, name_of_manifests},
};
use tiphys_api::{
    repository::RevisionMetadata,
    rpc::repo_server::{ManifestRequest, ManifestResponse},
};

/// Whether a request demands something of signatures.
fn is_demanding(request: &ManifestRequest) -> bool {
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
        let Some(name) = name_of_manifests(request, revision, refs) else {
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

    /// The shared metadata of a commit, unless they tell of signatures.
    pub(crate) async fn shared_metadata(&self, repo: &str, sha: &str) -> Option<RevisionMetadata> {
        self.shared.as_ref()?.metadata(repo, sha).await
    }

    pub(crate) async fn share_metadata(&self, repo: &str, sha: &str, metadata: &RevisionMetadata) {
        if let Some(shared) = &self.shared {
            shared.put_metadata(repo, sha, metadata).await;
        }
    }
}
