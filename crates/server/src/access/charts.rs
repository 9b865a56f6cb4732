//! Charts of the catalogue. Whoever may see a repository of a URL may see its charts.

use super::{Action, Authorized, Get, Guard, Reach, Resource, Verb};
use crate::{ApiError, Code};
use std::sync::Arc;
use tiphys_api::source::ApplicationSource;
use tiphys_catalog::{
    CatalogError, RepoId, Store,
    apprepository::NewRepository,
    release::Origin,
    search::{Page, Query},
    store::{Problem, RepoStatus},
    sync::CatalogSync,
};

/// Problems of a repository that are told.
const PROBLEMS: i64 = 10;

/// A chart that the caller may see, and where it is known.
pub(crate) struct KnownChart {
    pub store: Arc<Store>,
    pub origin: Origin,
}

/// The catalogue's error as one of the API.
pub(crate) fn refused(e: CatalogError) -> ApiError {
    let code = match &e {
        CatalogError::NotFound(_) => Code::NotFound,
        CatalogError::Exists(_) => Code::AlreadyExists,
        CatalogError::Invalid(_) | CatalogError::FilterRule(_) | CatalogError::Filter(_) => {
            Code::InvalidArgument
        }
        CatalogError::Repo(_) | CatalogError::Index { .. } => Code::FailedPrecondition,
        CatalogError::Database(_) | CatalogError::Sqlite(_) => Code::Unavailable,
        CatalogError::Document(_) | CatalogError::Internal(_) => Code::Internal,
    };
    ApiError::new(code, e.to_string())
}

/// Runs what reads a database.
pub(crate) async fn read_charts<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| ApiError::internal(e.to_string()))?
        .map_err(refused)
}

/// Whether the caller may do `A` with a repository.
fn ask<A: Verb>(guard: &Guard, url: &str) -> Result<(), ApiError> {
    guard.ask(Resource::Repositories, A::ACTION, "", url)
}

impl Reach {
    fn charts(&self) -> Result<Arc<Store>, ApiError> {
        let none = "there is no chart catalogue here: `tiphys up` has one with --catalog, `tiphys \
                    control-plane` and `tiphys server` with --catalog-database-url or \
                    --catalog-file";
        self.catalog
            .store()
            .ok_or_else(|| match self.catalog.waits() {
                Some(why) => ApiError::new(
                    Code::Unavailable,
                    format!("the chart catalogue's database cannot be used yet: {why}"),
                ),
                None => ApiError::new(Code::Unimplemented, none),
            })
    }

    /// The chart repositories that the caller may see.
    pub(crate) async fn chart_repositories(
        &self,
        guard: &Guard,
    ) -> Result<Vec<RepoStatus>, ApiError> {
        let store = self.charts()?;
        let mut all = read_charts(move || store.repos()).await?;
        all.retain(|repo| ask::<Get>(guard, &repo.url).is_ok());
        Ok(all)
    }

    /// The same, with the first charts with which something is wrong.
    pub(crate) async fn chart_repositories_with_problems(
        &self,
        guard: &Guard,
    ) -> Result<Vec<(RepoStatus, Vec<Problem>)>, ApiError> {
        let seen = self.chart_repositories(guard).await?;
        let store = self.charts()?;
        read_charts(move || {
            let with = |repo: RepoStatus| {
                let problems = store.some_problems(&repo.id, PROBLEMS)?;
                Ok((repo, problems))
            };
            seen.into_iter().map(with).collect()
        })
        .await
    }

    /// What a search finds in them; with the icons of the page.
    pub(crate) async fn search_charts(
        &self,
        guard: &Guard,
        query: Query,
    ) -> Result<(Page, Vec<String>), ApiError> {
        let seen = self.chart_repositories(guard).await?;
        let store = self.charts()?;
        let query = Query {
            only: Some(seen.into_iter().map(|repo| repo.id).collect()),
            ..query
        };
        read_charts(move || {
            let page = store.search(&query)?;
            let icon = |chart: &tiphys_catalog::search::Found| {
                let id = RepoId::new(&chart.namespace, &chart.repository);
                Ok(store.icon(&id, &chart.id)?.unwrap_or_default())
            };
            let icons = page.charts.iter().map(icon);
            let icons = icons.collect::<Result<_, CatalogError>>()?;
            Ok((page, icons))
        })
        .await
    }

    /// A chart by its repository and its path below it. What the caller may not see looks like what
    /// is not there.
    pub(crate) async fn chart(
        &self,
        guard: &Guard,
        id: &RepoId,
        path: &str,
    ) -> Result<Authorized<KnownChart, Get>, ApiError> {
        let store = self.charts()?;
        let (of, repo) = (Arc::clone(&store), id.clone());
        let chart_id = format!("{}/{}", id.name, path.replace('/', "%2F"));
        let found = read_charts(move || {
            let status = of.repo(&repo)?;
            let chart = of.chart(&repo, &chart_id)?;
            let origin = chart
                .map(|chart| Origin::new(&of, repo, chart))
                .transpose()?;
            Ok((status, origin))
        });
        let (status, origin) = found.await?;
        let status = status.ok_or_else(ApiError::denied)?;
        ask::<Get>(guard, &status.url)?;
        let absent = || ApiError::not_found(format!("chart {path:?} is not in the catalogue"));
        let origin = origin.ok_or_else(absent)?;
        Ok(Authorized::new(KnownChart { store, origin }))
    }

    /// The chart that a source of an Application is from. Whoever may see the Application may see
    /// it, as with its repository.
    pub(crate) async fn chart_of<T, A>(
        &self,
        _: &Authorized<T, A>,
        source: &ApplicationSource,
    ) -> Result<Option<Authorized<KnownChart, Get>>, ApiError> {
        let store = self.charts()?;
        let (of, source) = (Arc::clone(&store), source.clone());
        let origin = read_charts(move || Origin::of(&of, &source)).await?;
        Ok(origin.map(|origin| Authorized::new(KnownChart { store, origin })))
    }

    /// What fetches a chart's archives.
    pub(crate) async fn visitor(
        &self,
        chart: &Authorized<KnownChart, Get>,
    ) -> Result<CatalogSync, ApiError> {
        let origin = &chart.origin;
        let visitor = self.catalog.visitor(&origin.repo, &origin.chart.repo);
        visitor.await.map_err(refused)
    }

    /// Makes a chart repository in the namespace of the control plane, whose repositories are for
    /// all.
    pub(crate) async fn add_charts(
        &self,
        guard: &Guard,
        wanted: &NewRepository,
    ) -> Result<(), ApiError> {
        self.charts()?;
        guard.ask(Resource::Repositories, Action::Create, "", &wanted.url)?;
        self.catalog.create(wanted).await.map_err(refused)
    }

    /// Removes a chart repository.
    pub(crate) async fn remove_charts(&self, guard: &Guard, id: &RepoId) -> Result<(), ApiError> {
        let url = self.charts_url(id).await?;
        guard.ask(Resource::Repositories, Action::Delete, "", &url)?;
        self.catalog.delete(id).await.map_err(refused)
    }

    /// The URL of a chart repository: what policies are about.
    async fn charts_url(&self, id: &RepoId) -> Result<String, ApiError> {
        let (store, repo) = (self.charts()?, id.clone());
        let status = read_charts(move || store.repo(&repo)).await?;
        Ok(status.ok_or_else(ApiError::denied)?.url)
    }

    /// Asks for a sync of a chart repository.
    pub(crate) async fn resync_charts(&self, guard: &Guard, id: &RepoId) -> Result<(), ApiError> {
        let url = self.charts_url(id).await?;
        guard.ask(Resource::Repositories, Action::Update, "", &url)?;
        self.catalog.resync(id).await.map_err(refused)
    }
}
