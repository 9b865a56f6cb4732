//! GetManifestsWithFiles: the manifests of files that a client sends, before they are in Git.

use super::{live::shown, manifests::tracked, named::found, render::Asker, validate};
use crate::{
    ApiError,
    access::{Get, Guard},
    state::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use std::{borrow::Cow, sync::Arc};
use tiphys_api::rpc::{
    application::ApplicationManifestQueryWithFilesWrapper, repository::ManifestResponse,
};
use tiphys_engine::spec;
use tiphys_rpc::upload;
use tokio::sync::Semaphore;

/// Bytes of an archive.
const MAX_ARCHIVE: u64 = 100_000_000;
/// Archives that are received at a time; more wait.
static PLACES: Semaphore = Semaphore::const_new(4);

pub async fn manifests(
    state: Arc<State>,
    guard: Guard,
    mut messages: BoxStream<'static, Result<ApplicationManifestQueryWithFilesWrapper, ApiError>>,
) -> Result<ManifestResponse, ApiError> {
    let plain = |text: &str| ApiError::plain(format!("error getting query: {text}"));
    let nil = || plain("error getting stream query: query is nil");
    let first = messages.next().await.ok_or_else(nil)?;
    let query = first?.query.ok_or_else(nil)?;
    if query.name.is_empty() {
        let text = "invalid request: application name is missing";
        return Err(ApiError::plain(text));
    }
    let (app, project) = found::<Get>(&state, &guard, &query).await?;
    // The others, if there are some, are not sent.
    let source = match &app.spec.source_hydrator {
        Some(hydrator) => Some(spec::dry_source(hydrator)),
        None => spec::sources(&app.spec)
            .into_iter()
            .next()
            .map(Cow::into_owned),
    };
    let source = source.ok_or_else(|| ApiError::invalid("the application has no source"))?;
    validate::permitted(&project, &source.repo_url)?;
    let place = PLACES.acquire().await;
    let _place = place.map_err(|e| ApiError::internal(e.to_string()))?;
    let chunks = messages.map(|message| {
        let message = message.map_err(|e| format!("stream Recv error: {}", e.message))?;
        let chunk = message
            .chunk
            .ok_or("error getting stream chunk: chunk is nil")?;
        Ok(chunk.chunk)
    });
    let archive = upload::receive(chunks, &query.checksum, MAX_ARCHIVE).await;
    let archive = archive.map_err(|e| ApiError::plain(format!("error sending chunk: {e}")))?;
    let tracking =
        tiphys_cluster::Settings::of_config(state.settings.fresh().await?.config.clone())
            .tracking(&state.instance(&app));
    let asker = Asker::new(&state, &app, std::slice::from_ref(&source)).await?;
    let (repository, request) = asker.request_of_files(source).await?;
    let sources = state.reach.sources(&repository);
    let files = (archive, query.checksum.as_str());
    let rendered = sources.render_files(request, files).await?;
    if !rendered.errors.is_empty() {
        return Err(ApiError::plain(rendered.errors.join("; ")));
    }
    let mut response = ManifestResponse {
        namespace: app.spec.destination.namespace.clone(),
        server: app.spec.destination.server.clone(),
        revision: rendered.revision,
        source_type: rendered.source_type,
        ..ManifestResponse::default()
    };
    for object in rendered.objects {
        let tracked = tracked(object, &tracking, &app);
        response.manifests.push(shown(&state, tracked).await?);
    }
    Ok(response)
}
