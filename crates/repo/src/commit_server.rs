//! Pushes through a commit server: a client of Argo CD's CommitService, for upstream Argo CD's
//! server or our own.
//!
//! Main type: [`CommitServer`].

use crate::{Lacking, RepoError, RepoServer, RepoServerOptions};
use std::time::Duration;
use tiphys_api::rpc::commit::{CommitHydratedManifestsRequest, CommitHydratedManifestsResponse};

/// A cheap handle; clones share one connection, which is reopened when it breaks.
#[derive(Clone)]
pub struct CommitServer(RepoServer);

impl CommitServer {
    /// Connects on the first call, to `host:port`. As Argo CD's, the server has no TLS, so it must be
    /// reached within the cluster alone. Must be called inside a tokio runtime.
    pub fn new(address: &str, timeout: Duration) -> Result<Self, RepoError> {
        let options = RepoServerOptions {
            address: address.to_owned(),
            timeout,
            plaintext: true,
            trusted: Vec::new(),
            identity: None,
        };
        RepoServer::new(options).map(Self)
    }

    /// The commit of the branch that has the manifests. It is safe to ask twice.
    pub async fn commit(
        &self,
        request: CommitHydratedManifestsRequest,
    ) -> Result<String, RepoError> {
        let answer: CommitHydratedManifestsResponse = self
            .0
            .call("/CommitService/CommitHydratedManifests", &request)
            .await?;
        if answer.hydrated_sha.is_empty() {
            return Err(RepoError::RepoServer {
                message: "the commit server named no commit".to_owned(),
                retryable: false,
                lacks: Lacking::Nothing,
            });
        }
        Ok(answer.hydrated_sha)
    }
}
