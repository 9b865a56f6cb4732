//! What an Application's cluster has: managed resources, the tree, single objects and their events.

use super::{audit, blocking_conditions, find, read::refresh};
use crate::{
    ApiError,
    auth::Caller,
    ports::{LiveRef, Propagation},
    server::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{
    Application,
    resource::{ApplicationTree, ResourceDiff, ResourceNode},
    rpc::{
        application::{
            ApplicationResourceDeleteRequest, ApplicationResourceEventsQuery, ApplicationResourcePatchRequest, ApplicationResourceRequest,
            ApplicationResourceResponse, ApplicationResponse, LinksResponse, ManagedResourcesResponse, ResourcesQuery,
        },
        events::EventList,
    },
};

/// What the controller has published; asks it to compare when it has not, or says why it cannot.
macro_rules! published {
    ($state:expr, $app:expr, $get:ident, $what:literal) => {{
        match $state.live.$get($app).await {
            Some(found) => Ok(found),
            None => match first_comparison($state, $app).await {
                Err(e) => Err(e.context($what)),
                Ok(()) => $state.live.$get($app).await.ok_or_else(|| ApiError::plain("cache: key is missing").context($what)),
            },
        }
    }};
}

async fn first_comparison(state: &State, app: &Application) -> Result<(), ApiError> {
    let why = blocking_conditions(app);
    if !why.is_empty() {
        return Err(ApiError::plain(why));
    }
    refresh(state, app, "normal").await.map_err(|e| e.context("error getting application by query"))?;
    Ok(())
}

pub(super) async fn tree_of(state: &State, app: &Application) -> Result<Arc<ApplicationTree>, ApiError> {
    published!(state, app, tree, "error getting cached app resource tree")
}

pub async fn managed_resources(state: Arc<State>, _: Caller, q: ResourcesQuery) -> Result<ManagedResourcesResponse, ApiError> {
    let (app, _) = find(&state, q.app_namespace.as_deref(), &q.application_name, q.project.as_deref()).await?;
    let all: Arc<Vec<ResourceDiff>> = published!(&state, &app, managed_resources, "error getting cached app managed resources")?;
    let wanted = |asked: &Option<String>, have: &str| asked.as_deref().is_none_or(|a| a.is_empty() || a == have);
    let matching = all.iter().filter(|r| {
        !r.hook && wanted(&q.name, &r.name) && wanted(&q.namespace, &r.namespace) && wanted(&q.group, &r.group) && wanted(&q.kind, &r.kind)
    });
    Ok(ManagedResourcesResponse { items: matching.cloned().collect() })
}

pub async fn resource_tree(state: Arc<State>, _: Caller, q: ResourcesQuery) -> Result<ApplicationTree, ApiError> {
    let (app, _) = find(&state, q.app_namespace.as_deref(), &q.application_name, q.project.as_deref()).await?;
    Ok(tree_of(&state, &app).await?.as_ref().clone())
}

pub async fn watch_resource_tree(
    state: Arc<State>,
    _: Caller,
    q: ResourcesQuery,
) -> Result<BoxStream<'static, Result<ApplicationTree, ApiError>>, ApiError> {
    let (app, _) = find(&state, q.app_namespace.as_deref(), &q.application_name, q.project.as_deref()).await?;
    Ok(state.live.watch_tree(&app).map(|tree| Ok(tree.as_ref().clone())).boxed())
}

/// The node of the Application's tree that a request means: nothing else of the cluster can be reached.
pub(super) async fn node(state: &State, q: &ApplicationResourceRequest) -> Result<(Application, ResourceNode), ApiError> {
    let (app, _) = find(state, q.app_namespace.as_deref(), &q.name, q.project.as_deref()).await?;
    let tree = tree_of(state, &app).await.map_err(|e| e.context("error getting app resources"))?;
    let (group, namespace) = (q.group.as_deref().unwrap_or_default(), q.namespace.as_deref().unwrap_or_default());
    let found = tree.nodes.iter().chain(&tree.orphaned_nodes).find(|n| {
        let r = &n.resource_ref;
        r.group == group && r.kind == q.kind && r.namespace == namespace && r.name == q.resource_name && !r.uid.is_empty()
    });
    let absent = || ApiError::invalid(format!("{} {group} {} not found as part of application {}", q.kind, q.resource_name, q.name));
    found.cloned().map(|n| (app, n)).ok_or_else(absent)
}

pub(super) fn live_ref(node: &ResourceNode, version: &str) -> LiveRef {
    let r = &node.resource_ref;
    LiveRef {
        group: r.group.clone(),
        version: if version.is_empty() { r.version.clone() } else { version.to_owned() },
        kind: r.kind.clone(),
        namespace: r.namespace.clone(),
        name: r.name.clone(),
    }
}

/// Takes the values out of a Secret, which are for nobody to see.
pub(super) fn mask(object: &mut Value) {
    const MASK: &str = "++++++++";
    if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
        return;
    }
    for field in ["data", "stringData"] {
        if let Some(values) = object.get_mut(field).and_then(Value::as_object_mut) {
            values.values_mut().for_each(|v| *v = Value::String(MASK.into()));
        }
    }
    // It repeats the values.
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        && let Some(last) = annotations.get_mut("kubectl.kubernetes.io/last-applied-configuration")
    {
        *last = Value::String(MASK.into());
    }
}

pub async fn get_resource(state: Arc<State>, _: Caller, q: ApplicationResourceRequest) -> Result<ApplicationResourceResponse, ApiError> {
    let (app, node) = node(&state, &q).await?;
    let mut object = state.live.get(&app, &live_ref(&node, &q.version)).await.map_err(|e| e.context("error getting resource"))?;
    mask(&mut object);
    Ok(ApplicationResourceResponse { manifest: object.to_string() })
}

pub async fn patch_resource(
    state: Arc<State>,
    caller: Caller,
    q: ApplicationResourcePatchRequest,
) -> Result<ApplicationResourceResponse, ApiError> {
    let request = ApplicationResourceRequest {
        name: q.name,
        namespace: q.namespace,
        resource_name: q.resource_name,
        version: q.version,
        group: q.group,
        kind: q.kind,
        app_namespace: q.app_namespace,
        project: q.project,
    };
    let (app, node) = node(&state, &request).await?;
    let object = live_ref(&node, &request.version);
    let mut patched = state.live.patch(&app, &object, &q.patch, &q.patch_type).await.map_err(|e| match object.kind.as_str() {
        // The reason may repeat values.
        "Secret" => ApiError::plain(format!("failed to patch Secret {}/{}", object.namespace, object.name)),
        _ => e.context("error patching resource"),
    })?;
    mask(&mut patched);
    let action = format!("patched resource {}/{} '{}'", object.group, object.kind, object.name);
    audit::app(&state, &caller, &app, audit::RESOURCE_UPDATED, &action).await;
    Ok(ApplicationResourceResponse { manifest: patched.to_string() })
}

pub async fn delete_resource(
    state: Arc<State>,
    caller: Caller,
    q: ApplicationResourceDeleteRequest,
) -> Result<ApplicationResponse, ApiError> {
    let how = match (q.orphan.unwrap_or(false), q.force.unwrap_or(false)) {
        (true, _) => Propagation::Orphan,
        (_, true) => Propagation::Force,
        _ => Propagation::Foreground,
    };
    let request = ApplicationResourceRequest {
        name: q.name,
        namespace: q.namespace,
        resource_name: q.resource_name,
        version: q.version,
        group: q.group,
        kind: q.kind,
        app_namespace: q.app_namespace,
        project: q.project,
    };
    let (app, node) = node(&state, &request).await?;
    let object = live_ref(&node, "");
    state.live.delete(&app, &object, how).await.map_err(|e| e.context("error deleting resource"))?;
    let action = format!("deleted resource {}/{} '{}'", object.group, object.kind, object.name);
    audit::app(&state, &caller, &app, audit::RESOURCE_DELETED, &action).await;
    Ok(ApplicationResponse {})
}

pub async fn resource_links(state: Arc<State>, _: Caller, q: ApplicationResourceRequest) -> Result<LinksResponse, ApiError> {
    node(&state, &q).await?;
    Ok(LinksResponse::default())
}

/// Events of the Application itself, or of one resource in its tree.
pub async fn events(state: Arc<State>, _: Caller, q: ApplicationResourceEventsQuery) -> Result<EventList, ApiError> {
    let (app, _) = find(&state, q.app_namespace.as_deref(), &q.name, q.project.as_deref()).await?;
    let (name, uid) = (q.resource_name.as_deref().unwrap_or_default(), q.resource_uid.as_deref().unwrap_or_default());
    let selector = |namespace: &str, name: &str, uid: &str| {
        format!("involvedObject.name={name},involvedObject.namespace={namespace},involvedObject.uid={uid}")
    };
    if name.is_empty() && uid.is_empty() {
        let m = &app.metadata;
        return Ok(state.store.events(&m.namespace, &selector(&m.namespace, &m.name, &m.uid)).await?);
    }
    let namespace = q.resource_namespace.as_deref().unwrap_or_default();
    let tree = tree_of(&state, &app).await.map_err(|e| e.context("error getting app resources"))?;
    let part = tree.nodes.iter().chain(&tree.orphaned_nodes).any(|n| {
        let r = &n.resource_ref;
        r.uid == uid && r.name == name && r.namespace == namespace
    });
    if !part {
        return Err(ApiError::invalid(format!("{name} not found as part of application {}", q.name)));
    }
    state.live.events(&app, namespace, &selector(namespace, name, uid)).await.map_err(|e| e.context("error listing resource events"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_show_no_values() {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "c2VjcmV0"}, "stringData": {"b": "secret"},
            "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{secret}", "x": "y"}}});
        mask(&mut secret);
        assert!(!secret.to_string().to_lowercase().contains("c2vjcmv0") && !secret.to_string().contains("{secret}"));
        assert_eq!(secret["metadata"]["annotations"]["x"], "y");
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        mask(&mut map);
        assert_eq!(map["data"]["a"], "b");
    }
}
