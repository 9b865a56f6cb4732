//! GetAppDetails: the type of a source and the parameters that it takes.

use crate::{
    access::repository,
    errors::of_repo,
    manifests::{Refs, render_request, since, source},
    server::Server,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    access::shown_url,
    rpc::{
        repo_server::{ManifestRequest, RepoAppDetailsResponse, RepoServerAppDetailsQuery},
        repository::{DirectoryAppSpec, HelmAppSpec, KustomizeAppSpec, PluginAppSpec},
    },
    source::{ApplicationSource, HelmParameter},
};
use tiphys_repo::{Details, ManifestRequest as RenderRequest, RenderError, RepoError, SourceKind};
use tiphys_rpc::ApiError;

/// A mistake in what was asked for is told as one.
fn of_details(e: RepoError) -> ApiError {
    match &e {
        RepoError::Render(RenderError::PathMissing(_))
        | RepoError::RevisionNotFound { .. }
        | RepoError::NoTag { .. } => ApiError::invalid(e.to_string()),
        _ => of_repo(e),
    }
}

impl Server {
    pub(crate) async fn app_details(
        self: Arc<Self>,
        query: RepoServerAppDetailsQuery,
    ) -> Result<RepoAppDetailsResponse, ApiError> {
        let repo = repository(query.repo.clone())?;
        let source = source(query.source.clone(), &repo)?;
        let _pending = self.pending.begin(&shown_url(&repo.repo));
        let servers = self.trust.servers().await?;
        let access = servers.access(&repo, &repo.project);
        let since = since(query.no_cache || query.no_revision_cache);
        let resolved = self
            .repos
            .resolve_source(&access, &source, &source.target_revision, since)
            .await
            .map_err(of_details)?;
        let refs = if query.ref_sources.is_empty() {
            BTreeMap::new()
        } else {
            let refs = Refs {
                targets: &query.ref_sources,
                project: &repo.project,
                since,
            };
            self.refs(&source, &refs, &servers).await?
        };
        let request = ManifestRequest {
            app_name: query.app_name,
            no_cache: query.no_cache,
            repos: query.repos,
            kustomize_options: query.kustomize_options,
            helm_options: query.helm_options,
            enabled_source_types: query.enabled_source_types,
            has_multiple_sources: !query.ref_sources.is_empty(),
            ..ManifestRequest::default()
        };
        let render = render_request(&request, (access, &source), refs, &servers);
        let render = RenderRequest {
            sha: resolved.sha,
            project: repo.project,
            ..render
        };
        let details = self.repos.details(render).await.map_err(of_details)?;
        Ok(response(details, source))
    }
}

fn response(details: Details, source: ApplicationSource) -> RepoAppDetailsResponse {
    let parameter = |(name, value): (String, String)| HelmParameter {
        name,
        value,
        force_string: false,
    };
    let helm = details.helm.map(|helm| HelmAppSpec {
        name: String::new(),
        value_files: helm.value_files,
        parameters: helm.parameters.into_iter().map(parameter).collect(),
        values: helm.values,
        file_parameters: source.helm.unwrap_or_default().file_parameters,
    });
    let kustomize = (details.kind == SourceKind::Kustomize).then_some(KustomizeAppSpec {
        images: details.images,
    });
    let plugin = (details.kind == SourceKind::Plugin).then_some(PluginAppSpec {
        parameters_announcement: details.parameters,
    });
    let is_directory = details.kind == SourceKind::Directory;
    RepoAppDetailsResponse {
        type_: details.kind.as_str().to_owned(),
        helm,
        kustomize,
        directory: is_directory.then(DirectoryAppSpec::default),
        plugin,
    }
}
