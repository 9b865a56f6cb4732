//! Resolves an Application's source to its revision and its manifests, in this process or through a
//! repo-server. This is the only place that turns an installation's settings into repository access
//! and requests.
//!
//! Main types: [`Sources`], and [`SourceRequest`], which it answers. The controllers and the API
//! server use the same code, so their results cannot differ. `repo` must not know settings, and
//! `cluster`, which has them, must not know repositories: this crate depends on both. It must not
//! know what the manifests are used for.

mod answered;
mod generators;
mod hosts;
mod hydrated;
mod integrity;
mod local;
mod refs;
mod remembered;
mod remote;
mod request;
mod trees;

pub use generators::Answers;
pub use hosts::HostSettings;
#[doc(hidden)]
pub use hosts::ask as ask_host;
pub use integrity::SignatureTrust;
pub use refs::{RefError, RefSources};
pub use remembered::Remembered;
pub use request::{AppRequest, Before, SourceRequest, is_only_referred_to};
pub use trees::TreeRequest;

use std::{fs::File, sync::Arc};
use tiphys_api::{
    AppProject,
    access::shown_url,
    repository::{ChartDetails, OCIMetadata, Repository, RevisionMetadata},
    source::ApplicationSource,
};
use tiphys_cluster::{Records, Settings};
use tiphys_repo::{
    CommitServer, Details, Manifests, Refs, RepoAccess, RepoError, RepoServer, Repos, Resolved,
    Since, Trust, UnpackLimits,
};

/// Reads the current state of an installation.
type Known<T> = Arc<dyn Fn() -> Arc<T> + Send + Sync>;
type KnownProject = Arc<dyn Fn(&str) -> Option<Arc<AppProject>> + Send + Sync>;

/// A cheap handle; clones share caches and connections.
#[derive(Clone)]
pub struct Sources {
    repos: Repos,
    /// The repo-server that renders, if this process does not. Information that is only displayed
    /// (a repository's branches, a commit's author, the parameters of a source) is still read from
    /// Git by this process.
    server: Option<RepoServer>,
    /// The commit server that pushes, if this process does not.
    commit_server: Option<CommitServer>,
    settings: Known<Settings>,
    project: KnownProject,
    keys: integrity::Keys,
}

impl Sources {
    /// `server` is the repo-server that renders in place of this process.
    pub fn new(records: &Records, repos: Repos, server: Option<RepoServer>) -> Self {
        let (settings, projects) = (records.clone(), records.clone());
        Self::with(
            repos,
            server,
            move || settings.settings(),
            move |name| projects.project(name),
        )
    }

    /// Creates one with settings and projects from a source other than a cluster.
    pub fn with(
        repos: Repos,
        server: Option<RepoServer>,
        settings: impl Fn() -> Arc<Settings> + Send + Sync + 'static,
        project: impl Fn(&str) -> Option<Arc<AppProject>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            repos,
            server,
            commit_server: None,
            settings: Arc::new(settings),
            project: Arc::new(project),
            keys: integrity::Keys::default(),
        }
    }

    /// Whether a repo-server renders.
    pub fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    /// The repository as a project may use it: its own Secret, with the best matching credential
    /// template.
    pub fn repository(&self, url: &str, project: &str) -> Repository {
        (self.settings)().known_repository(url, project)
    }

    /// The access to a repository for a project.
    ///
    /// # Errors
    /// Its Secret cannot be read: it is asked by nobody, and not without its credentials either.
    fn access(&self, repository: &Repository, project: &str) -> Result<RepoAccess, RepoError> {
        usable(repository)?;
        let settings = (self.settings)();
        let trust = Trust {
            known_hosts: &settings.known_hosts,
            certificates: &settings.tls_certificates,
        };
        Ok(RepoAccess::new(repository, project, trust))
    }

    /// The commit, chart version or digest that `revision` resolves to, and how to show it: `HEAD (sha)`,
    /// or the SHA itself.
    pub async fn resolve(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        revision: &str,
        since: Since,
    ) -> Result<Resolved, RepoError> {
        match &self.server {
            Some(server) => remote::resolve(server, repository, source, revision).await,
            None => {
                let access = self.access(repository, &repository.project)?;
                let resolved = self.repos.resolve_source(&access, source, revision, since);
                resolved.await
            }
        }
    }

    /// The revision at which a source is rendered. A repo-server resolves it itself, and is
    /// contacted in advance only if the Application lists the paths that affect it.
    pub async fn pin(
        &self,
        request: &SourceRequest,
        before: &Before,
        since: Since,
    ) -> Result<String, RepoError> {
        all_usable(request)?;
        match &self.server {
            Some(server) => remote::pin(self, server, request, before).await,
            None => local::pin(self, request, since).await,
        }
    }

    /// The revision for requests that refer to another source: the pinned one if this process
    /// renders, and the one named in the Application if a repo-server does. A repo-server is told
    /// nothing of that source's tag prefix, so a revision that depends on it is pinned too.
    pub fn ref_revision(&self, source: &ApplicationSource, named: &str, pinned: &str) -> String {
        let as_named = self.server.is_some() && source.tag_prefix.is_empty();
        if as_named { named } else { pinned }.to_owned()
    }

    /// The manifests of a source. `before` are the previous ones, which are returned again if
    /// nothing that was read for them has changed.
    pub async fn manifests(
        &self,
        request: &SourceRequest,
        before: Option<&Manifests>,
    ) -> Result<Arc<Manifests>, RepoError> {
        if let Some(server) = &self.server {
            let message = remote::message(self, server, request).await?;
            return server.manifests(&message).await;
        }
        let request = local::request(self, request)?;
        match before.and_then(|before| self.repos.unchanged(&request, before)) {
            Some(same) => Ok(same),
            None => self.repos.manifests(request).await,
        }
    }

    /// The manifests of a source whose files are those of an archive (tar, packed with gzip), with
    /// its SHA-256.
    pub async fn manifests_of_files(
        &self,
        request: &SourceRequest,
        (archive, checksum): (File, &str),
    ) -> Result<Arc<Manifests>, RepoError> {
        if let Some(server) = &self.server {
            let message = remote::message(self, server, request).await?;
            return server
                .manifests_of_files(message, (archive, checksum))
                .await;
        }
        let (files, usual) = ((archive, checksum), UnpackLimits::default());
        let limits = UnpackLimits {
            bytes: (self.settings)().streamed_bytes().unwrap_or(usual.bytes),
            ..usual
        };
        let request = local::request(self, request)?;
        self.repos.manifests_of_files(files, limits, request).await
    }

    /// Whether a source, or a source whose files it reads, has changed in the paths that the
    /// Application lists.
    pub async fn changed(
        &self,
        request: &SourceRequest,
        before: &Before,
    ) -> Result<bool, RepoError> {
        all_usable(request)?;
        match &self.server {
            Some(server) => remote::changed(self, server, request, before).await,
            None => local::changed(self, request, before).await,
        }
    }

    /// The parameters that can be set in a source.
    pub async fn details(&self, request: &SourceRequest) -> Result<Details, RepoError> {
        self.repos.details(local::request(self, request)?).await
    }

    /// The names of the plugins, sorted.
    pub async fn plugins(&self) -> Result<Vec<String>, RepoError> {
        match &self.server {
            Some(server) => server.plugins().await,
            None => self.repos.plugins(),
        }
    }

    /// Tests that a repository is reachable and accepts the credentials.
    pub async fn test(&self, repository: &Repository) -> Result<(), RepoError> {
        usable(repository)?;
        // Only the repo-server contacts chart repositories and registries then.
        if self.server.is_some() && matches!(repository.type_.as_str(), "helm" | "oci") {
            return Ok(());
        }
        let (url, access) = (
            &repository.repo,
            self.access(repository, &repository.project)?,
        );
        let has_scheme = url.contains("://");
        match repository.type_.as_str() {
            "oci" => self.repos.test_registry(&access).await,
            "helm" if repository.enable_oci && has_scheme => Err(RepoError::Unsupported(
                "OCI Helm repository URL should include hostname and port only".to_owned(),
            )),
            _ if url.starts_with("oci://") => self.repos.test_registry(&access).await,
            "helm" if has_scheme => self.repos.test_charts(&access).await,
            "helm" => self.repos.test_registry(&access).await,
            _ => self.repos.test(&access).await,
        }
    }

    /// The tags of a repository in a registry, in the registry's order.
    pub async fn oci_tags(&self, repository: &Repository) -> Result<Vec<String>, RepoError> {
        let access = self.access(repository, &repository.project)?;
        self.repos.oci_tags(&access).await
    }

    /// What the author of an artifact says about it. `revision`: a digest or a tag.
    pub async fn oci_metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<OCIMetadata, RepoError> {
        let access = self.access(repository, &repository.project)?;
        self.repos.oci_metadata(&access, revision).await
    }

    /// Branches and tags.
    pub async fn refs(&self, repository: &Repository) -> Result<Refs, RepoError> {
        let access = self.access(repository, &repository.project)?;
        self.repos.refs(&access, Since::Recently).await
    }

    /// What a chart says about itself.
    pub async fn chart_details(
        &self,
        repository: &Repository,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, RepoError> {
        let access = self.access(repository, &repository.project)?;
        self.repos.chart_details(&access, source, version).await
    }

    /// The charts of a repository, with their versions, in the order of its index.
    pub async fn charts(
        &self,
        repository: &Repository,
    ) -> Result<Vec<(String, Vec<String>)>, RepoError> {
        let access = self.access(repository, &repository.project)?;
        self.repos.charts(&access).await
    }

    /// Author, date, message and tags of a commit.
    pub async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<RevisionMetadata, RepoError> {
        let access = self.access(repository, &repository.project)?;
        self.repos.metadata(&access, revision).await
    }
}

/// # Errors
/// A repository that the request names, its own or that of a `ref`, cannot be used.
fn all_usable(request: &SourceRequest) -> Result<(), RepoError> {
    usable(&request.repository)?;
    for target in request.app.refs.values() {
        target.repo.as_ref().map_or(Ok(()), usable)?;
    }
    Ok(())
}

/// # Errors
/// The repository cannot be used, because its Secret cannot be read.
fn usable(repository: &Repository) -> Result<(), RepoError> {
    let Some(fault) = repository.fault() else {
        return Ok(());
    };
    Err(unusable(&repository.repo, fault))
}

fn unusable(url: &str, fault: &str) -> RepoError {
    let url = shown_url(url);
    RepoError::Unsupported(format!("failed to get repo {url:?}: {fault}"))
}
