//! Pushes hydrated manifests, in this process or through a commit server.
//!
//! Main function: [`Sources::commit_hydrated`].

use crate::{Sources, usable};
use futures::future::BoxFuture;
use tiphys_api::{repository::Repository, rpc::commit::CommitHydratedManifestsRequest};
use tiphys_repo::{CommitServer, RepoError};

impl Sources {
    /// Lets a commit server push.
    #[must_use]
    pub fn pushing_through(self, commit_server: Option<CommitServer>) -> Self {
        Self {
            commit_server,
            ..self
        }
    }

    /// A repository with the credentials for pushing to it; empty: those of no project alone.
    pub fn write_repository(&self, url: &str, project: &str) -> Repository {
        (self.settings)().write_repository(url, project)
    }

    /// Writes manifests into a branch and returns the commit that has them. `project`: whose
    /// connections are used; `now` in seconds since 1970.
    ///
    /// # Errors
    /// The branch is as before, or has the commit but not yet its note.
    pub async fn commit_hydrated(
        &self,
        request: CommitHydratedManifestsRequest,
        project: &str,
        now: i64,
    ) -> Result<String, RepoError> {
        if let Some(repository) = &request.repo {
            usable(repository)?;
        }
        if let Some(server) = &self.commit_server {
            let commit: BoxFuture<'_, _> = Box::pin(server.commit(request));
            return commit.await;
        }
        let repository = request.repo.clone().unwrap_or_default();
        let access = self.access(&repository, project)?;
        let commit: BoxFuture<'_, _> = Box::pin(self.repos.commit_hydrated(&access, request, now));
        commit.await
    }
}
