//! application.ApplicationService, with one file for each group of calls. This file has the health
//! of an Application.

pub mod actions;
pub mod audit;
pub mod delete;
mod deltas;
pub mod files;
pub mod list;
pub mod live;
pub mod log_file;
pub mod logs;
pub mod manifests;
mod masked;
mod named;
mod page;
pub mod read;
pub(crate) mod render;
pub mod server_side_diff;
pub mod sync;
pub mod validate;
pub mod watch;
pub mod write;

use crate::{ApiError, access::Authorized, state::State};
use tiphys_api::{
    Application,
    resource::{ApplicationTree, ResourceNode, ResourceRef},
    status::HealthStatus,
};
use tiphys_engine::types::SyncStatus;

/// The condition types that explain why there is nothing to show.
const BLOCKING: [&str; 2] = ["ComparisonError", "InvalidSpecError"];

/// An error of a source as Argo CD gets it, whose repo-server is another process.
pub(crate) fn of_repo_server(e: &ApiError) -> ApiError {
    if e.message.starts_with(OF_GRPC) {
        return ApiError::plain(&*e.message);
    }
    ApiError::plain(format!("{OF_GRPC}{:?} desc = {}", e.code, e.message))
}

const OF_GRPC: &str = "rpc error: code = ";

/// Adds the health of the resources, which the controller keeps in the tree rather than in the
/// record.
pub(crate) async fn with_health<A>(state: &State, app: Authorized<Application, A>) -> Application {
    if app.status.resource_health_source != "appTree" {
        return app.into_inner();
    }
    let tree = match state.reach.live(&app).tree().await {
        Ok(Some(tree)) => tree,
        Ok(None) => return app.into_inner(),
        Err(error) => {
            // Only the resources' health is missing then, which is said where it is asked for.
            tracing::debug!(%error, app = app.metadata.name, "its tree cannot be read");
            return app.into_inner();
        }
    };
    let mut app = app.into_inner();
    let missing = || HealthStatus {
        status: "Missing".into(),
        message: "Resource has not been created".into(),
        last_transition_time: None,
    };
    // Else nobody has looked for what is not in the tree.
    let is_compared = app.status.sync.status != SyncStatus::Unknown.as_str();
    let health = |node: &ResourceNode| {
        let absent = is_compared
            && !is_unreadable(&tree, &node.resource_ref)
            && node.resource_ref.uid.is_empty()
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

/// Whether the kind of a resource could not be read.
fn is_unreadable(tree: &ApplicationTree, resource: &ResourceRef) -> bool {
    let mut kinds = tree.unreadable_kinds.iter();
    kinds.any(|of| of.group == resource.group && (of.kind == "*" || of.kind == resource.kind))
}

/// The conditions that prevent a comparison, in one line; empty if there are none.
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

/// Whether automated sync is enabled.
fn syncs_itself(app: &Application) -> bool {
    app.spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref())
        .is_some_and(|a| a.enabled != Some(false))
}
