//! [`GitSources`]: revisions and manifests through `repo::Repos`.

use crate::{
    ApiError, Code,
    ports::{RenderRequest, RenderedManifests, Sources},
};
use async_trait::async_trait;
use serde_json::Value;
use tiphys_api::repository::{Repository, RevisionMetadata};
use tiphys_cluster::Records;
use tiphys_repo::{ManifestRequest, RepoAccess, RepoError, Repos};

/// Repositories, reached with the known hosts and certificates of the settings.
pub struct GitSources {
    repos: Repos,
    records: Records,
}

impl GitSources {
    pub fn new(repos: Repos, records: Records) -> Self {
        Self { repos, records }
    }

    fn access(&self, repository: &Repository) -> RepoAccess {
        let settings = self.records.settings();
        let mut access = RepoAccess::from(repository);
        access.known_hosts.clone_from(&settings.known_hosts);
        let host = repository.repo.split_once("://").and_then(|(_, rest)| rest.split(['/', ':']).next()).unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        access.ca_data = settings.tls_certificates.get(host).cloned().unwrap_or_default();
        access
    }
}

impl From<RepoError> for ApiError {
    fn from(e: RepoError) -> Self {
        let code = match &e {
            RepoError::Unsupported(_) => Code::Unimplemented,
            RepoError::AuthFailed { .. } => Code::PermissionDenied,
            RepoError::BadUrl { .. } => Code::InvalidArgument,
            RepoError::NotFound { .. } | RepoError::RevisionNotFound { .. } | RepoError::CommitMissing { .. } => Code::NotFound,
            RepoError::Unreachable { .. } | RepoError::Timeout { .. } => Code::Unavailable,
            _ => Code::Unknown,
        };
        Self::new(code, e.to_string())
    }
}

#[async_trait]
impl Sources for GitSources {
    async fn resolve(&self, repository: &Repository, revision: &str) -> Result<(String, String), ApiError> {
        let resolved = self.repos.resolve(&self.access(repository), revision, true).await?;
        Ok((resolved.sha, resolved.display))
    }

    async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, ApiError> {
        let rendered = self
            .repos
            .manifests(ManifestRequest {
                access: self.access(&request.repository),
                source: request.source,
                sha: request.revision,
                app_name: request.app_name,
                namespace: request.namespace,
                project: request.project,
                no_cache: request.no_cache,
            })
            .await?;
        Ok(RenderedManifests {
            revision: rendered.revision.clone(),
            source_type: rendered.source_type.clone(),
            objects: rendered.objects.iter().map(|o| Value::Object(o.0.clone())).collect(),
            errors: rendered.errors.iter().map(ToString::to_string).collect(),
        })
    }

    async fn test(&self, repository: &Repository) -> Result<(), ApiError> {
        Ok(self.repos.test(&self.access(repository)).await?)
    }

    async fn refs(&self, repository: &Repository) -> Result<(Vec<String>, Vec<String>), ApiError> {
        let refs = self.repos.refs(&self.access(repository), false).await?;
        Ok((refs.branches, refs.tags))
    }

    async fn metadata(&self, repository: &Repository, revision: &str) -> Result<RevisionMetadata, ApiError> {
        Ok(self.repos.metadata(&self.access(repository), revision).await?)
    }
}
