//! Render requests for an Application's sources: commits, referenced sources, cluster versions.
//!
//! Main type: [`Asker`].

use crate::{
    ApiError,
    access::{Authorized, Get},
    ports::{ClusterVersions, RenderRequest},
    server::State,
};
use std::collections::BTreeMap;
use tiphys_api::{Application, repository::Repository, source::ApplicationSource};
use tiphys_engine::spec;

/// Builds the requests for the sources of one Application.
pub(crate) struct Asker<'a, A> {
    state: &'a State,
    app: &'a Authorized<Application, A>,
    refs: BTreeMap<String, (Repository, String)>,
    facts: ClusterVersions,
}

impl<'a, A> Asker<'a, A> {
    /// `sources` are the Application's sources, possibly at other revisions.
    pub async fn new(
        state: &'a State,
        app: &'a Authorized<Application, A>,
        sources: &[ApplicationSource],
    ) -> Result<Self, ApiError> {
        let mut refs = BTreeMap::new();
        for source in sources.iter().filter(|s| !s.ref_.is_empty()) {
            let repository = state.reach.repository_of(app, &source.repo_url).await?;
            let (sha, _) = state
                .reach
                .sources(&repository)
                .resolve(source, &source.target_revision)
                .await?;
            refs.insert(source.ref_.clone(), (repository.into_inner(), sha));
        }
        Ok(Self {
            state,
            app,
            refs,
            facts: state.reach.live(app).facts().await?,
        })
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
        let request = RenderRequest {
            repository: Repository::clone(&repository),
            source,
            revision,
            app_name: self.state.instance(self.app),
            namespace: self.app.spec.destination.namespace.clone(),
            project: spec::project_name(self.app).to_owned(),
            facts: self.facts.clone(),
            refs: self.refs.clone(),
            several: spec::has_several(&self.app.spec),
            no_cache,
        };
        (repository, request)
    }
}
