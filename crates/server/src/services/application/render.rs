//! Render requests for an Application's sources: commits, referenced sources, cluster versions.
//!
//! Main type: [`Asker`].

use crate::{
    ApiError,
    access::{Authorized, Get},
    ports::RenderRequest,
    state::State,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    Application, operation::RefTarget, repository::Repository, source::ApplicationSource,
};
use tiphys_sources::{AppRequest, RefSources};

/// Builds the requests for the sources of one Application.
pub(crate) struct Asker<'a, A> {
    state: &'a State,
    app: &'a Authorized<Application, A>,
    common: AppRequest,
}

/// The sources of an Application that have a `ref`, at their commits.
pub(crate) async fn refs<A>(
    state: &State,
    app: &Authorized<Application, A>,
    sources: &[ApplicationSource],
) -> Result<BTreeMap<String, RefTarget>, ApiError> {
    let refs = RefSources::of(sources)
        .map_err(|e| ApiError::plain(format!("failed to get ref sources: {e}")))?;
    let mut found = BTreeMap::new();
    for (i, source) in refs.iter() {
        let repository = state.reach.repository_of(app, &source.repo_url).await?;
        let repository = repository.typed_by(source);
        let resolved = state.reach.sources(&repository);
        let (revision, _) = resolved.resolve(source, &source.target_revision).await?;
        found.insert(i, (repository.into_inner(), revision));
    }
    Ok(refs.targets(|i, _| found.remove(&i).unwrap_or_default()))
}

impl<'a, A> Asker<'a, A> {
    /// `sources` are the Application's sources, possibly at other revisions.
    pub async fn new(
        state: &'a State,
        app: &'a Authorized<Application, A>,
        sources: &[ApplicationSource],
    ) -> Result<Self, ApiError> {
        let refs = refs(state, app, sources).await?;
        let facts = state.reach.live(app).facts().await?;
        let common = AppRequest {
            kube_version: facts.kube_version,
            api_versions: facts.api_versions,
            refs,
            ..AppRequest::of(app, state.instance(app))
        };
        Ok(Self { state, app, common })
    }

    /// The request for one of the sources, and its repository.
    pub async fn request(
        &self,
        source: ApplicationSource,
        no_cache: bool,
    ) -> Result<(Authorized<Repository, Get>, RenderRequest), ApiError> {
        let reach = &self.state.reach;
        let repository = reach.repository_of(self.app, &source.repo_url).await?;
        let repository = repository.typed_by(&source);
        let (revision, _) = reach
            .sources(&repository)
            .resolve(&source, &source.target_revision)
            .await?;
        Ok(self.at((repository, source), revision, no_cache))
    }

    /// The request for files that are sent in place of those of a source: its repository need not
    /// answer.
    pub async fn request_of_files(
        &self,
        source: ApplicationSource,
    ) -> Result<(Authorized<Repository, Get>, RenderRequest), ApiError> {
        let reach = &self.state.reach;
        let repository = reach.repository_of(self.app, &source.repo_url).await?;
        let repository = repository.typed_by(&source);
        let revision = source.target_revision.clone();
        Ok(self.at((repository, source), revision, false))
    }

    fn at(
        &self,
        (repository, source): (Authorized<Repository, Get>, ApplicationSource),
        revision: String,
        no_cache: bool,
    ) -> (Authorized<Repository, Get>, RenderRequest) {
        let app = AppRequest {
            no_cache,
            ..self.common.clone()
        };
        let request = RenderRequest {
            app: Arc::new(app),
            repository: Repository::clone(&repository),
            source,
            revision,
        };
        (repository, request)
    }
}
