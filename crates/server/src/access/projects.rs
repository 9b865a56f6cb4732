//! Projects.

use super::{
    Authorized, Create, Delete, Get, Guard, Reach, Resource, UNNAMED, Update, Verb, Writes,
};
use crate::{
    ApiError,
    ports::{StoreError, StoreResult},
};
use tiphys_api::{AppProject, Application, rpc::events::EventList};
use tiphys_engine::spec;

/// Reads the project and checks the permission `A`.
pub(crate) async fn find<A: Verb>(
    reach: &Reach,
    guard: &Guard,
    name: &str,
) -> Result<Authorized<AppProject, A>, ApiError> {
    guard.ask(Resource::Projects, A::ACTION, "", name)?;
    if name.is_empty() {
        return Err(ApiError::plain(UNNAMED));
    }
    let project = reach.store.get_project(name).await?;
    Ok(Authorized::new(project))
}

/// Reads the project to change the tokens of a role: who may update it may, and members of the
/// role's groups.
pub(crate) async fn find_for_tokens(
    reach: &Reach,
    guard: &Guard,
    name: &str,
    role: &str,
) -> Result<Authorized<AppProject, Update>, ApiError> {
    let Err(refused) = guard.ask(Resource::Projects, Update::ACTION, "", name) else {
        let project = reach.store.get_project(name).await?;
        return Ok(Authorized::new(project));
    };
    let groups = guard.groups();
    let Ok(project) = reach.store.get_project(name).await else {
        return Err(refused);
    };
    let mut roles = project.spec.roles.iter().filter(|r| r.name == role);
    let is_member = roles.any(|r| r.groups.iter().any(|group| groups.contains(group)));
    if is_member {
        Ok(Authorized::new(project))
    } else {
        Err(refused)
    }
}

impl Authorized<AppProject, Update> {
    /// The project with other tokens; false if they are the same.
    pub(crate) fn with_tokens(
        self,
        change: impl FnOnce(&mut AppProject) -> Result<bool, ApiError>,
    ) -> Result<(Self, bool), ApiError> {
        let mut project = self.into_inner();
        let spec = project.spec.clone();
        let is_changed = change(&mut project)?;
        // Only tokens of it may differ.
        let mut kept = spec;
        for role in &mut kept.roles {
            let changed = project.spec.roles.iter().find(|r| r.name == role.name);
            role.jwt_tokens = changed.map(|r| r.jwt_tokens.clone()).unwrap_or_default();
        }
        project.spec = kept;
        Ok((Self::new(project), is_changed))
    }
}

impl Guard {
    /// The new version of the project of that name.
    pub(crate) fn update_project(
        &self,
        new: AppProject,
    ) -> Result<Authorized<AppProject, Update>, ApiError> {
        self.grant(new)
    }
}

impl Reach {
    /// The projects that the caller may see, with the version of the list.
    pub(crate) async fn projects(
        &self,
        guard: &Guard,
    ) -> StoreResult<(Vec<Authorized<AppProject, Get>>, String)> {
        let all = self.store.list_projects().await?;
        let versions = all.iter().map(|p| p.metadata.resource_version.parse());
        let newest: Option<u64> = versions.filter_map(Result::ok).max();
        let seen = all.into_iter().filter_map(|p| guard.grant(p).ok());
        Ok((seen.collect(), newest.unwrap_or_default().to_string()))
    }

    /// The project merged with global projects and with what is scoped to it.
    pub(crate) fn effective_project(&self, project: AppProject) -> AppProject {
        self.store.effective_project(project)
    }

    /// The project of an Application; fails if the Application may not use it.
    pub(crate) async fn project_of<A>(
        &self,
        app: &Authorized<Application, A>,
    ) -> Result<AppProject, ApiError> {
        let vague = || {
            ApiError::invalid(format!(
                "app is not allowed in project {:?}, or the project does not exist",
                app.spec.project
            ))
        };
        let project = match self.store.get_project(spec::project_name(app)).await {
            Ok(project) => project,
            Err(StoreError::NotFound(_)) => return Err(vague()),
            Err(e) => return Err(e.into()),
        };
        let mut placed = Application::clone(app);
        if placed.metadata.namespace.is_empty() {
            placed.metadata.namespace.clone_from(&self.namespace);
        }
        match spec::project_condition(&placed, Some(&project), &self.namespace) {
            None => Ok(self.effective_project(project)),
            Some(_) => Err(vague()),
        }
    }

    /// The global projects that also apply to this one.
    pub(crate) fn global_projects<A>(
        &self,
        project: &Authorized<AppProject, A>,
    ) -> Vec<AppProject> {
        self.store.global_projects(project)
    }

    /// The project for which repository details are requested.
    pub(crate) async fn project_of_details<T, A>(
        &self,
        _: &Authorized<T, A>,
        name: &str,
    ) -> StoreResult<AppProject> {
        self.store.get_project(name).await
    }

    /// The existing project with this name; anyone who may write it may compare with it.
    pub(crate) async fn existing_project<A: Writes>(
        &self,
        new: &Authorized<AppProject, A>,
    ) -> StoreResult<AppProject> {
        self.store.get_project(&new.metadata.name).await
    }

    pub(crate) async fn create_project(
        &self,
        project: &Authorized<AppProject, Create>,
    ) -> StoreResult<AppProject> {
        self.store.create_project(project).await
    }

    pub(crate) async fn update_project(
        &self,
        project: &Authorized<AppProject, Update>,
    ) -> StoreResult<AppProject> {
        self.store.update_project(project).await
    }

    pub(crate) async fn delete_project(
        &self,
        project: &Authorized<AppProject, Delete>,
    ) -> StoreResult<()> {
        self.store.delete_project(&project.metadata.name).await
    }

    pub(crate) async fn events_of_project<A>(
        &self,
        project: &Authorized<AppProject, A>,
        selector: &str,
    ) -> StoreResult<EventList> {
        self.store
            .events(&project.metadata.namespace, selector)
            .await
    }
}
