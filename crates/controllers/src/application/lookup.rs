//! What an Application names: its project, and the clusters it may mean.

use super::Controller;
use std::sync::Arc;
use tiphys_api::{AppProject, Application};
use tiphys_engine::spec;

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
}
