//! GetManifests: what Git says, rendered, without values of Secrets.

use super::{find, live::mask, validate};
use crate::{ApiError, auth::Caller, ports::RenderRequest, server::State, services::repository::repository};
use std::sync::Arc;
use tiphys_api::{
    rpc::{application::ApplicationManifestQuery, repository::ManifestResponse},
    source::ApplicationSource,
};
use tiphys_engine::spec;

pub async fn get(state: Arc<State>, _: Caller, q: ApplicationManifestQuery) -> Result<ManifestResponse, ApiError> {
    if q.name.is_empty() {
        return Err(ApiError::plain("invalid request: application name is missing"));
    }
    let (app, project) = find(&state, q.app_namespace.as_deref(), &q.name, q.project.as_deref()).await?;
    let mut sources: Vec<ApplicationSource> = spec::sources(&app.spec).into_iter().cloned().collect();
    if app.spec.sources.is_empty() {
        if let (Some(source), Some(revision)) = (sources.first_mut(), q.revision.filter(|r| !r.is_empty())) {
            source.target_revision = revision;
        }
    } else {
        for (position, revision) in q.source_positions.iter().zip(q.revisions) {
            let source = usize::try_from(*position - 1).ok().and_then(|n| sources.get_mut(n));
            source.ok_or_else(|| ApiError::plain("source position is out of range"))?.target_revision = revision;
        }
    }
    let mut response = ManifestResponse { namespace: app.spec.destination.namespace.clone(), ..Default::default() };
    response.server.clone_from(&app.spec.destination.server);
    for source in sources.into_iter().filter(|s| !s.path.is_empty() || !s.chart.is_empty()) {
        validate::permitted(&project, &source.repo_url)?;
        let repository = repository(&state, &source.repo_url, spec::project_name(&app)).await?;
        let failed = |e: ApiError| e.context("error generating manifests");
        let (revision, _) = state.sources.resolve(&repository, &source.target_revision).await.map_err(failed)?;
        let request = RenderRequest {
            repository,
            source,
            revision,
            app_name: app.metadata.name.clone(),
            namespace: app.spec.destination.namespace.clone(),
            project: spec::project_name(&app).to_owned(),
            no_cache: q.no_cache.unwrap_or(false),
        };
        let rendered = state.sources.render(request).await.map_err(failed)?;
        if !rendered.errors.is_empty() {
            return Err(failed(ApiError::plain(rendered.errors.join("; "))));
        }
        response.revision = rendered.revision;
        response.source_type = rendered.source_type;
        response.manifests.extend(rendered.objects.into_iter().map(|mut object| {
            mask(&mut object);
            object.to_string()
        }));
    }
    Ok(response)
}
