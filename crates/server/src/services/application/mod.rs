//! application.ApplicationService, a file for each group of calls. Here: finding the Application
//! that a call means.

pub mod actions;
pub mod audit;
pub mod delete;
pub mod live;
pub mod logs;
pub mod manifests;
pub mod read;
mod render;
pub mod sync;
pub mod validate;
pub mod watch;
pub mod write;

use crate::{ApiError, ports::StoreError, server::State};
use tiphys_api::{AppProject, Application, resource::ResourceNode, status::HealthStatus};
use tiphys_engine::spec;

/// The condition types that say why there is nothing to show.
const BLOCKING: [&str; 2] = ["ComparisonError", "InvalidSpecError"];

/// The Application, read now, and its project. Without a project in the request, what is not there
/// looks as forbidden.
pub(crate) async fn find(
    state: &State,
    namespace: Option<&str>,
    name: &str,
    project: Option<&str>,
) -> Result<(Application, AppProject), ApiError> {
    let project = project.unwrap_or_default();
    let absent = || match project {
        "" => ApiError::denied(),
        _ => ApiError::not_found(format!("applications.argoproj.io {name:?} not found")),
    };
    let namespace = state.namespace_or_ours(namespace.unwrap_or_default());
    if !state.store.permits(namespace) || name.is_empty() {
        return Err(absent());
    }
    let app = match state.store.get_app(namespace, name).await {
        Ok(app) => app,
        Err(StoreError::NotFound(_)) => return Err(absent()),
        Err(e) => return Err(e.into()),
    };
    if !project.is_empty() && spec::project_name(&app) != project {
        return Err(absent());
    }
    let project = project_of(state, &app).await?;
    Ok((app, project))
}

/// The project of an Application, which must be allowed to use it.
pub(crate) async fn project_of(state: &State, app: &Application) -> Result<AppProject, ApiError> {
    let name = spec::project_name(app);
    let vague = || {
        ApiError::invalid(format!(
            "app is not allowed in project {:?}, or the project does not exist",
            app.spec.project
        ))
    };
    let project = match state.store.get_project(name).await {
        Ok(project) => project,
        Err(StoreError::NotFound(_)) => return Err(vague()),
        Err(e) => return Err(e.into()),
    };
    let mut placed = app.clone();
    if placed.metadata.namespace.is_empty() {
        placed
            .metadata
            .namespace
            .clone_from(&state.options.namespace);
    }
    match spec::project_condition(&placed, Some(&project), &state.options.namespace) {
        None => Ok(state.store.effective_project(project)),
        Some(_) => Err(vague()),
    }
}

/// With the health of its resources, which the controller keeps in the tree rather than in the
/// record.
pub(crate) async fn with_health(state: &State, mut app: Application) -> Application {
    if app.status.resource_health_source != "appTree" {
        return app;
    }
    let Some(tree) = state.live.tree(&app).await else {
        return app;
    };
    let missing = || HealthStatus {
        status: "Missing".into(),
        message: "Resource has not been created".into(),
        last_transition_time: None,
    };
    let health = |node: &ResourceNode| {
        let absent = node.resource_ref.uid.is_empty()
            && node.resource_version.is_empty()
            && node.created_at.is_none();
        node.health.clone().or_else(|| absent.then(missing))
    };
    for resource in &mut app.status.resources {
        let same = |node: &&ResourceNode| {
            let r = &node.resource_ref;
            r.name == resource.name
                && r.kind == resource.kind
                && r.namespace == resource.namespace
                && r.group == resource.group
        };
        resource.health = tree.nodes.iter().find(same).and_then(health);
    }
    app
}

/// The conditions that keep it from being compared, in one line; empty when there are none.
fn blocking_conditions(app: &Application) -> String {
    let lines = app
        .status
        .conditions
        .iter()
        .filter(|c| BLOCKING.contains(&c.type_.as_str()));
    lines
        .map(|c| format!("{}: {}", c.type_, c.message))
        .collect::<Vec<_>>()
        .join(";")
}

/// Whether a sync happens by itself.
fn syncs_itself(app: &Application) -> bool {
    app.spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref())
        .is_some_and(|a| a.enabled != Some(false))
}
