//! Deletion of projects: a finalizer keeps a project while an Application refers to it. Main
//! function: [`follow`].

use super::controller::Controller;
use crate::runtime::next;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tiphys_api::{AppProject, Application, constants::RESOURCES_FINALIZER};
use tiphys_cluster::records::Record;
use tiphys_engine::spec;

const PAUSE: Duration = Duration::from_secs(5);

/// Releases deleted projects when possible, until the records end.
pub async fn follow(controller: Arc<Controller>) {
    let (mut projects, mut applications) = (
        controller.records.projects.changes(),
        controller.records.applications.changes(),
    );
    loop {
        let failed = !release(&controller).await;
        let goes_on = tokio::select! {
            change = next(&mut projects) => change.is_some(),
            change = next(&mut applications) => change.is_some(),
            () = tokio::time::sleep(PAUSE), if failed => true,
        };
        if !goes_on {
            return;
        }
    }
}

/// Removes the finalizer from every project that may be deleted. False if that is unknown for one
/// of them, or a write failed.
async fn release(controller: &Controller) -> bool {
    let mut all_well = true;
    for project in controller
        .records
        .projects
        .list()
        .into_iter()
        .filter(|p| is_held(p))
    {
        // Otherwise an Application that is not in the cache yet would lose its project.
        if !controller.records.applications.is_current() {
            tracing::warn!(
                project = project.meta.name,
                "the finalizer of a project stays: Applications cannot be followed"
            );
            return false;
        }
        let (namespace, name) = (&project.meta.namespace, &project.meta.name);
        let own = &controller.records.namespace;
        if controller
            .records
            .applications
            .list()
            .iter()
            .any(|app| refers(app, &project, own))
        {
            continue;
        }
        let left: Vec<String> = project
            .meta
            .finalizers
            .iter()
            .filter(|f| *f != RESOURCES_FINALIZER)
            .cloned()
            .collect();
        let patch = json!({"metadata": {"finalizers": left, "resourceVersion": project.meta.resource_version}});
        if let Err(e) = controller
            .records
            .projects
            .merge_patch(namespace, name, &patch)
            .await
            && !controller.records.projects.is_gone(&e, namespace, name)
        {
            tracing::warn!(project = name, error = %e, "the finalizer of a project cannot be removed");
            all_well = false;
        }
    }
    all_well
}

fn is_held(project: &Record<AppProject>) -> bool {
    project.meta.is_deleting
        && project
            .meta
            .finalizers
            .iter()
            .any(|f| f == RESOURCES_FINALIZER)
}

/// An Application that cannot be parsed may belong to any project; one in a namespace that the
/// project does not permit belongs to none.
fn refers(app: &Record<Application>, project: &Record<AppProject>, own: &str) -> bool {
    let permitted = project.value().map_or(true, |project| {
        spec::namespace_permitted(&project, &app.meta.namespace, own)
    });
    permitted
        && app
            .value()
            .map_or(true, |app| spec::project_name(&app) == project.meta.name)
}
