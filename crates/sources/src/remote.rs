//! Requests to a repo-server, with all fields that Argo CD's controller sends.

use crate::{Before, SourceRequest, Sources, all_usable, is_only_referred_to, usable};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    AppProject, Application,
    access::shown_url,
    operation::RefTarget,
    repository::Repository,
    rpc::repo_server::{ManifestRequest, ResolveRevisionRequest, UpdateRevisionForPathsRequest},
    source::ApplicationSource,
};
use tiphys_engine::generate_paths;
use tiphys_repo::{RepoError, RepoServer, Resolved};

pub async fn resolve(
    server: &RepoServer,
    repository: &Repository,
    source: &ApplicationSource,
    revision: &str,
) -> Result<Resolved, RepoError> {
    usable(repository)?;
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
    let answer = server.resolve(&request).await?;
    Ok(Resolved {
        sha: answer.revision,
        display: answer.ambiguous_revision,
    })
}

pub async fn pin(
    sources: &Sources,
    server: &RepoServer,
    request: &SourceRequest,
    before: &Before,
) -> Result<String, RepoError> {
    let source = &request.source;
    if !source.ref_.is_empty() && !source.tag_prefix.is_empty() {
        let resolved = resolve(server, &request.repository, source, &request.revision);
        return Ok(resolved.await?.sha);
    }
    let Some(question) = comparison(sources, request, before)? else {
        return Ok(request.revision.clone());
    };
    let answer = server.update_revision(&question).await?;
    let resolved = Some(answer.revision).filter(|revision| !revision.is_empty());
    Ok(resolved.unwrap_or(question.revision))
}

pub async fn changed(
    sources: &Sources,
    server: &RepoServer,
    request: &SourceRequest,
    before: &Before,
) -> Result<bool, RepoError> {
    let same = before.revision == request.revision;
    if is_only_referred_to(&request.source) || (same && request.app.refs.is_empty()) {
        return Ok(false);
    }
    // A repo-server compares paths only in Git, and reports another version of a chart as no
    // change.
    let is_git = request.source.chart.is_empty() && !request.source.repo_url.starts_with("oci://");
    let question = comparison(sources, request, before)?.filter(|_| same || is_git);
    let Some(question) = question else {
        return Ok(true);
    };
    Ok(server.update_revision(&question).await?.changes)
}

/// The request for the manifests of a source.
pub async fn message(
    sources: &Sources,
    server: &RepoServer,
    request: &SourceRequest,
) -> Result<ManifestRequest, RepoError> {
    let project = project(sources, request)?;
    let common = common(sources, request, &project)?;
    let settings = (sources.settings)();
    // One of ours refuses such a repository where it is needed. Of one that does not say that it is
    // ours, nothing is expected.
    if let Some((url, fault)) = settings.permitted_fault(&project, &request.source)
        && !server.is_ours().await?
    {
        let url = shown_url(&url);
        return Err(RepoError::Unsupported(format!(
            "failed to get repo {url:?}, which the request would list: {fault}"
        )));
    }
    Ok(settings.source_request(
        common,
        &project,
        &request.source,
        request.repository.clone(),
        request.revision.clone(),
    ))
}

fn project(sources: &Sources, request: &SourceRequest) -> Result<Arc<AppProject>, RepoError> {
    let name = &request.app.project;
    (sources.project)(name).ok_or_else(|| RepoError::NoProject { name: name.clone() })
}

/// The fields common to requests for all sources of the Application.
///
/// # Errors
/// A repository that the request names cannot be used. A repo-server that is not ours would ask it
/// without its credentials.
fn common(
    sources: &Sources,
    request: &SourceRequest,
    project: &AppProject,
) -> Result<ManifestRequest, RepoError> {
    all_usable(request)?;
    let app = &request.app;
    Ok(ManifestRequest {
        no_cache: app.no_cache,
        no_revision_cache: app.no_revision_cache,
        namespace: app.namespace.clone(),
        kube_version: app.kube_version.clone(),
        api_versions: app.api_versions.to_vec(),
        has_multiple_sources: app.several,
        ref_sources: named(&app.refs),
        annotation_manifest_generate_paths: app.generate_paths.clone(),
        ..(sources.settings)().manifest_request(project, &app.instance)
    })
}

/// The keys as values files refer to them, with a leading `$`.
fn named(refs: &BTreeMap<String, RefTarget>) -> BTreeMap<String, RefTarget> {
    refs.iter()
        .map(|(name, target)| (format!("${name}"), target.clone()))
        .collect()
}

/// The request that asks whether a new commit affects the Application, if it lists the paths that
/// do.
fn comparison(
    sources: &Sources,
    request: &SourceRequest,
    before: &Before,
) -> Result<Option<UpdateRevisionForPathsRequest>, RepoError> {
    let (source, repo) = (&request.source, &request.repository);
    let same = before.revision == request.revision && request.app.refs.is_empty();
    if before.revision.is_empty()
        || is_only_referred_to(source)
        || same
        || repo.depth != 0
        || request.app.generate_paths.is_empty()
    {
        return Ok(None);
    }
    let project = project(sources, request)?;
    let common = common(sources, request, &project)?;
    Ok(Some(UpdateRevisionForPathsRequest {
        repo: Some(repo.clone()),
        application_source: Some(source.clone()),
        synced_revision: before.revision.clone(),
        revision: request.revision.clone(),
        paths: generate_paths::whole(&common.annotation_manifest_generate_paths, &source.path),
        synced_ref_sources: if request.app.several {
            named(&before.refs)
        } else {
            BTreeMap::new()
        },
        app_label_key: common.app_label_key,
        app_name: common.app_name,
        namespace: common.namespace,
        tracking_method: common.tracking_method,
        ref_sources: common.ref_sources,
        kube_version: common.kube_version,
        api_versions: common.api_versions,
        has_multiple_sources: common.has_multiple_sources,
        no_revision_cache: common.no_revision_cache,
        installation_id: common.installation_id,
        source_integrity: common.source_integrity,
    }))
}
