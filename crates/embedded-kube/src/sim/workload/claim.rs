//! The objects that belong to a controller: those that it owns and that match its selector, and
//! matching orphans, which it adopts.

use super::super::{
    fields::owner_reference,
    plan::{Change, Plan},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// Whether an object's labels satisfy a `LabelSelector`. An empty or absent selector matches
/// nothing: no controller may select all objects.
pub fn selects(selector: Option<&Value>, object: &Object) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    let exact = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    if exact.is_none_or(|m| m.is_empty()) && expressions.is_none_or(Vec::is_empty) {
        return false;
    }
    exact
        .into_iter()
        .flatten()
        .all(|(key, value)| object.label(key) == value.as_str())
        && expressions
            .into_iter()
            .flatten()
            .all(|e| expression_holds(e, object))
}

/// Whether an object's labels satisfy a plain map, like a Service's selector. An empty map matches
/// nothing.
pub fn selects_map(selector: Option<&Value>, object: &Object) -> bool {
    let Some(map) = selector
        .and_then(Value::as_object)
        .filter(|m| !m.is_empty())
    else {
        return false;
    };
    map.iter()
        .all(|(key, value)| object.label(key) == value.as_str())
}

fn expression_holds(expression: &Value, object: &Object) -> bool {
    let word = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or("");
    let value = object.label(word("key"));
    let listed = || {
        expression
            .get("values")
            .and_then(Value::as_array)
            .is_some_and(|l| l.iter().any(|v| v.as_str() == value))
    };
    match word("operator") {
        "In" => value.is_some() && listed(),
        "NotIn" => value.is_none() || !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// Whether a controller's selector matches an object; that of a ReplicationController is a plain
/// map.
pub fn takes(owner: &Object, object: &Object) -> bool {
    let selector = owner.pointer("/spec/selector");
    if owner.kind() == "ReplicationController" {
        selects_map(selector, object)
    } else {
        selects(selector, object)
    }
}

/// The members of `owner`, after planning the adoption of orphans and the release of those that no
/// longer match.
pub fn claim(
    plan: &mut Plan,
    owner: &Object,
    owned: Vec<Arc<Object>>,
    orphans: Vec<Arc<Object>>,
) -> Vec<Arc<Object>> {
    let deleting = owner.deletion_timestamp().is_some();
    let mut members = Vec::with_capacity(owned.len());
    for object in owned {
        if takes(owner, &object) {
            members.push(object);
        } else if !deleting && object.deletion_timestamp().is_none() {
            plan.push(Change::Update(released(&object, owner.uid())));
        }
    }
    for object in orphans {
        if !deleting && object.deletion_timestamp().is_none() && takes(owner, &object) {
            plan.push(Change::Update(adopted(&object, owner)));
            members.push(object);
        }
    }
    members
}

fn adopted(object: &Object, owner: &Object) -> Object {
    let mut object = object.clone();
    let list = object
        .metadata_mut()
        .entry("ownerReferences")
        .or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(owner_reference(owner));
    }
    object
}

fn released(object: &Object, owner_uid: &str) -> Object {
    let mut object = object.clone();
    if let Some(Value::Array(list)) = object.metadata_mut().get_mut("ownerReferences") {
        list.retain(|o| o.get("uid").and_then(Value::as_str) != Some(owner_uid));
    }
    object
}
