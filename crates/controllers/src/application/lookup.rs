//! What an Application names: its project, the clusters it may mean, and how its repositories are
//! reached.

use super::Controller;
use std::sync::Arc;
use tiphys_api::{AppProject, Application};
use tiphys_cluster::records::Settings;
use tiphys_engine::spec;
use tiphys_repo::RepoAccess;

impl Controller {
    pub fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.records.project(name)
    }

    /// The project of an Application, or why there is none, in Argo CD's words.
    pub fn project_of(&self, app: &Application) -> Result<Arc<AppProject>, String> {
        let name = spec::project_name(app);
        self.project(name).ok_or_else(|| {
            format!("error getting app project {name:?}: appproject.argoproj.io {name:?} not found")
        })
    }

    /// The clusters an Application may name.
    pub fn destinations(&self) -> Arc<[spec::Destination]> {
        self.records.settings().destinations.clone()
    }

    /// How to reach a repository: its own Secret, else the credential template that fits best, else
    /// nothing.
    pub fn access(&self, url: &str, project: &str) -> RepoAccess {
        access(&self.records.settings(), url, project)
    }
}

/// See [`Controller::access`].
fn access(settings: &Settings, url: &str, project: &str) -> RepoAccess {
    let mut access = RepoAccess::from(&settings.known_repository(url, project));
    url.clone_into(&mut access.url);
    project.clone_into(&mut access.project);
    access.known_hosts.clone_from(&settings.known_hosts);
    let host = url
        .split_once("://")
        .map_or(url, |(_, rest)| rest)
        .split('/')
        .next()
        .unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if let Some(ca) = settings.tls_certificates.get(host).or_else(|| {
        settings
            .tls_certificates
            .get(host.split(':').next().unwrap_or_default())
    }) {
        access.ca_data.clone_from(ca);
    }
    access
}
