//! [`GitSources`]: revisions and manifests through `repo::Repos`.

use crate::{
    ApiError, Code,
    ports::{RenderRequest, RenderedManifests, Sources},
};
use async_trait::async_trait;
use serde_json::Value;
use tiphys_api::{
    repository::{Repository, RevisionMetadata},
    rpc::repository::{DirectoryAppSpec, HelmAppSpec, KustomizeAppSpec, RepoAppDetailsResponse},
    source::{ApplicationSource, HelmParameter},
};
use tiphys_cluster::Records;
use tiphys_repo::{
    ClusterFacts, ManifestRequest, RefSource, RenderError, RepoAccess, RepoError, Repos, Since,
    SourceKind, Trust,
};

/// Repositories, reached with the known hosts and certificates of the settings.
pub struct GitSources {
    repos: Repos,
    records: Records,
}

impl GitSources {
    pub fn new(repos: Repos, records: Records) -> Self {
        Self { repos, records }
    }

    fn access(&self, repository: &Repository, project: &str) -> RepoAccess {
        let settings = self.records.settings();
        let trust = Trust {
            known_hosts: &settings.known_hosts,
            certificates: &settings.tls_certificates,
        };
        RepoAccess::new(repository, project, trust)
    }

    fn request(&self, request: RenderRequest) -> ManifestRequest {
        let settings = self.records.settings();
        let refs = request
            .refs
            .iter()
            .map(|(name, (repository, sha))| {
                let access = self.access(repository, &request.project);
                let sha = sha.clone();
                (name.clone(), RefSource { access, sha })
            })
            .collect();
        ManifestRequest {
            access: self.access(&request.repository, &request.project),
            sha: request.revision,
            app_name: request.app_name,
            namespace: request.namespace,
            project: request.project,
            cluster_facts: ClusterFacts {
                kube_version: request.facts.kube_version,
                api_versions: request.facts.api_versions,
                value_file_schemes: settings.value_file_schemes(),
                kustomize_build_options: settings.kustomize_build_options(),
                switched_off: SourceKind::switched_off(|kind| settings.is_source_type_on(kind)),
            },
            refs,
            several: request.several,
            no_cache: request.no_cache,
            source: request.source,
        }
    }
}

impl From<RepoError> for ApiError {
    fn from(e: RepoError) -> Self {
        let code = match &e {
            RepoError::Unsupported(_) => Code::Unimplemented,
            RepoError::AuthFailed { .. } => Code::PermissionDenied,
            RepoError::BadUrl { .. } => Code::InvalidArgument,
            RepoError::NotFound { .. }
            | RepoError::RevisionNotFound { .. }
            | RepoError::CommitMissing { .. } => Code::NotFound,
            RepoError::Render(RenderError::NoValuesFile(_)) => Code::NotFound,
            RepoError::Unreachable { .. } | RepoError::Timeout { .. } | RepoError::Busy { .. } => {
                Code::Unavailable
            }
            _ => Code::Unknown,
        };
        Self::new(code, e.to_string())
    }
}

#[async_trait]
impl Sources for GitSources {
    async fn resolve(
        &self,
        repository: &Repository,
        _: &ApplicationSource,
        revision: &str,
    ) -> Result<(String, String), ApiError> {
        let resolved = self
            .repos
            .resolve(
                &self.access(repository, &repository.project),
                revision,
                Since::now(),
            )
            .await?;
        Ok((resolved.sha, resolved.display))
    }

    async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, ApiError> {
        let rendered = self.repos.manifests(self.request(request)).await?;
        Ok(RenderedManifests {
            revision: rendered.revision.clone(),
            source_type: rendered.source_type.clone(),
            objects: rendered
                .objects
                .iter()
                .map(|o| Value::Object(o.object().0.clone()))
                .collect(),
            errors: rendered.errors.iter().map(ToString::to_string).collect(),
        })
    }

    async fn details(&self, request: RenderRequest) -> Result<RepoAppDetailsResponse, ApiError> {
        let file_parameters = request
            .source
            .helm
            .clone()
            .unwrap_or_default()
            .file_parameters;
        let details = self.repos.details(self.request(request)).await?;
        let parameter = |(name, value): (String, String)| HelmParameter {
            name,
            value,
            force_string: false,
        };
        let helm = details.helm.map(|h| HelmAppSpec {
            name: String::new(),
            value_files: h.value_files,
            parameters: h.parameters.into_iter().map(parameter).collect(),
            values: h.values,
            file_parameters,
        });
        let kustomize = (details.kind == SourceKind::Kustomize).then_some(KustomizeAppSpec {
            images: details.images,
        });
        let is_directory = helm.is_none() && kustomize.is_none();
        let directory = is_directory.then(DirectoryAppSpec::default);
        Ok(RepoAppDetailsResponse {
            type_: details.kind.as_str().to_owned(),
            helm,
            kustomize,
            directory,
            ..Default::default()
        })
    }

    async fn test(&self, repository: &Repository) -> Result<(), ApiError> {
        Ok(self
            .repos
            .test(&self.access(repository, &repository.project))
            .await?)
    }

    async fn refs(&self, repository: &Repository) -> Result<(Vec<String>, Vec<String>), ApiError> {
        let refs = self
            .repos
            .refs(
                &self.access(repository, &repository.project),
                Since::Recently,
            )
            .await?;
        Ok((refs.branches, refs.tags))
    }

    async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<RevisionMetadata, ApiError> {
        Ok(self
            .repos
            .metadata(&self.access(repository, &repository.project), revision)
            .await?)
    }
}
