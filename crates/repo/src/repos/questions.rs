//! What is asked of repositories besides renders: refs, tags, charts, commits, and whether they can
//! be reached.

use super::Repos;
use crate::{
    RepoAccess, RepoError,
    chart::ChartName,
    git::{self, GitFiles},
    ground::{Since, blocking},
    revision::Reference,
};
use tiphys_api::{
    access::shown_url,
    repository::{ChartDetails, OCIMetadata, RevisionMetadata},
    source::ApplicationSource,
};
use tiphys_render::helm;

/// Names of branches and tags, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    pub branches: Vec<String>,
    pub tags: Vec<String>,
}

impl Repos {
    /// The names of the plugins, sorted.
    pub fn plugins(&self) -> Result<Vec<String>, RepoError> {
        self.inner.plugins.names()
    }

    /// Whether signatures are checked at all.
    pub fn verifies(&self) -> bool {
        self.inner.options.signatures
    }

    /// Whether the repository responds and the credentials are valid.
    pub async fn test(&self, access: &RepoAccess) -> Result<(), RepoError> {
        self.entry(access)?.refs(Since::now()).await.map(|_| ())
    }

    /// Whether the registry responds and the credentials are valid.
    pub async fn test_registry(&self, access: &RepoAccess) -> Result<(), RepoError> {
        self.inner.oci.test(access).await
    }

    /// The tags of a repository in a registry, in the registry's order, with `+` for `_` as
    /// versions have it.
    pub async fn oci_tags(&self, access: &RepoAccess) -> Result<Vec<String>, RepoError> {
        let tags = self.inner.oci.tags(access, Since::now()).await?;
        Ok(tags.to_vec())
    }

    /// What the author of an artifact says about it. `revision`: a digest or a tag.
    pub async fn oci_metadata(
        &self,
        access: &RepoAccess,
        revision: &str,
    ) -> Result<OCIMetadata, RepoError> {
        self.inner.oci.metadata(access, revision).await
    }

    /// Whether the chart repository responds with an index.
    pub async fn test_charts(&self, access: &RepoAccess) -> Result<(), RepoError> {
        self.inner.charts.list(access).await.map(|_| ())
    }

    /// The charts of a repository, with their versions, in the order of its index.
    pub async fn charts(
        &self,
        access: &RepoAccess,
    ) -> Result<Vec<(String, Vec<String>)>, RepoError> {
        self.inner.charts.list(access).await
    }

    /// What a version of a chart says about itself.
    pub async fn chart_details(
        &self,
        access: &RepoAccess,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, RepoError> {
        let chart = ChartName::of(access, source).ok_or_else(|| RepoError::NoVersion {
            reason: "the source is not a chart".to_owned(),
        })?;
        let commit = self.inner.charts.files(chart, version, Since::Recently);
        let (store, id) = commit.await?;
        let shown = shown_url(&access.url);
        blocking(move || {
            let files = GitFiles::new(&store, id.tree, None);
            let limits = helm::Limits::default();
            let loaded = helm::chart::Chart::from_unpacked(&files, &limits);
            let chart = loaded.map_err(|e| RepoError::Corrupt {
                url: shown,
                reason: e.to_string(),
            })?;
            let metadata = chart.chart.metadata;
            let person = |m: helm::chart::Maintainer| {
                let text = format!("{} <{}>", m.name, m.email);
                text.trim().to_owned()
            };
            Ok(ChartDetails {
                description: metadata.description,
                home: metadata.home,
                maintainers: metadata.maintainers.into_iter().map(person).collect(),
            })
        })
        .await
    }

    pub async fn refs(&self, access: &RepoAccess, since: Since) -> Result<Refs, RepoError> {
        let refs = self.entry(access)?.refs(since).await?;
        let names = |prefix: &str| {
            let mut names: Vec<String> = refs
                .iter()
                .filter_map(|r| r.name.strip_prefix(prefix))
                .map(str::to_owned)
                .collect();
            names.sort();
            names
        };
        Ok(Refs {
            branches: names("refs/heads/"),
            tags: names("refs/tags/"),
        })
    }

    /// Author, date, message and tags of a commit.
    pub async fn metadata(
        &self,
        access: &RepoAccess,
        sha: &str,
    ) -> Result<RevisionMetadata, RepoError> {
        let entry = self.entry(access)?;
        let (store, id) = self.commit(&entry, sha).await?;
        let refs = entry.refs(Since::Recently).await?;
        let commit = id.commit.to_string();
        let tag = |r: &Reference| {
            r.name
                .strip_prefix("refs/tags/")
                .filter(|_| r.sha == commit)
                .map(str::to_owned)
        };
        let tags = refs.iter().filter_map(tag).collect();
        blocking(move || store.metadata(id.commit, tags)).await
    }

    /// Whether `is_meant` is true for a file that differs between two commits.
    pub async fn any_changed(
        &self,
        access: &RepoAccess,
        from: &str,
        to: &str,
        is_meant: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<bool, RepoError> {
        let entry = self.entry(access)?;
        let (_, from) = self.commit(&entry, from).await?;
        let (store, to) = self.commit(&entry, to).await?;
        blocking(move || git::any_changed(&store, from.tree, to.tree, &is_meant)).await
    }
}
