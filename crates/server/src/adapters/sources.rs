//! [`RepoSources`]: revisions and manifests through `tiphys_sources`.

use crate::{
    ApiError, Code,
    ports::{NotRendered, RenderRequest, RenderedManifests, Sources},
};
use async_trait::async_trait;
use serde_json::Value;
use std::{collections::BTreeMap, fs::File, sync::Arc};
use tiphys_api::{
    AppProject,
    repository::{ChartDetails, OCIMetadata, Repository, RevisionMetadata},
    rpc::repository::{
        HelmAppSpec, HelmChart, KustomizeAppSpec, PluginAppSpec, RepoAppDetailsResponse,
    },
    source::{ApplicationSource, HelmParameter},
};
use tiphys_apimachinery::Kept;
use tiphys_repo::{Manifests, RenderError, RepoError, Since, SourceKind};
use tiphys_sources::TreeRequest;

/// Git, or a repo-server.
pub struct RepoSources(tiphys_sources::Sources);

impl RepoSources {
    pub fn new(sources: tiphys_sources::Sources) -> Self {
        Self(sources)
    }
}

/// Converts a repository error to an API error.
pub(super) fn of_repo(e: RepoError) -> ApiError {
    let code = match &e {
        RepoError::Unsupported(_) => Code::Unimplemented,
        RepoError::AuthFailed { .. } | RepoError::NotPermitted { .. } => Code::PermissionDenied,
        RepoError::BadUrl { .. } => Code::InvalidArgument,
        RepoError::NotFound { .. } | RepoError::NoProject { .. } => Code::NotFound,
        // What a source lacks has no code, as from a repo-server; but a glob of values files may
        // match later.
        RepoError::Render(RenderError::NoValuesFile(_)) => Code::NotFound,
        RepoError::Unreachable { .. }
        | RepoError::Timeout { .. }
        | RepoError::Busy { .. }
        | RepoError::NoRoom { .. } => Code::Unavailable,
        _ => Code::Unknown,
    };
    let text = match &e {
        RepoError::NotFound { .. } => "repository not found".to_owned(),
        e => e.to_string(),
    };
    ApiError::new(code, text)
}

fn rendered_manifests(rendered: &Manifests) -> RenderedManifests {
    let object = |kept: &Arc<Kept>| Value::Object(kept.object().0.clone());
    RenderedManifests {
        revision: rendered.revision.clone(),
        source_type: rendered.source_type.clone(),
        objects: rendered.objects.iter().map(object).collect(),
        errors: rendered.errors.iter().map(ToString::to_string).collect(),
    }
}

#[async_trait]
impl Sources for RepoSources {
    async fn resolve(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        revision: &str,
    ) -> Result<(String, String), ApiError> {
        let resolved = self
            .0
            .resolve(repository, source, revision, Since::now())
            .await
            .map_err(of_repo)?;
        Ok((resolved.sha, resolved.display))
    }

    async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, NotRendered> {
        let failed = |e: RepoError| {
            if e.awaits_values() {
                NotRendered::AwaitsValues(of_repo(e))
            } else {
                NotRendered::Failed(of_repo(e))
            }
        };
        let rendered = self.0.manifests(&request, None).await.map_err(failed)?;
        Ok(rendered_manifests(&rendered))
    }

    async fn render_files(
        &self,
        request: RenderRequest,
        files: (File, &str),
    ) -> Result<RenderedManifests, ApiError> {
        let rendered = self.0.manifests_of_files(&request, files).await;
        Ok(rendered_manifests(&*rendered.map_err(of_repo)?))
    }

    async fn details(&self, request: RenderRequest) -> Result<RepoAppDetailsResponse, ApiError> {
        let helm = request.source.helm.clone().unwrap_or_default();
        let file_parameters = helm.file_parameters;
        let details = self.0.details(&request).await.map_err(of_repo)?;
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
        let plugin = (details.kind == SourceKind::Plugin).then_some(PluginAppSpec {
            parameters_announcement: details.parameters,
        });
        Ok(RepoAppDetailsResponse {
            type_: details.kind.as_str().to_owned(),
            helm,
            kustomize,
            directory: None,
            plugin,
        })
    }

    async fn tools(
        &self,
        repository: &Repository,
        revision: &str,
        project: &str,
    ) -> Result<BTreeMap<String, String>, ApiError> {
        let request = TreeRequest {
            repo_url: repository.repo.clone(),
            revision: revision.to_owned(),
            project: project.to_owned(),
            is_fresh: true,
        };
        let found = self.0.tree_tools(&request).await.map_err(of_repo)?;
        let named = |(folder, tool): (String, SourceKind)| (folder, tool.as_str().to_owned());
        Ok(found.into_iter().map(named).collect())
    }

    async fn plugins(&self) -> Result<Vec<String>, ApiError> {
        self.0.plugins().await.map_err(of_repo)
    }

    async fn test(&self, repository: &Repository) -> Result<(), ApiError> {
        self.0.test(repository).await.map_err(of_repo)
    }

    async fn refs(&self, repository: &Repository) -> Result<(Vec<String>, Vec<String>), ApiError> {
        let refs = self.0.refs(repository).await.map_err(of_repo)?;
        Ok((refs.branches, refs.tags))
    }

    async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
        project: &AppProject,
    ) -> Result<RevisionMetadata, ApiError> {
        let metadata = self.0.metadata(repository, revision).await;
        let metadata = metadata.map_err(of_repo)?;
        let signed = self.0.signed(metadata, project, repository, revision);
        signed.await.map_err(of_repo)
    }

    async fn chart_details(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, ApiError> {
        let details = self.0.chart_details(repository, source, version).await;
        details.map_err(of_repo)
    }

    async fn charts(&self, repository: &Repository) -> Result<Vec<HelmChart>, ApiError> {
        let charts = self.0.charts(repository).await.map_err(of_repo)?;
        let chart = |(name, versions)| HelmChart { name, versions };
        Ok(charts.into_iter().map(chart).collect())
    }

    async fn oci_tags(&self, repository: &Repository) -> Result<Vec<String>, ApiError> {
        self.0.oci_tags(repository).await.map_err(of_repo)
    }

    async fn oci_metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<OCIMetadata, ApiError> {
        let metadata = self.0.oci_metadata(repository, revision).await;
        metadata.map_err(of_repo)
    }
}
