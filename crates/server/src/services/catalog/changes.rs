//! What an install would change in its cluster: each object beside the one that is there, by the
//! API server's dry run. Main function: [`changes`].
//!
//! Live objects are read with the control plane's rights. So they are read for Applications that
//! the caller may see, and only those that the project permits: the page of the Application would
//! show the same.

use crate::{
    ApiError, Code,
    access::{Authorized, Get},
    ports::{DiffPair, LiveRef},
    services::application::{live::permissions, server_side_diff::item},
    state::State,
};
use futures::future::join_all;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::{AppProject, Application, resource::ResourceDiff};
use tiphys_apimachinery::Object;
use tiphys_catalog::release::{self, Manifests};
use tiphys_engine::{
    diff, permit, track,
    types::{Diff, Tracking},
};
use tiphys_rpc::heavy;

/// Most objects that are compared.
const MOST: usize = 500;
/// Objects that are read at the same time.
const AT_ONCE: usize = 16;
/// What only API servers write, which says nothing about an install.
const OF_THE_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

pub(super) struct Changes {
    /// Unified; values of Secrets are hidden.
    pub difference: String,
    /// What is not compared, and why.
    pub notes: Vec<String>,
}

/// An object that would be applied.
struct Target {
    object: Object,
    place: LiveRef,
    /// Whether the cluster has its kind: else it cannot be there.
    is_known: bool,
}

impl Target {
    /// Whether there can be a live object. Without a name all objects of the kind would be read.
    fn can_be_there(&self) -> bool {
        self.is_known && !self.place.name.is_empty()
    }

    fn called(&self) -> String {
        called(&self.object)
    }
}

fn called(object: &Object) -> String {
    let namespace = match object.namespace() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    format!("{} {namespace}{}", object.kind(), object.name())
}

fn place(object: &Object) -> LiveRef {
    let gvk = object.gvk();
    LiveRef {
        group: gvk.group,
        version: gvk.version,
        kind: gvk.kind,
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
    }
}

fn internal(e: &impl ToString) -> ApiError {
    ApiError::internal(e.to_string())
}

/// # Errors
/// There are too many objects, or the cluster does not answer.
pub(super) async fn changes(
    state: &State,
    (app, project): (&Authorized<Application, Get>, &AppProject),
    objects: Vec<Value>,
) -> Result<Changes, ApiError> {
    let count = objects.len();
    if count > MOST {
        return Err(ApiError::invalid(format!(
            "{count} objects are more than {MOST}"
        )));
    }
    let mut notes = Vec::new();
    let settings = state.settings.fresh().await?;
    let tracking =
        tiphys_cluster::Settings::of_config(settings.config.clone()).tracking(&state.instance(app));
    let targets = located(state, app, objects, &mut notes).await?;
    let targets = permitted(state, (app, project), targets, &mut notes);
    let pairs = beside(state, (app, &tracking), targets, &mut notes).await?;
    let found = state.reach.live(app).server_side_diff(pairs).await?;
    let hidden = diff::hidden_annotations(settings.value("resource.sensitive.mask.annotations"));
    let difference = heavy::run(move || shown(&found, &hidden)).await?;
    Ok(Changes { difference, notes })
}

/// The objects with the namespaces that they would be in.
async fn located(
    state: &State,
    app: &Authorized<Application, Get>,
    objects: Vec<Value>,
    notes: &mut Vec<String>,
) -> Result<Vec<Target>, ApiError> {
    let live = state.reach.live(app);
    let mut scopes: BTreeMap<(String, String), Option<bool>> = BTreeMap::new();
    let mut targets = Vec::with_capacity(objects.len());
    for object in objects {
        let mut object = Object::from_value(object).map_err(|e| internal(&e))?;
        let kind = (object.api_version().to_owned(), object.kind().to_owned());
        let scope = match scopes.get(&kind) {
            Some(scope) => *scope,
            None => {
                let scope = match live.is_namespaced(&place(&object)).await {
                    Ok(is_namespaced) => Some(is_namespaced),
                    Err(e) if e.code == Code::NotFound => None,
                    Err(e) => return Err(e),
                };
                scopes.insert(kind, scope);
                scope
            }
        };
        match scope {
            Some(true) if object.namespace().is_empty() => {
                object.set_namespace(&app.spec.destination.namespace);
            }
            Some(false) => object.set_namespace(""),
            Some(true) => {}
            None => notes.push(format!(
                "{}: the cluster does not have the kind yet",
                called(&object)
            )),
        }
        if object.name().is_empty() {
            notes.push(format!(
                "{}: only the cluster gives it a name, so it is shown as new",
                called(&object)
            ));
        }
        targets.push(Target {
            place: place(&object),
            is_known: scope.is_some(),
            object,
        });
    }
    Ok(targets)
}

/// Those that the project permits.
fn permitted(
    state: &State,
    (app, project): (&Authorized<Application, Get>, &AppProject),
    mut targets: Vec<Target>,
    notes: &mut Vec<String>,
) -> Vec<Target> {
    let rules = permissions(state, app, project);
    targets.retain(|target| {
        let of = &target.place;
        let is_permitted = !target.is_known
            || permit::resource(&rules, &of.group, &of.kind, &of.namespace, &of.name);
        if !is_permitted {
            notes.push(format!(
                "{} is not permitted in project '{}'",
                target.called(),
                project.metadata.name
            ));
        }
        is_permitted
    });
    targets
}

/// The objects as they would be tracked, beside those that are there.
async fn beside(
    state: &State,
    (app, tracking): (&Authorized<Application, Get>, &Tracking),
    targets: Vec<Target>,
    notes: &mut Vec<String>,
) -> Result<Vec<DiffPair>, ApiError> {
    let live = state.reach.live(app);
    let mut found = Vec::with_capacity(targets.len());
    let (asked, new): (Vec<_>, Vec<_>) = targets.into_iter().partition(Target::can_be_there);
    for some in asked.chunks(AT_ONCE) {
        let answers = some.iter().map(|target| live.get(&target.place));
        found.extend(join_all(answers).await.into_iter().map(Some));
    }
    found.extend(new.iter().map(|_| None));
    let targets = asked.into_iter().chain(new);
    let mut pairs = Vec::with_capacity(found.len());
    for (mut target, answer) in targets.zip(found) {
        let live = match answer {
            None => None,
            Some(Ok(found)) => Some(Object::from_value(found).map_err(|e| internal(&e))?),
            Some(Err(e)) if e.code == Code::NotFound => None,
            Some(Err(e)) if e.code == Code::PermissionDenied => {
                notes.push(format!("{} cannot be compared: {e}", target.called()));
                continue;
            }
            Some(Err(e)) => return Err(e),
        };
        notes.extend(live.as_ref().and_then(|live| other(live, tracking)));
        track::set(
            &mut target.object,
            tracking,
            &app.spec.destination.namespace,
        );
        pairs.push(DiffPair {
            target: Some(target.object),
            live,
        });
    }
    Ok(pairs)
}

/// That an object is another Application's.
fn other(live: &Object, tracking: &Tracking) -> Option<String> {
    let owner = track::owner(live, tracking)?;
    let is_other = owner != tracking.app_name;
    is_other.then(|| format!("{} belongs to Application '{owner}'", called(live)))
}

fn shown(found: &[Diff], hidden: &BTreeSet<String>) -> Result<String, ApiError> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for difference in found {
        if !difference.modified && !difference.normalized_live.is_null() {
            continue;
        }
        let item = item(ResourceDiff::default(), difference, hidden)?;
        before.extend(readable(&item.live_state)?);
        after.extend(readable(&item.target_state)?);
    }
    let (before, after) = (Manifests::of(before), Manifests::of(after));
    Ok(release::difference(&before, &after))
}

/// What users enter of an object; `None`: there is none.
fn readable(text: &str) -> Result<Option<Value>, ApiError> {
    let mut object: Value = serde_json::from_str(text).map_err(|e| internal(&e))?;
    let Some(fields) = object.as_object_mut() else {
        return Ok(None);
    };
    fields.remove("status");
    let metadata = fields.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.retain(|field, _| !OF_THE_SERVER.contains(&field.as_str()));
    }
    Ok(Some(object))
}
