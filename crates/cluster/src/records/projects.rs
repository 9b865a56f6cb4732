//! Effective projects, with global projects and scoped repositories and clusters; and the service
//! accounts to impersonate.

use super::Records;
use std::sync::Arc;
use tiphys_api::{AppProject, Application};
use tiphys_engine::project::{self, Scoped};

impl Records {
    /// The effective project; `None`: it does not exist, or cannot be parsed.
    pub fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        Some(self.effective(&self.stored_project(name)?))
    }

    fn stored_project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.projects.get(&self.namespace, name)?.value().ok()
    }

    /// The effective rules of a project.
    pub fn effective(&self, project: &Arc<AppProject>) -> Arc<AppProject> {
        let settings = self.settings();
        let owns = |owner: &str| !owner.is_empty() && owner == project.metadata.name;
        let repositories = settings
            .repositories
            .iter()
            .filter(|r| owns(&r.value.project))
            .map(|r| r.value.repo.clone());
        let clusters = settings
            .clusters
            .iter()
            .filter(|c| owns(&c.project))
            .map(|c| (c.server.clone(), c.namespaces.clone()));
        let scoped = Scoped {
            repositories: repositories.collect(),
            clusters: clusters.collect(),
        };
        project::effective(project, &self.global_projects(project), scoped)
    }

    /// The global projects whose rules a project inherits.
    pub fn global_projects(&self, project: &AppProject) -> Vec<Arc<AppProject>> {
        project::globals(project, &self.settings().global_projects, |name| {
            self.stored_project(name)
        })
    }

    /// The user to impersonate when writing to the cluster at `server` for an Application; `None`:
    /// no impersonation.
    ///
    /// # Errors
    /// Why no write is permitted, with Argo CD's message.
    pub fn impersonated(
        &self,
        app: &Application,
        project: &AppProject,
        server: &str,
    ) -> Result<Option<String>, Impersonation> {
        let settings = self.settings();
        if !settings.is_true("application.sync.impersonation.enabled") {
            return Ok(None);
        }
        let found =
            project::service_account(project, app, server).map_err(Impersonation::Underivable)?;
        if found.is_none() && settings.get("application.sync.impersonation.enforced") != "false" {
            return Err(Impersonation::Missing {
                server: server.to_owned(),
                namespace: app.spec.destination.namespace.clone(),
            });
        }
        Ok(found)
    }
}

/// Why there is no service account to impersonate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impersonation {
    #[error("{0}")]
    Underivable(String),
    #[error(
        "no matching service account found for destination server {server} and namespace {namespace}"
    )]
    Missing { server: String, namespace: String },
}
