//! GetManifests: the manifests rendered from Git, without values of Secrets.

use super::{live::shown, named::found, render::Asker, sync::source_at, validate};
use crate::{
    ApiError,
    access::{Get, Guard},
    state::State,
};
use serde_json::Value;
use std::{borrow::Cow, sync::Arc};
use tiphys_api::{
    Application,
    rpc::{application::ApplicationManifestQuery, repository::ManifestResponse},
    source::ApplicationSource,
};
use tiphys_apimachinery::Object;
use tiphys_engine::{spec, track, types::Tracking};

pub async fn get(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationManifestQuery,
) -> Result<ManifestResponse, ApiError> {
    if q.name.is_empty() {
        return Err(ApiError::plain(
            "invalid request: application name is missing",
        ));
    }
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    // Of a hydrator it is the source that is rendered.
    let mut sources: Vec<ApplicationSource> = match &app.spec.source_hydrator {
        Some(hydrator) => vec![spec::dry_source(hydrator)],
        None => spec::sources(&app.spec)
            .into_iter()
            .map(Cow::into_owned)
            .collect(),
    };
    if !spec::has_several(&app.spec) {
        if let (Some(source), Some(revision)) =
            (sources.first_mut(), q.revision.filter(|r| !r.is_empty()))
        {
            source.target_revision = revision;
        }
    } else {
        for (position, revision) in q.source_positions.iter().zip(q.revisions) {
            let source = source_at(*position).and_then(|index| sources.get_mut(index));
            source
                .ok_or_else(|| ApiError::plain("source position is out of range"))?
                .target_revision = revision;
        }
    }
    // As in Argo CD: of an Application, only the manifests.
    let mut response = ManifestResponse::default();
    // Check permissions first: a source that is not permitted must not even be contacted.
    sources
        .iter()
        .try_for_each(|source| validate::permitted(&project, &source.repo_url))?;
    let failed = |e: ApiError| e.context("error generating manifests");
    let tracking =
        tiphys_cluster::Settings::of_config(state.settings.fresh().await?.config.clone())
            .tracking(&state.instance(&app));
    let asker = Asker::new(&state, &app, &sources).await.map_err(failed)?;
    for source in sources
        .into_iter()
        .filter(|s| !s.path.is_empty() || !s.chart.is_empty())
    {
        let (repository, request) = asker
            .request(source, q.no_cache.unwrap_or(false))
            .await
            .map_err(failed)?;
        let sources = state.reach.sources(&repository);
        let rendered = sources.render(request).await;
        let rendered = rendered.map_err(|why| failed(why.into()))?;
        if !rendered.errors.is_empty() {
            return Err(failed(ApiError::plain(rendered.errors.join("; "))));
        }
        for object in rendered.objects {
            response
                .manifests
                .push(shown(&state, tracked(object, &tracking, &app)).await?);
        }
    }
    Ok(response)
}

/// Adds the tracking mark that the object would have in the cluster; without it, clients that
/// compare would see a difference in every object.
pub(super) fn tracked(object: Value, tracking: &Tracking, app: &Application) -> Value {
    match Object::from_value(object.clone()) {
        Ok(mut object) => {
            track::set(&mut object, tracking, &app.spec.destination.namespace);
            object.into_value()
        }
        Err(_) => object,
    }
}
