//! From a generated Application and the existing one to a write. Main function: [`change`].

use super::{Change, Settings};
use crate::ignored::Ignored;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::constants::{
    API_VERSION, HYDRATE, OF_CONTROLLER, POST_DELETE_FINALIZER, PRE_DELETE_FINALIZER, REFRESH,
};
use tiphys_api::meta::OwnerReference;
use tiphys_apimachinery::patch::json_merge;
use tiphys_engine::spec;

const NOTIFIED: &str = "notified.notifications.argoproj.io";
const KIND: &str = "ApplicationSet";

/// The reference to the controller of an Application.
pub fn owner_of(app: &Application) -> Option<&OwnerReference> {
    let owners = &app.metadata.owner_references;
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// Whether an Application belongs to a set. Both must be of one namespace.
pub fn is_owned(app: &Application, set: &ApplicationSet) -> bool {
    app.metadata.namespace == set.metadata.namespace
        && owner_of(app).is_some_and(|owner| {
            owner.api_version == API_VERSION
                && owner.kind == KIND
                && owner.name == set.metadata.name
        })
}

/// The write that a generated Application needs.
///
/// # Errors
/// The message, if the existing one belongs to another controller or cannot be compared.
pub(super) fn change(
    set: &ApplicationSet,
    mut generated: Application,
    live: Option<&Application>,
    ignored: &Ignored,
    settings: &Settings,
) -> Result<Option<Change>, String> {
    normalize(&mut generated);
    let Some(live) = live else {
        let mut app = Application {
            api_version: API_VERSION.into(),
            kind: "Application".into(),
            operation: generated.operation,
            ..Application::default()
        };
        app.spec = generated.spec;
        app.metadata.name.clone_from(&generated.metadata.name);
        app.metadata.namespace.clone_from(&set.metadata.namespace);
        app.metadata.labels.clone_from(&generated.metadata.labels);
        app.metadata
            .annotations
            .clone_from(&generated.metadata.annotations);
        app.metadata
            .finalizers
            .clone_from(&generated.metadata.finalizers);
        set_owner(&mut app, set)?;
        return Ok(Some(Change::Create(Box::new(app))));
    };
    let mut before = live.clone();
    normalize(&mut before);
    let mut after = live.clone();
    preserve(set, live, &mut generated, settings);
    after.spec = generated.spec;
    let starts = generated.operation.is_some();
    if starts {
        after.operation = generated.operation;
    }
    after.metadata.labels.clone_from(&generated.metadata.labels);
    after
        .metadata
        .annotations
        .clone_from(&generated.metadata.annotations);
    after
        .metadata
        .finalizers
        .clone_from(&generated.metadata.finalizers);
    set_owner(&mut after, set)?;
    if before == after && ignored.fault.is_none() {
        return Ok(None);
    }
    let (old, new) = (ignored.strip(&before)?, ignored.strip(&after)?);
    let mut patch = Map::new();
    add_difference(&mut patch, "metadata", &old.metadata, &new.metadata)?;
    add_difference(&mut patch, "spec", &old.spec, &new.spec)?;
    // An operation is never compared: it is new, or it is left alone.
    if starts {
        add_difference(&mut patch, "operation", &old.operation, &after.operation)?;
    }
    if patch.is_empty() {
        return Ok(None);
    }
    Ok(Some(Change::Update {
        name: live.metadata.name.clone(),
        after: Box::new(patched(live, &patch)?),
        patch: Value::Object(patch),
    }))
}

/// Most specs are in normal form, and stay shared with the others of their Application then.
fn normalize(app: &mut Application) {
    if !spec::is_normal(&app.spec) {
        spec::normalize(&mut app.spec);
    }
}

/// Adds what turns one part of an Application into another to a merge patch.
fn add_difference<T: Serialize + PartialEq>(
    patch: &mut Map<String, Value>,
    name: &str,
    old: &T,
    new: &T,
) -> Result<(), String> {
    if old == new {
        return Ok(());
    }
    let json = |part: &T| serde_json::to_value(part).map_err(|e| e.to_string());
    let (old, new) = (json(old)?, json(new)?);
    if old.is_null() {
        patch.insert(name.to_owned(), new);
        return Ok(());
    }
    let part = json_merge::create_two_way(&old, &new).map_err(|e| e.to_string())?;
    if part.as_object().is_some_and(|fields| !fields.is_empty()) {
        patch.insert(name.to_owned(), part);
    }
    Ok(())
}

/// An Application after a merge patch; it shares the parts that do not change.
fn patched(live: &Application, patch: &Map<String, Value>) -> Result<Application, String> {
    let mut after = live.clone();
    if let Some(patch) = patch.get("metadata") {
        after.metadata = merged(&live.metadata, patch)?;
    }
    if let Some(patch) = patch.get("spec") {
        after.spec = merged(&live.spec, patch)?;
    }
    if let Some(patch) = patch.get("operation") {
        after.operation = merged(&live.operation, patch)?;
    }
    Ok(after)
}

fn merged<T: Serialize + DeserializeOwned>(live: &T, patch: &Value) -> Result<T, String> {
    let mut json = serde_json::to_value(live).map_err(|e| e.to_string())?;
    json_merge::apply_in_place(&mut json, patch).map_err(|e| e.to_string())?;
    serde_json::from_value(json).map_err(|e| e.to_string())
}

/// Takes over from the existing Application what others write.
fn preserve(
    set: &ApplicationSet,
    live: &Application,
    generated: &mut Application,
    settings: &Settings,
) {
    let own = set.spec.preserved_fields.clone().unwrap_or_default();
    let others = [NOTIFIED, REFRESH, HYDRATE];
    let others = others.into_iter().chain(OF_CONTROLLER);
    let named = own
        .annotations
        .iter()
        .chain(&settings.preserved_annotations);
    for key in named.map(String::as_str).chain(others) {
        if let Some(value) = live.metadata.annotations.get(key) {
            let annotations = &mut generated.metadata.annotations;
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    for key in own.labels.iter().chain(&settings.preserved_labels) {
        if let Some(value) = live.metadata.labels.get(key) {
            generated.metadata.labels.insert(key.clone(), value.clone());
        }
    }
    for prefix in [PRE_DELETE_FINALIZER, POST_DELETE_FINALIZER] {
        let kept = live
            .metadata
            .finalizers
            .iter()
            .filter(|f| f.starts_with(prefix));
        for finalizer in kept {
            let finalizers = &mut generated.metadata.finalizers;
            // The template may have it too: twice would be another change at every reconcile.
            if !finalizers.contains(finalizer) {
                finalizers.push(finalizer.clone());
            }
        }
    }
}

fn set_owner(app: &mut Application, set: &ApplicationSet) -> Result<(), String> {
    let own = OwnerReference {
        api_version: API_VERSION.into(),
        kind: KIND.into(),
        name: set.metadata.name.clone(),
        uid: set.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let group = |owner: &OwnerReference| {
        let api = &owner.api_version;
        api.split_once('/')
            .map_or("", |(group, _)| group)
            .to_owned()
    };
    let is_own = |owner: &OwnerReference| {
        owner.kind == own.kind && owner.name == own.name && group(owner) == group(&own)
    };
    if let Some(other) = owner_of(app).filter(|owner| !is_own(owner)) {
        return Err(format!(
            "Object {}/{} is already owned by another {} controller {}",
            app.metadata.namespace, app.metadata.name, other.kind, other.name
        ));
    }
    let owners = &mut app.metadata.owner_references;
    match owners.iter_mut().find(|owner| is_own(owner)) {
        Some(owner) => *owner = own,
        None => owners.push(own),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_api::application_set::ApplicationSetResourceIgnoreDifferences;

    fn app(revision: &str, more: Value) -> Application {
        let mut app = json!({
            "metadata": {"name": "a", "namespace": "argocd"},
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": "https://git.example.test/a", "path": "a",
                    "targetRevision": revision,
                },
                "destination": {"server": "https://kubernetes.default.svc"},
            },
        });
        json_merge::apply_in_place(&mut app, &more).expect("maps");
        serde_json::from_value(app).expect("an Application")
    }

    #[test]
    fn an_update_leaves_alone_what_the_set_does_not_write() {
        let set = json!({"metadata": {"name": "set", "namespace": "argocd", "uid": "1"}});
        let set: ApplicationSet = serde_json::from_value(set).expect("a set");
        let owner = json!({
            "apiVersion": API_VERSION, "kind": KIND, "name": "set", "uid": "1",
            "controller": true, "blockOwnerDeletion": true,
        });
        let live = json!({
            "metadata": {"uid": "2", "ownerReferences": [owner]},
            "operation": {"sync": {"revision": "v1"}},
            "status": {"sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"}},
        });
        let live = app("v1", live);
        let rules = json!([{"jsonPointers": ["/operation"]}]);
        let rules: Vec<ApplicationSetResourceIgnoreDifferences> =
            serde_json::from_value(rules).expect("rules");
        for ignored in [Ignored::new(&[]), Ignored::new(&rules)] {
            let update = |generated: Application| {
                let settings = Settings::default();
                let change = change(&set, generated, Some(&live), &ignored, &settings);
                match change.expect("it can be compared") {
                    Some(Change::Update { patch, after, .. }) => (patch, after),
                    other => panic!("{other:?}"),
                }
            };
            let (patch, after) = update(app("v2", json!({})));
            let spec = json!({"source": {"targetRevision": "v2"}});
            assert_eq!(patch, json!({"spec": spec}));
            assert_eq!(after.operation, live.operation);
            assert!(std::ptr::eq(&*after.metadata, &*live.metadata));
            assert!(std::ptr::eq(&*after.status, &*live.status));
            assert_eq!(after.spec, app("v2", json!({})).spec);
            // An operation of the set's own is written.
            let sync = json!({"operation": {"sync": {"revision": "v2"}}});
            let (patch, after) = update(app("v2", sync.clone()));
            assert_eq!(patch["spec"], spec);
            assert_eq!(patch["operation"]["sync"]["revision"], "v2");
            assert_eq!(after.operation, app("v2", sync).operation);
        }
    }
}
