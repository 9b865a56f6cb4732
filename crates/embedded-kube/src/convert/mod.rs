//! Converts between the version of a request and the storage version. Main functions:
//! [`to_storage`], [`from_storage`].
//!
//! Custom resources without a conversion webhook (strategy `None`) only change their `apiVersion`;
//! fields that the schema of the other version lacks are dropped, and its defaults are added. Among
//! the built-in kinds, HorizontalPodAutoscaler and Event have two forms.

pub mod annotated;
pub mod autoscaler;

use crate::catalog::{CRD_TABLE, Resource};
use annotated::TEMPLATE_GENERATION;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::{holds_null, map_entry};
use tiphys_kube_schema::structural::{Node, shape};
use tiphys_kube_schema::{gofmt, gotypes};

/// Converts an object from the resource's version to its storage version. If that adds defaults,
/// which a real server would not store, returns the object without them.
pub fn to_storage(resource: &Resource, object: &mut Object) -> Option<Object> {
    let mut bare = None;
    if resource.is_storage() {
        if let Some(node) = resource.stored_as().and_then(|custom| custom.node.as_ref()) {
            bare = read_back(object, node);
        }
    } else {
        object
            .0
            .insert("apiVersion".into(), resource.storage_api_version().into());
        if let Some(node) = resource.stored_as().and_then(|custom| custom.node.as_ref()) {
            bare = fit(object, node, true);
        }
        if resource.is("events.k8s.io", "events") {
            rename(object, false);
        }
        if resource.is("autoscaling", "horizontalpodautoscalers") {
            autoscaler::to_v2(object);
        }
    }
    bare
}

/// The object as it is stored and returned: in its storage version, without the fields that are not
/// stored. Returns the same as [`to_storage`].
pub fn as_stored(resource: &Resource, object: &mut Object) -> Option<Object> {
    let bare = to_storage(resource, object);
    // Definitions are stored as JSON, all other built-in kinds as protobuf.
    let kept_as = || {
        gotypes::of_kind(
            &resource.storage_group,
            &resource.storage_version,
            &resource.kind,
        )
    };
    if resource.table == CRD_TABLE {
        write_down_definition(object);
    } else if let Some(of) = resource.custom.is_none().then(kept_as).flatten() {
        gotypes::forget_empty(&mut object.0, of);
    }
    bare
}

/// Converts a definition to its stored form: integers are written as such, and an empty webhook is
/// removed.
fn write_down_definition(object: &mut Object) {
    let Some(spec) = object.0.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.get_mut("versions")
        .into_iter()
        .for_each(gofmt::make_whole);
    let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) else {
        return;
    };
    let says = |webhook: &Value| {
        !webhook["clientConfig"].is_null()
            || webhook["conversionReviewVersions"]
                .as_array()
                .is_some_and(|versions| !versions.is_empty())
    };
    if conversion
        .get("webhook")
        .is_some_and(|webhook| !says(webhook))
    {
        conversion.remove("webhook");
    }
}

/// An empty object, as Go writes it for a built-in kind.
pub fn hollow(resource: &Resource) -> Object {
    let of = resource.go_type();
    let mut object = Object(of.map(gotypes::zero).unwrap_or_default());
    object
        .0
        .insert("apiVersion".into(), resource.api_version().into());
    object.0.insert("kind".into(), resource.kind.clone().into());
    match resource.table.as_str() {
        // Internally these fields are always present, so they are written.
        "apps/deployments" | "apps/replicasets" | "apps/statefulsets" => {
            map_entry(&mut object.0, "spec").insert("replicas".into(), 0.into());
        }
        "apps/daemonsets" => object.set_annotation(TEMPLATE_GENERATION, "0"),
        _ => {}
    }
    object
}

/// Converts a stored object to the version of the resource, with the current schemas.
pub fn from_storage(resource: &Resource, object: &mut Object) {
    if is_older(resource)
        && let Some(node) = resource
            .written_as(object)
            .and_then(|custom| custom.node.as_ref())
    {
        fit(object, node, true);
    }
    if object.api_version() != resource.api_version() {
        object
            .0
            .insert("apiVersion".into(), resource.api_version().into());
        if let Some(node) = resource
            .custom
            .as_ref()
            .and_then(|custom| custom.node.as_ref())
        {
            fit(object, node, false);
        }
        if resource.is("events.k8s.io", "events") {
            rename(object, true);
        }
        if resource.is("autoscaling", "horizontalpodautoscalers") {
            autoscaler::to_v1(object);
        }
    }
}

/// Whether there may be objects that were written with earlier schemas. Fields that the current
/// schemas lack are kept until the next write.
pub fn is_older(resource: &Resource) -> bool {
    resource
        .custom
        .as_ref()
        .is_some_and(|custom| custom.changed)
}

/// The same object for field management, which must see the fields that the schemas would drop.
pub fn rename_version(to: &Resource, object: &mut Object) {
    object
        .0
        .insert("apiVersion".into(), to.api_version().into());
}

/// Makes a custom object fit a schema. Defaults are added when it is read from the store; if there
/// are any, returns the object without them.
pub fn fit(object: &mut Object, node: &Node, with_defaults: bool) -> Option<Object> {
    object.metadata_mut().retain(|_, value| !is_nothing(value));
    let mut value = std::mem::take(object).into_value();
    shape::prune(&mut value, node);
    shape::drop_nulls(&mut value, Some(node));
    let before = with_defaults.then(|| value.clone());
    if with_defaults {
        shape::fill_in(&mut value, node);
    }
    let bare = before
        .filter(|before| *before != value)
        .and_then(|before| Object::from_value(before).ok());
    if let Value::Object(map) = value {
        object.0 = map;
    }
    bare
}

/// Reads back an object that is stored as applied, including nulls and empty metadata. If that
/// changes it, returns the stored form.
fn read_back(object: &mut Object, node: &Node) -> Option<Object> {
    if !object.0.iter().any(|(key, value)| {
        if key == "metadata" {
            holds_nothing(value)
        } else {
            holds_null(value)
        }
    }) {
        return None;
    }
    let kept = object.clone();
    fit(object, node, true);
    (kept != *object).then_some(kept)
}

fn holds_nothing(metadata: &Value) -> bool {
    metadata
        .as_object()
        .is_some_and(|map| map.values().any(is_nothing))
}

/// Whether Go omits the value in metadata.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Fields of core events and their names in `events.k8s.io`.
const EVENT_NAMES: [(&str, &str); 7] = [
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Object, to_new: bool) {
    for (core, new) in EVENT_NAMES {
        let (from, to) = if to_new { (core, new) } else { (new, core) };
        if let Some(value) = object.0.remove(from) {
            object.0.insert(to.into(), value);
        }
    }
    // Fields that one form omits if they are empty are always written in the other.
    if let Some(of) = gotypes::of(&object.gvk()) {
        gotypes::drop_empty(&mut object.0, of);
    }
}
