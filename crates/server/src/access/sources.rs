//! Reading from a repository.
//!
//! Main type: [`SourcesOf`].

use super::{Authorized, Reach};
use crate::{
    ApiError,
    ports::{NotRendered, RenderRequest, RenderedManifests, Sources},
};
use std::{collections::BTreeMap, fs::File};
use tiphys_api::{
    AppProject,
    repository::{ChartDetails, OCIMetadata, Repository, RevisionMetadata},
    rpc::repository::{HelmChart, RepoAppDetailsResponse},
    source::ApplicationSource,
};

/// The port [`Sources`] for one repository.
pub(crate) struct SourcesOf<'a, A> {
    sources: &'a dyn Sources,
    repository: &'a Authorized<Repository, A>,
}

impl Reach {
    /// The names of the plugins that render. Whoever has an account may know them.
    pub(crate) async fn plugins(&self) -> Result<Vec<String>, ApiError> {
        self.sources.plugins().await
    }

    pub(crate) fn sources<'a, A>(
        &'a self,
        repository: &'a Authorized<Repository, A>,
    ) -> SourcesOf<'a, A> {
        SourcesOf {
            sources: self.sources.as_ref(),
            repository,
        }
    }
}

impl<A> SourcesOf<'_, A> {
    pub async fn resolve(
        &self,
        source: &ApplicationSource,
        revision: &str,
    ) -> Result<(String, String), ApiError> {
        let (sources, repository) = (self.sources, self.repository);
        sources.resolve(repository, source, revision).await
    }

    /// Renders from this repository, regardless of the repository in the request.
    pub async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, NotRendered> {
        self.sources.render(self.of_repository(request)).await
    }

    /// The same of files that are sent.
    pub async fn render_files(
        &self,
        request: RenderRequest,
        files: (File, &str),
    ) -> Result<RenderedManifests, ApiError> {
        let request = self.of_repository(request);
        self.sources.render_files(request, files).await
    }

    pub async fn details(
        &self,
        request: RenderRequest,
    ) -> Result<RepoAppDetailsResponse, ApiError> {
        self.sources.details(self.of_repository(request)).await
    }

    /// The folders at this revision that a tool renders, with its name.
    pub async fn tools(
        &self,
        revision: &str,
        project: &str,
    ) -> Result<BTreeMap<String, String>, ApiError> {
        self.sources.tools(self.repository, revision, project).await
    }

    pub async fn test(&self) -> Result<(), ApiError> {
        self.sources.test(self.repository).await
    }

    /// Branches and tags.
    pub async fn refs(&self) -> Result<(Vec<String>, Vec<String>), ApiError> {
        self.sources.refs(self.repository).await
    }

    /// Of a commit, with what the project demands of its signature.
    pub async fn metadata(
        &self,
        revision: &str,
        project: &AppProject,
    ) -> Result<RevisionMetadata, ApiError> {
        let found = self.sources.metadata(self.repository, revision, project);
        found.await
    }

    pub async fn chart_details(
        &self,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, ApiError> {
        let (sources, repository) = (self.sources, self.repository);
        sources.chart_details(repository, source, version).await
    }

    pub async fn charts(&self) -> Result<Vec<HelmChart>, ApiError> {
        self.sources.charts(self.repository).await
    }

    pub async fn oci_tags(&self) -> Result<Vec<String>, ApiError> {
        self.sources.oci_tags(self.repository).await
    }

    pub async fn oci_metadata(&self, revision: &str) -> Result<OCIMetadata, ApiError> {
        self.sources.oci_metadata(self.repository, revision).await
    }

    fn of_repository(&self, request: RenderRequest) -> RenderRequest {
        RenderRequest {
            repository: Repository::clone(self.repository),
            ..request
        }
    }
}
