//! From a generated Application and the existing one to a write. Main function: [`change`].

use super::{Change, Settings};
use crate::ignored::Ignored;
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
    spec::normalize(&mut generated.spec);
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
    spec::normalize(&mut before.spec);
    let mut after = live.clone();
    preserve(set, live, &mut generated, settings);
    after.spec = generated.spec;
    if generated.operation.is_some() {
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
    let json = |app: &Application| {
        let mut json = serde_json::to_value(app).unwrap_or_default();
        if let Some(fields) = json.as_object_mut() {
            fields.retain(|key, _| matches!(key.as_str(), "metadata" | "spec" | "operation"));
        }
        json
    };
    let (old, mut new) = (
        json(&ignored.strip(&before)?),
        json(&ignored.strip(&after)?),
    );
    // An operation is never compared: it is new, or it is left alone.
    if let Some(operation) = json(&after).get("operation") {
        new["operation"] = operation.clone();
    }
    let patch = json_merge::create_two_way(&old, &new).map_err(|e| e.to_string())?;
    if patch.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(None);
    }
    let name = live.metadata.name.clone();
    let whole = serde_json::to_value(live).unwrap_or_default();
    let patched = json_merge::apply(&whole, &patch).map_err(|e| e.to_string())?;
    let after = serde_json::from_value(patched).map_err(|e| e.to_string())?;
    Ok(Some(Change::Update {
        name,
        patch,
        after: Box::new(after),
    }))
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
