//! Resolves what an Application refers to: its project, its clusters, and the credentials of its
//! repositories.

use super::Controller;
use std::sync::Arc;
use tiphys_api::{AppProject, Application};
use tiphys_engine::spec;
use tiphys_repo::{RepoAccess, Trust};

impl Controller {
    pub fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.records.project(name)
    }

    /// The project of an Application, or why there is none, with Argo CD's message.
    pub fn project_of(&self, app: &Application) -> Result<Arc<AppProject>, String> {
        let name = spec::project_name(app);
        self.project(name).ok_or_else(|| {
            format!("error getting app project {name:?}: appproject.argoproj.io {name:?} not found")
        })
    }

    /// The clusters that an Application may use.
    pub fn destinations(&self) -> Arc<[spec::Destination]> {
        self.records.settings().destinations.clone()
    }

    /// The access to a repository: its own Secret, else the best matching credential template, else
    /// none.
    pub fn access(&self, url: &str, project: &str) -> RepoAccess {
        let settings = self.records.settings();
        let mut repository = settings.known_repository(url, project);
        url.clone_into(&mut repository.repo);
        let trust = Trust {
            known_hosts: &settings.known_hosts,
            certificates: &settings.tls_certificates,
        };
        RepoAccess::new(&repository, project, trust)
    }
}
