//! The state of an Application's cluster: managed resources, the tree, single objects and their
//! events.

use super::{audit, blocking_conditions, masked, named::found, read::refresh};
use crate::{
    ApiError, Code,
    access::{
        Action, Authorized, DeleteResource, Followed, Get, Guard, UpdateResource, Verb, find_to,
    },
    ports::{LiveRef, Propagation},
    services::links,
    state::State,
};
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use tiphys_api::{
    AppProject, Application,
    resource::{ApplicationTree, ResourceDiff, ResourceNode, ResourceRef},
    rpc::{
        application::{
            ApplicationResourceDeleteRequest, ApplicationResourceEventsQuery,
            ApplicationResourcePatchRequest, ApplicationResourceRequest,
            ApplicationResourceResponse, ApplicationResponse, LinksResponse,
            ManagedResourcesResponse, ResourcesQuery,
        },
        events::EventList,
    },
};
use tiphys_apimachinery::Object;
use tiphys_engine::{
    diff, permit,
    spec::{self, Destination},
    types::{CompareRules, ProjectRules, Tracking},
};

/// Returns the state published by the controller; if there is none, requests a comparison or
/// returns the reason why there cannot be one.
macro_rules! published {
    ($state:expr, $app:expr, $get:ident, $what:literal) => {{
        match $state.reach.live($app).$get().await {
            Err(e) => Err(e.context($what)),
            Ok(Some(found)) => Ok(found),
            Ok(None) => match first_comparison($state, $app).await {
                Err(e) => Err(e.context($what)),
                Ok(()) => {
                    let found = $state.reach.live($app).$get().await;
                    let missing = || ApiError::plain("cache: key is missing");
                    found
                        .and_then(|found| found.ok_or_else(missing))
                        .map_err(|e| e.context($what))
                }
            },
        }
    }};
}

async fn first_comparison<A>(
    state: &State,
    app: &Authorized<Application, A>,
) -> Result<(), ApiError> {
    let why = blocking_conditions(app);
    if !why.is_empty() {
        return Err(ApiError::plain(why));
    }
    refresh(state, app, "normal")
        .await
        .map_err(|e| e.context("error getting application by query"))?;
    Ok(())
}

/// The tree filtered by the project's current permissions: the controller may not have reconciled
/// the Application since the project changed.
pub(super) async fn tree_of<A>(
    state: &State,
    app: &Authorized<Application, A>,
    project: &AppProject,
) -> Result<Arc<ApplicationTree>, ApiError> {
    let tree: Arc<ApplicationTree> =
        published!(state, app, tree, "error getting cached app resource tree")?;
    Ok(permitted(tree, &permissions(state, app, project)))
}

/// What a project permits an Application to see and change in its cluster.
pub(crate) fn permissions<A>(
    state: &State,
    app: &Authorized<Application, A>,
    project: &AppProject,
) -> CompareRules {
    let destination = state.reach.live(app).destination().ok();
    let of_cluster = |d: &Destination| spec::project_rules_for(project, d);
    // Nothing is permitted on an unknown cluster.
    let nowhere = || ProjectRules {
        cluster_permitted: false,
        ..spec::project_rules(project)
    };
    let project = destination.as_ref().map_or_else(nowhere, of_cluster);
    let Destination { server, name, .. } = destination.unwrap_or_default();
    CompareRules {
        project,
        dest_name: name,
        ..CompareRules::new(
            Tracking::annotation(""),
            "",
            "",
            &server,
            &app.spec.destination.namespace,
        )
    }
}

fn may_see(rules: &CompareRules, r: &ResourceRef) -> bool {
    permit::resource(rules, &r.group, &r.kind, &r.namespace, &r.name)
}

/// The tree without live objects that are not permitted, and without objects whose parents are all
/// left out.
fn permitted(tree: Arc<ApplicationTree>, rules: &CompareRules) -> Arc<ApplicationTree> {
    let all = || {
        tree.nodes
            .iter()
            .chain(&tree.orphaned_nodes)
            .map(|node| (node, node.resource_ref.uid.as_str()))
    };
    let hidden = |(node, uid): &(&ResourceNode, &str)| {
        !uid.is_empty() && !may_see(rules, &node.resource_ref)
    };
    let mut gone: HashSet<&str> = all().filter(hidden).map(|(_, uid)| uid).collect();
    if gone.is_empty() {
        return tree;
    }
    // Each pass descends one level; trees are shallow.
    loop {
        let orphaned = |node: &ResourceNode| {
            !node.parent_refs.is_empty()
                && node
                    .parent_refs
                    .iter()
                    .all(|p| gone.contains(p.uid.as_str()))
        };
        let below: Vec<&str> = all()
            .filter(|(node, uid)| !gone.contains(uid) && orphaned(node))
            .map(|(_, uid)| uid)
            .collect();
        if below.is_empty() {
            break;
        }
        gone.extend(below);
    }
    let kept = |nodes: &[ResourceNode]| {
        nodes
            .iter()
            .filter(|n| !gone.contains(n.resource_ref.uid.as_str()))
            .cloned()
            .collect()
    };
    let (nodes, orphaned_nodes) = (kept(&tree.nodes), kept(&tree.orphaned_nodes));
    Arc::new(ApplicationTree {
        nodes,
        orphaned_nodes,
        ..tree.as_ref().clone()
    })
}

pub async fn managed_resources(
    state: Arc<State>,
    guard: Guard,
    q: ResourcesQuery,
) -> Result<ManagedResourcesResponse, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let all: Arc<Vec<ResourceDiff>> = published!(
        &state,
        &app,
        managed_resources,
        "error getting cached app managed resources"
    )?;
    let rules = permissions(&state, &app, &project);
    let is_there = |r: &ResourceDiff| !matches!(r.live_state.as_str(), "" | "null");
    let hidden = |r: &ResourceDiff| {
        is_there(r) && !permit::resource(&rules, &r.group, &r.kind, &r.namespace, &r.name)
    };
    let wanted = |asked: &Option<String>, have: &str| {
        asked.as_deref().is_none_or(|a| a.is_empty() || a == have)
    };
    let matching = all.iter().filter(|r| {
        !r.hook
            && !hidden(r)
            && wanted(&q.name, &r.name)
            && wanted(&q.namespace, &r.namespace)
            && wanted(&q.group, &r.group)
            && wanted(&q.kind, &r.kind)
    });
    Ok(ManagedResourcesResponse {
        items: matching.cloned().collect(),
    })
}

pub async fn resource_tree(
    state: Arc<State>,
    guard: Guard,
    q: ResourcesQuery,
) -> Result<ApplicationTree, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    Ok(tree_of(&state, &app, &project).await?.as_ref().clone())
}

pub async fn watch_resource_tree(
    state: Arc<State>,
    guard: Guard,
    q: ResourcesQuery,
) -> Result<BoxStream<'static, Result<ApplicationTree, ApiError>>, ApiError> {
    let reach = state.reach.clone();
    let followed = Followed::new(reach, guard, q.app_namespace, q.application_name, q.project);
    let (app, _) = followed.find().await?;
    let trees = state.reach.live(&app).watch_tree();
    let start = Some((state, followed, trees));
    let shown = futures::stream::unfold(start, |following| async {
        let (state, followed, mut trees) = following?;
        let tree = match trees.next().await? {
            Ok(tree) => tree,
            Err(e) => return Some((Err(e), None)),
        };
        // Permissions, and the Application's project, may change during the watch.
        Some(match followed.again().await {
            Ok((app, project)) => {
                let rules = permissions(&state, &app, &project);
                let tree = permitted(tree, &rules).as_ref().clone();
                (Ok(tree), Some((state, followed, trees)))
            }
            Err(refused) => (Err(refused), None),
        })
    });
    Ok(shown.boxed())
}

/// The node of the Application's tree that a request refers to; objects outside the tree cannot be
/// reached.
pub(super) async fn node<A: Verb>(
    state: &State,
    guard: &Guard,
    path: &str,
    q: &ApplicationResourceRequest,
) -> Result<(Authorized<Application, A>, AppProject, ResourceNode), ApiError> {
    let at = (q.app_namespace.as_deref(), q.name.as_str());
    let find = |path| find_to::<A>(&state.reach, guard, path, at, q.project.as_deref());
    let changes = matches!(A::ACTION, Action::UpdateResource | Action::DeleteResource);
    let inherits = changes && state.settings.fresh().await?.resources_inherit()?;
    // First whether the whole Application may be changed, where that is enough. If not, the audit
    // record of a permitted call has this refusal, too: both questions were asked, as Argo CD asks
    // them, and the rules for both are what explains the answer.
    let found = match inherits {
        true => Some(find("").await),
        false => None,
    };
    let (app, project) = match found {
        Some(Err(e)) if e.code == Code::PermissionDenied => find(path).await?,
        Some(found) => found?,
        None => find(path).await?,
    };
    let tree = tree_of(state, &app, &project)
        .await
        .map_err(|e| e.context("error getting app resources"))?;
    let (group, namespace) = (
        q.group.as_deref().unwrap_or_default(),
        q.namespace.as_deref().unwrap_or_default(),
    );
    let found = tree.nodes.iter().chain(&tree.orphaned_nodes).find(|n| {
        let r = &n.resource_ref;
        r.group == group
            && r.kind == q.kind
            && r.namespace == namespace
            && r.name == q.resource_name
            && !r.uid.is_empty()
    });
    let absent = || {
        ApiError::invalid(format!(
            "{} {group} {} not found as part of application {}",
            q.kind, q.resource_name, q.name
        ))
    };
    let node = found.cloned().ok_or_else(absent)?;
    Ok((app, project, node))
}

/// The resource's path in RBAC actions: `<group>/<kind>/<namespace>/<name>`.
fn path(q: &ApplicationResourceRequest) -> String {
    let (group, namespace) = (
        q.group.as_deref().unwrap_or_default(),
        q.namespace.as_deref().unwrap_or_default(),
    );
    format!("{group}/{}/{namespace}/{}", q.kind, q.resource_name)
}

pub(super) fn live_ref(node: &ResourceNode, version: &str) -> LiveRef {
    let r = &node.resource_ref;
    LiveRef {
        group: r.group.clone(),
        version: if version.is_empty() {
            r.version.clone()
        } else {
            version.to_owned()
        },
        kind: r.kind.clone(),
        namespace: r.namespace.clone(),
        name: r.name.clone(),
    }
}

/// The JSON text of an object with secret values masked.
pub(super) async fn shown(state: &State, object: Value) -> Result<String, ApiError> {
    Ok(concealed(state, object).await?.to_string())
}

/// Masks the object's secret values.
async fn concealed(state: &State, object: Value) -> Result<Value, ApiError> {
    let settings = state.settings.fresh().await?;
    let hidden = diff::hidden_annotations(settings.value("resource.sensitive.mask.annotations"));
    let mut object = Object::from_value(object).map_err(|e| ApiError::internal(e.to_string()))?;
    diff::shown(&mut object, &hidden);
    Ok(Value::Object(object.0))
}

pub async fn get_resource(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationResourceRequest,
) -> Result<ApplicationResourceResponse, ApiError> {
    let (app, _, node) = node::<Get>(&state, &guard, "", &q).await?;
    let object = state
        .reach
        .live(&app)
        .get(&live_ref(&node, &q.version))
        .await
        .map_err(|e| e.within("error getting resource"))?;
    Ok(ApplicationResourceResponse {
        manifest: shown(&state, object).await?,
    })
}

pub async fn patch_resource(
    state: Arc<State>,
    guard: Guard,
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
    let (app, _, node) = node::<UpdateResource>(&state, &guard, &path(&request), &request).await?;
    let object = live_ref(&node, &request.version);
    masked::refuse(&object, &q.patch).await?;
    let patched = state
        .reach
        .live(&app)
        .patch(&object, &q.patch, &q.patch_type)
        .await
        .map_err(|e| match object.kind.as_str() {
            // The error may contain the Secret's values.
            "Secret" => ApiError::plain(format!(
                "failed to patch Secret {}/{}",
                object.namespace, object.name
            )),
            _ => e.within("error patching resource"),
        })?;
    let action = format!(
        "patched resource {}/{} '{}'",
        object.group, object.kind, object.name
    );
    audit::app(
        &state,
        guard.caller(),
        &app,
        audit::RESOURCE_UPDATED,
        &action,
    )
    .await;
    Ok(ApplicationResourceResponse {
        manifest: shown(&state, patched).await?,
    })
}

pub async fn delete_resource(
    state: Arc<State>,
    guard: Guard,
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
    let (app, _, node) = node::<DeleteResource>(&state, &guard, &path(&request), &request).await?;
    let object = live_ref(&node, "");
    state
        .reach
        .live(&app)
        .delete(&object, how)
        .await
        .map_err(|e| e.within("error deleting resource"))?;
    let action = format!(
        "deleted resource {}/{} '{}'",
        object.group, object.kind, object.name
    );
    audit::app(
        &state,
        guard.caller(),
        &app,
        audit::RESOURCE_DELETED,
        &action,
    )
    .await;
    Ok(ApplicationResponse {})
}

pub async fn resource_links(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationResourceRequest,
) -> Result<LinksResponse, ApiError> {
    let (app, project, node) = node::<Get>(&state, &guard, "", &q).await?;
    let settings = state.settings.fresh().await?;
    if settings.value("resource.links").is_empty() {
        return Ok(LinksResponse::default());
    }
    let object = state
        .reach
        .live(&app)
        .get(&live_ref(&node, &q.version))
        .await
        .map_err(|e| e.context("error getting resource"))?;
    let object = concealed(&state, object).await?;
    let cluster = state.reach.live(&app).destination().ok();
    links::of(
        &settings,
        "resource.links",
        links::known(Some(&app), Some(&project), cluster, Some(object)),
    )
    .await
}

/// Events of the Application itself, or of one resource in its tree.
pub async fn events(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationResourceEventsQuery,
) -> Result<EventList, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let (name, uid) = (
        q.resource_name.as_deref().unwrap_or_default(),
        q.resource_uid.as_deref().unwrap_or_default(),
    );
    let selector = |namespace: &str, name: &str, uid: &str| {
        format!(
            "involvedObject.name={name},involvedObject.namespace={namespace},involvedObject.uid={uid}"
        )
    };
    if name.is_empty() && uid.is_empty() {
        let m = &app.metadata;
        let selector = selector(&m.namespace, &m.name, &m.uid);
        return Ok(state.reach.events_of_app(&app, &selector).await?);
    }
    let namespace = q.resource_namespace.as_deref().unwrap_or_default();
    let tree = tree_of(&state, &app, &project)
        .await
        .map_err(|e| e.context("error getting app resources"))?;
    let part = tree.nodes.iter().chain(&tree.orphaned_nodes).any(|n| {
        let r = &n.resource_ref;
        // What was not found has none, and neither have its events.
        !uid.is_empty() && r.uid == uid && r.name == name && r.namespace == namespace
    });
    if !part {
        return Err(ApiError::invalid(format!(
            "{name} not found as part of application {}",
            q.name
        )));
    }
    state
        .reach
        .live(&app)
        .events(namespace, &selector(namespace, name, uid))
        .await
        .map_err(|e| e.context("error listing resource events"))
}
