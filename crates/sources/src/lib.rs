//! From an Application's source to its revision and its manifests, in this process or by a
//! repo-server: the one place that turns the settings of an installation into access to
//! repositories and into requests.
//!
//! Main types: [`Sources`], and [`SourceRequest`], which it answers. The controllers and the API
//! server ask the same way, so they cannot differ. `repo` must not know settings, and `cluster`,
//! which has them, must not know repositories: this crate stands above both. It must not know what
//! the manifests are used for.

mod local;
mod remote;
mod request;

pub use request::{AppRequest, Before, SourceRequest, is_only_referred_to};

use std::sync::Arc;
use tiphys_api::{
    AppProject,
    repository::{Repository, RevisionMetadata},
    source::ApplicationSource,
};
use tiphys_cluster::{Records, Settings};
use tiphys_repo::{
    Details, Manifests, Refs, RepoAccess, RepoError, RepoServer, Repos, Resolved, Since, Trust,
};

/// What is known of an installation now.
type Known<T> = Arc<dyn Fn() -> Arc<T> + Send + Sync>;
type KnownProject = Arc<dyn Fn(&str) -> Option<Arc<AppProject>> + Send + Sync>;

/// A cheap handle; clones share caches and connections.
#[derive(Clone)]
pub struct Sources {
    repos: Repos,
    /// Where manifests come from, when this process does not make them. What is only shown of a
    /// repository (its branches, a commit's author, what there is to set in a source) is looked up
    /// in Git by this process even then.
    server: Option<RepoServer>,
    settings: Known<Settings>,
    project: KnownProject,
}

impl Sources {
    /// `server`: who renders instead of this process.
    pub fn new(records: &Records, repos: Repos, server: Option<RepoServer>) -> Self {
        let (settings, projects) = (records.clone(), records.clone());
        Self::with(
            repos,
            server,
            move || settings.settings(),
            move |name| projects.project(name),
        )
    }

    /// With settings and projects from elsewhere than a cluster.
    pub fn with(
        repos: Repos,
        server: Option<RepoServer>,
        settings: impl Fn() -> Arc<Settings> + Send + Sync + 'static,
        project: impl Fn(&str) -> Option<Arc<AppProject>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            repos,
            server,
            settings: Arc::new(settings),
            project: Arc::new(project),
        }
    }

    /// Whether a repo-server renders.
    pub fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    /// What is known of a repository that a project uses: its own Secret, with the credential
    /// template that fits best.
    pub fn repository(&self, url: &str, project: &str) -> Repository {
        (self.settings)().known_repository(url, project)
    }

    /// How a repository is reached for a project.
    fn access(&self, repository: &Repository, project: &str) -> RepoAccess {
        let settings = (self.settings)();
        let trust = Trust {
            known_hosts: &settings.known_hosts,
            certificates: &settings.tls_certificates,
        };
        RepoAccess::new(repository, project, trust)
    }

    /// The commit or the version of a chart that `revision` is, and how to show it: `HEAD (sha)`,
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
                let access = self.access(repository, &repository.project);
                self.repos.resolve(&access, revision, since).await
            }
        }
    }

    /// The revision that a source is rendered at. A repo-server resolves it itself, and is asked
    /// before only where the Application names the paths that concern it.
    pub async fn pin(
        &self,
        request: &SourceRequest,
        before: &Before,
        since: Since,
    ) -> Result<String, RepoError> {
        match &self.server {
            Some(server) => remote::pin(self, server, request, before).await,
            None => local::pin(self, request, since).await,
        }
    }

    /// The revision of a source that others refer to, as they are asked for: what it was pinned to
    /// where this process renders, as the Application names it where a repo-server does.
    pub fn ref_revision(&self, named: &str, pinned: &str) -> String {
        let is_remote = self.server.is_some();
        if is_remote { named } else { pinned }.to_owned()
    }

    /// The manifests of a source. `before`: those of the last time, which are given again when
    /// nothing that was read for them differs.
    pub async fn manifests(
        &self,
        request: &SourceRequest,
        before: Option<&Manifests>,
    ) -> Result<Arc<Manifests>, RepoError> {
        if let Some(server) = &self.server {
            let message = remote::message(self, request)?;
            return server.manifests(&message).await;
        }
        let request = local::request(self, request);
        match before.and_then(|before| self.repos.unchanged(&request, before)) {
            Some(same) => Ok(same),
            None => self.repos.manifests(request).await,
        }
    }

    /// Whether a source, or one that it reads files of, differs from what it was before in the
    /// paths that the Application names.
    pub async fn changed(
        &self,
        request: &SourceRequest,
        before: &Before,
    ) -> Result<bool, RepoError> {
        match &self.server {
            Some(server) => remote::changed(self, server, request, before).await,
            None => local::changed(self, request, before).await,
        }
    }

    /// What there is to set in a source.
    pub async fn details(&self, request: &SourceRequest) -> Result<Details, RepoError> {
        self.repos.details(local::request(self, request)).await
    }

    /// Whether a repository answers and takes the credentials.
    pub async fn test(&self, repository: &Repository) -> Result<(), RepoError> {
        // Nothing but a repo-server knows how to ask those of charts.
        if self.server.is_some() && matches!(repository.type_.as_str(), "helm" | "oci") {
            return Ok(());
        }
        let access = self.access(repository, &repository.project);
        self.repos.test(&access).await
    }

    /// Branches and tags.
    pub async fn refs(&self, repository: &Repository) -> Result<Refs, RepoError> {
        let access = self.access(repository, &repository.project);
        self.repos.refs(&access, Since::Recently).await
    }

    /// Author, date, message and tags of a commit.
    pub async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<RevisionMetadata, RepoError> {
        let access = self.access(repository, &repository.project);
        self.repos.metadata(&access, revision).await
    }
}
