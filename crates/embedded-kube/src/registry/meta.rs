//! The rules of `metadata` that hold for every kind. Functions only; they see one object at a time and no store.

use super::options::Part;
use super::{Registry, Stored};
use crate::catalog::Resource;
use crate::status::{Cause, Status};
use jiff::Timestamp;
use rand::Rng;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// Fields of `metadata` that clients cannot set.
const SYSTEM: [&str; 6] = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"];

/// As Kubernetes prints a time: whole seconds, UTC.
pub fn timestamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The object's namespace is that of the URL, and its type that of the resource.
pub fn check_scope(resource: &Resource, namespace: &str, object: &mut Object) -> Result<(), Status> {
    if object.api_version() != resource.api_version() || object.kind() != resource.kind {
        let (want, got) = (resource.gvk(), object.gvk());
        if object.api_version().is_empty() && object.kind().is_empty() {
            object.0.insert("apiVersion".into(), want.api_version().into());
            object.0.insert("kind".into(), want.kind.into());
        } else {
            return Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: the object provided is unrecognized (must be of type {}): \
                 the API version in the data ({}) does not match the expected API version ({})",
                resource.kind,
                resource.version,
                resource.kind,
                resource.kind,
                got.api_version(),
                want.api_version()
            )));
        }
    }
    if !object.metadata("namespace").is_none_or(|v| v.is_string() || v.is_null()) {
        return Err(Status::bad_request("metadata.namespace must be a string"));
    }
    if !object.namespace().is_empty() && object.namespace() != namespace {
        return Err(Status::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    object.set_namespace(namespace);
    Ok(())
}

/// A name ending for `generateName`, without letters that make words.
pub fn random_suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rng = rand::rng();
    (0..5).map(|_| char::from(LETTERS[rng.random_range(0..LETTERS.len())])).collect()
}

/// Fills what the server decides about a new object.
pub fn prepare_create(registry: &Registry, resource: &Resource, object: &mut Object) {
    let now = timestamp(registry.now());
    let generated = object.name().is_empty().then(|| {
        let base: String = object.generate_name().chars().take(58).collect();
        format!("{base}{}", random_suffix())
    });
    let metadata = object.metadata_mut();
    for field in SYSTEM {
        metadata.remove(field);
    }
    metadata.retain(|_, value| !value.is_null());
    drop_empty(metadata);
    if let Some(name) = generated {
        metadata.insert("name".into(), name.into());
    }
    metadata.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".into(), now.into());
    if resource.has_generation() {
        metadata.insert("generation".into(), 1.into());
    }
}

/// Empty maps and lists of `metadata` are not kept.
fn drop_empty(metadata: &mut serde_json::Map<String, Value>) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match metadata.get(field) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if empty {
            metadata.remove(field);
        }
    }
}

/// Optimistic locking: what the request says about revision and uid must be true.
pub fn check_lock(resource: &Resource, current: &Stored, object: &Object) -> Result<(), Status> {
    let version = object.resource_version();
    if !version.is_empty() && version.parse() != Ok(current.meta.revision) {
        if version.parse::<u64>().is_err() {
            let cause = Cause::invalid("metadata.resourceVersion", &version.into(), "must be an unsigned integer");
            return Err(Status::invalid(&resource.group, &resource.kind, object.name(), vec![cause]));
        }
        return Err(Status::modified(&resource.group, &resource.resource, object.name()));
    }
    if !object.uid().is_empty() && object.uid() != current.meta.uid {
        let why = format!("Precondition failed: UID in precondition: {}, UID in object meta: {}", object.uid(), current.meta.uid);
        return Err(Status::conflict(&resource.group, &resource.resource, object.name(), &why));
    }
    Ok(())
}

/// A patch may not make another object of it.
pub fn check_patched_identity(old: &Object, new: &mut Object) -> Result<(), Status> {
    if new.namespace().is_empty() {
        new.set_namespace(old.namespace());
    }
    for field in ["apiVersion", "kind"] {
        if let (false, Some(value)) = (new.0.contains_key(field), old.0.get(field)) {
            new.0.insert(field.into(), value.clone());
        }
    }
    if old.name() != new.name() {
        let (sent, asked) = (new.name(), old.name());
        return Err(Status::bad_request(format!("the name of the object ({sent}) does not match the name on the URL ({asked})")));
    }
    if old.namespace() != new.namespace() {
        return Err(Status::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
    if old.api_version() != new.api_version() || old.kind() != new.kind() {
        return Err(Status::bad_request(format!(
            "the API version in the data ({},{}) does not match the expected API version ({},{})",
            new.api_version(),
            new.kind(),
            old.api_version(),
            old.kind()
        )));
    }
    Ok(())
}

/// Takes over from `old` what the written part may not change.
pub fn prepare_update(resource: &Resource, old: &Object, new: &mut Object, part: Part) -> Result<(), Status> {
    match part {
        Part::Status => keep_all_but_status(resource, old, new),
        Part::Finalize => {
            let finalizers = new.pointer("/spec/finalizers").cloned();
            let managed = new.metadata("managedFields").cloned();
            *new = old.clone();
            set_or_remove(tiphys_apimachinery::object::map_entry(&mut new.0, "spec"), "finalizers", finalizers);
            set_or_remove(new.metadata_mut(), "managedFields", managed);
        }
        Part::Main | Part::Scale => {
            if resource.has_status() {
                set_or_remove(&mut new.0, "status", old.0.get("status").cloned());
            }
        }
    }
    let metadata = new.metadata_mut();
    for field in SYSTEM {
        set_or_remove(metadata, field, old.metadata(field).cloned());
    }
    set_or_remove(metadata, "generateName", old.metadata("generateName").cloned());
    set_or_remove(metadata, "resourceVersion", old.metadata("resourceVersion").cloned());
    metadata.retain(|_, value| !value.is_null());
    drop_empty(metadata);
    check_finalizers(resource, old, new)
}

fn set_or_remove(map: &mut serde_json::Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    };
}

/// A status write of a custom resource changes nothing else; of a built-in one also labels and annotations.
fn keep_all_but_status(resource: &Resource, old: &Object, new: &mut Object) {
    let status = new.0.remove("status");
    let managed = new.metadata("managedFields").cloned();
    let (labels, annotations) = (new.metadata("labels").cloned(), new.metadata("annotations").cloned());
    *new = old.clone();
    set_or_remove(&mut new.0, "status", status);
    let metadata = new.metadata_mut();
    set_or_remove(metadata, "managedFields", managed);
    if resource.custom.is_none() {
        set_or_remove(metadata, "annotations", annotations);
        if resource.group.is_empty() {
            set_or_remove(metadata, "labels", labels);
        }
    }
}

fn check_finalizers(resource: &Resource, old: &Object, new: &Object) -> Result<(), Status> {
    if old.deletion_timestamp().is_none() {
        return Ok(());
    }
    let before = old.finalizers();
    let added: Vec<String> = new.finalizers().into_iter().filter(|f| !before.contains(f)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = added.iter().map(|f| format!("\"{f}\"")).collect();
    let detail =
        format!("no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}", list.join(", "));
    Err(Status::invalid(&resource.group, &resource.kind, old.name(), vec![Cause::forbidden("metadata.finalizers", &detail)]))
}

/// `generation` counts changes of anything but metadata and status.
pub fn bump_generation(resource: &Resource, old: &Object, new: &mut Object) {
    if !resource.has_generation() {
        return;
    }
    let differs = |key: &String| !matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind") && old.0.get(key) != new.0.get(key);
    // Deployments count their annotations, too, except for the one that their controller writes with the status.
    let counted = |o: &Object| {
        let mut annotations = o.annotations();
        annotations.remove("deployment.kubernetes.io/revision");
        annotations
    };
    let annotations = resource.is("apps", "deployments") && counted(old) != counted(new);
    // Nor is placing a pod a change of what was asked for.
    if resource.is("", "pods") && old.str_at("/spec/nodeName") != new.str_at("/spec/nodeName") {
        return;
    }
    if annotations || old.0.keys().chain(new.0.keys()).any(differs) {
        let next = old.generation() + 1;
        new.metadata_mut().insert("generation".into(), next.into());
    }
}

/// Nothing holds an object back that was asked to go.
pub fn is_finished(resource: &Resource, object: &Object) -> bool {
    let grace = object.metadata("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    let spec_finalizers =
        resource.is("", "namespaces") && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    object.deletion_timestamp().is_some() && object.finalizers().is_empty() && grace == 0 && !spec_finalizers
}
