//! What is asked of the renderer for an Application's sources: commits, the sources they refer to,
//! what the cluster is.
//!
//! Main type: [`Asker`].

use super::validate;
use crate::{
    ApiError,
    ports::{ClusterVersions, RenderRequest},
    server::State,
    services::repository::repository,
};
use std::collections::BTreeMap;
use tiphys_api::{Application, repository::Repository, source::ApplicationSource};
use tiphys_engine::spec;

/// Makes the requests for the sources of one Application.
pub struct Asker<'a> {
    state: &'a State,
    app: &'a Application,
    refs: BTreeMap<String, (Repository, String)>,
    facts: ClusterVersions,
}

impl<'a> Asker<'a> {
    /// `sources` are the Application's, maybe at other revisions.
    pub async fn new(
        state: &'a State,
        app: &'a Application,
        sources: &[ApplicationSource],
    ) -> Result<Self, ApiError> {
        let mut refs = BTreeMap::new();
        for source in sources.iter().filter(|s| !s.ref_.is_empty()) {
            let repository = repository(state, &source.repo_url, spec::project_name(app)).await?;
            let (sha, _) = state
                .sources
                .resolve(&repository, source, &source.target_revision)
                .await?;
            refs.insert(source.ref_.clone(), (repository, sha));
        }
        Ok(Self {
            state,
            app,
            refs,
            facts: state.live.facts(app).await?,
        })
    }

    /// The request for one of the sources.
    pub async fn request(
        &self,
        source: ApplicationSource,
        no_cache: bool,
    ) -> Result<RenderRequest, ApiError> {
        let repository = validate::of(
            &source,
            repository(self.state, &source.repo_url, spec::project_name(self.app)).await?,
        );
        let (revision, _) = self
            .state
            .sources
            .resolve(&repository, &source, &source.target_revision)
            .await?;
        Ok(RenderRequest {
            repository,
            source,
            revision,
            app_name: self.state.instance(self.app),
            namespace: self.app.spec.destination.namespace.clone(),
            project: spec::project_name(self.app).to_owned(),
            facts: self.facts.clone(),
            refs: self.refs.clone(),
            several: !self.app.spec.sources.is_empty(),
            no_cache,
        })
    }
}
