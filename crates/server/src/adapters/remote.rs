//! [`RemoteSources`]: revisions and manifests from a repo-server, as Argo CD's API has them. What
//! is only shown of a repository (its branches, a commit's author, what there is to set in a
//! source) is still looked up in Git by this process.

use super::sources::of_repo;
use crate::{
    ApiError,
    ports::{RenderRequest, RenderedManifests, Sources},
};
use async_trait::async_trait;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    AppProject, Application,
    operation::RefTarget,
    repository::{Repository, RevisionMetadata},
    rpc::{
        repo_server::{ManifestRequest, ResolveRevisionRequest},
        repository::RepoAppDetailsResponse,
    },
    source::ApplicationSource,
};
use tiphys_cluster::Settings;
use tiphys_repo::RepoServer;

/// The settings as they are, and a project by name.
pub type Known = Box<dyn Fn(&str) -> Option<(Arc<Settings>, Arc<AppProject>)> + Send + Sync>;

/// A repo-server, and Git for the rest.
pub struct RemoteSources {
    server: RepoServer,
    git: Arc<dyn Sources>,
    known: Known,
}

impl RemoteSources {
    pub fn new(server: RepoServer, git: Arc<dyn Sources>, known: Known) -> Self {
        Self { server, git, known }
    }
}

/// What is asked about a source, with all that the settings and the project have to say.
fn question(request: RenderRequest, settings: &Settings, project: &AppProject) -> ManifestRequest {
    let target = |(name, (repo, revision)): (String, (Repository, String))| {
        (
            format!("${name}"),
            RefTarget {
                repo: Some(repo),
                target_revision: Some(revision),
                chart: None,
            },
        )
    };
    let common = ManifestRequest {
        no_cache: request.no_cache,
        namespace: request.namespace,
        kube_version: request.facts.kube_version,
        api_versions: request.facts.api_versions.to_vec(),
        has_multiple_sources: request.several,
        ref_sources: request
            .refs
            .into_iter()
            .map(target)
            .collect::<BTreeMap<_, _>>(),
        ..settings.manifest_request(project, &request.app_name)
    };
    settings.source_request(
        common,
        project,
        &request.source,
        request.repository,
        request.revision,
    )
}

#[async_trait]
impl Sources for RemoteSources {
    async fn resolve(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        revision: &str,
    ) -> Result<(String, String), ApiError> {
        let mut app = Application::default();
        app.spec.source = Some(ApplicationSource {
            target_revision: revision.to_owned(),
            ..source.clone()
        });
        let request = ResolveRevisionRequest {
            repo: Some(repository.clone()),
            app: Some(app),
            ambiguous_revision: revision.to_owned(),
            source_index: -1,
            no_revision_cache: true,
        };
        let answer = self.server.resolve(&request).await.map_err(of_repo)?;
        Ok((answer.revision, answer.ambiguous_revision))
    }

    async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, ApiError> {
        let missing = || {
            ApiError::not_found(format!(
                "appproject.argoproj.io {:?} not found",
                request.project
            ))
        };
        let (settings, project) = (self.known)(&request.project).ok_or_else(missing)?;
        let rendered = self
            .server
            .manifests(&question(request, &settings, &project))
            .await
            .map_err(of_repo)?;
        Ok(RenderedManifests {
            revision: rendered.revision.clone(),
            source_type: rendered.source_type.clone(),
            objects: rendered
                .objects
                .iter()
                .map(|o| Value::Object(o.object().0.clone()))
                .collect(),
            errors: Vec::new(),
        })
    }

    async fn details(&self, request: RenderRequest) -> Result<RepoAppDetailsResponse, ApiError> {
        self.git.details(request).await
    }

    async fn test(&self, repository: &Repository) -> Result<(), ApiError> {
        // Nothing but a repo-server knows how to ask those of charts.
        match repository.type_.as_str() {
            "helm" | "oci" => Ok(()),
            _ => self.git.test(repository).await,
        }
    }

    async fn refs(&self, repository: &Repository) -> Result<(Vec<String>, Vec<String>), ApiError> {
        self.git.refs(repository).await
    }

    async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<RevisionMetadata, ApiError> {
        self.git.metadata(repository, revision).await
    }
}
