//! Who set which field: `metadata.managedFields`, and server-side apply.
//!
//! Main functions: [`track`] for creates, updates and patches, [`apply`] for server-side apply.

use super::options::{Part, WriteOptions};
use super::{Registry, meta};
use crate::catalog::Resource;
use crate::gotypes;
use crate::status::{Cause, Status};
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::patch::apply::{self, ApplyError, ApplyOptions, Conflict};

/// The manager of requests that name none.
const UNKNOWN: &str = "unknown";

/// Records that `options.manager` changed what differs between `before` and `after`.
pub fn track(registry: &Registry, resource: &Resource, before: Option<&Object>, after: &mut Object, part: Part, options: &WriteOptions) {
    let now = meta::timestamp(registry.now());
    let manager = if options.manager.is_empty() { UNKNOWN } else { &options.manager };
    let options = ApplyOptions {
        manager,
        force: false,
        now: &now,
        api_version: &resource.api_version(),
        subresource: part.word(),
        reset_fields: reset_fields(resource, part),
    };
    apply::track_update(before, after, &options, resource.ty());
    // To the real server a new built-in object replaces an empty struct, whose parts nobody owns.
    if before.is_none()
        && resource.custom.is_none()
        && let Some(of) = gotypes::of(&resource.gvk())
    {
        let mut entries = after.metadata("managedFields").cloned().unwrap_or(Value::Null);
        for entry in entries.as_array_mut().into_iter().flatten() {
            if let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) {
                forget(fields, &gotypes::zero(of), &after.0);
            }
        }
        if let Some(list) = entries.as_array_mut() {
            list.retain(|entry| entry["fieldsV1"].as_object().is_none_or(|fields| !fields.is_empty()));
            if list.is_empty() {
                after.metadata_mut().remove("managedFields");
            } else {
                after.metadata_mut().insert("managedFields".into(), entries);
            }
        }
    }
}

/// Takes the parts of an empty struct out of a set of owned fields: maps and lists that were there, values that did not change.
fn forget(fields: &mut Map<String, Value>, zero: &Map<String, Value>, now: &Map<String, Value>) {
    for (name, empty) in zero {
        let key = format!("f:{name}");
        let Some(Value::Object(inner)) = fields.get_mut(&key) else { continue };
        // An atomic map is owned as a whole and has no parts.
        let had_parts = !inner.is_empty();
        inner.remove(".");
        if let (Value::Object(empty), Some(Value::Object(now))) = (empty, now.get(name)) {
            forget(inner, empty, now);
        }
        let unchanged = now.get(name) == Some(empty);
        if unchanged || (had_parts && inner.is_empty()) {
            fields.remove(&key);
        }
    }
}

/// What a write to this part leaves alone, so that nobody comes to own it that way.
fn reset_fields(resource: &Resource, part: Part) -> &'static [&'static str] {
    match part {
        Part::Main | Part::Scale if resource.has_status() => &["status"],
        Part::Status => &["spec"],
        _ => &[],
    }
}

/// Server-side apply: merges the configuration of a manager into the live object.
pub fn apply(
    registry: &Registry,
    resource: &Resource,
    live: Option<&Object>,
    config: &Object,
    part: Part,
    options: &WriteOptions,
) -> Result<Object, Status> {
    let now = meta::timestamp(registry.now());
    let how = ApplyOptions {
        manager: &options.manager,
        force: options.force,
        now: &now,
        api_version: &resource.api_version(),
        subresource: part.word(),
        reset_fields: reset_fields(resource, part),
    };
    apply::apply(live, config, &how, resource.ty()).map_err(|error| match error {
        ApplyError::Conflicts(ref list) => conflicts(&error.to_string(), list),
        ApplyError::BadRequest(text) => Status::bad_request(text),
        ApplyError::Invalid(text) => Status::new(500, "", text),
    })
}

/// A conflict of managers has one cause for each field.
fn conflicts(message: &str, list: &[Conflict]) -> Status {
    let cause = |c: &Conflict| {
        let part = if c.subresource.is_empty() { String::new() } else { format!(" with subresource \"{}\"", c.subresource) };
        let text = format!("conflict with \"{}\"{part} using {}", c.manager, c.api_version);
        Cause { reason: "FieldManagerConflict", message: text, field: c.field.clone() }
    };
    Status::new(409, "Conflict", message).with_causes(list.iter().map(cause).collect())
}

/// Whether the request itself says who manages what, as tools do that migrate ownership.
pub fn sets_managers(old: &Object, new: &Object) -> bool {
    let sent = new.metadata("managedFields").filter(|m| !m.is_null());
    sent.is_some() && sent != old.metadata("managedFields")
}

/// Whether the objects are the same except for their managers.
pub fn same_but_managers(a: &Object, b: &Object) -> bool {
    let others = |o: &Object| o.0.iter().filter(|(key, _)| *key != "metadata").count();
    others(a) == others(b)
        && a.0.iter().filter(|(key, _)| *key != "metadata").all(|(key, value)| b.0.get(key) == Some(value))
        && same_metadata(a, b)
}

fn same_metadata(a: &Object, b: &Object) -> bool {
    let empty = serde_json::Map::new();
    let of = |o: &Object| o.0.get("metadata").and_then(Value::as_object).unwrap_or(&empty).clone();
    let (mut a, mut b) = (of(a), of(b));
    a.remove("managedFields");
    b.remove("managedFields");
    a == b
}

/// Whether the objects are the same except for the times of their managers.
pub fn same_but_times(a: &Object, b: &Object) -> bool {
    same_but_managers(a, b) && managers_without_times(a) == managers_without_times(b)
}

fn managers_without_times(object: &Object) -> Vec<Value> {
    let mut list = object.metadata("managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    for entry in &mut list {
        if let Some(map) = entry.as_object_mut() {
            map.remove("time");
        }
    }
    list
}
