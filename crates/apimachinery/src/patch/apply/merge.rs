//! Merges an applied configuration into a live value, and removes fields from a value.

use super::{
    fieldset::FieldSet,
    path::PathElement,
    types::{Form, Ty},
};
use crate::object::holds_null;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The live value merged with the configuration.
pub(super) fn merge(live: &Value, config: &Value, ty: Ty<'_>) -> Result<Value, String> {
    match (ty.form(live), ty.form(config)) {
        (Form::Map, Form::Map) => match (live, config) {
            (Value::Object(live), Value::Object(config)) => merge_maps(live, config, ty),
            // A null for a map removes nothing; null over null, or a map over null, is taken from
            // the configuration.
            (Value::Object(fields), Value::Null) if !fields.is_empty() => Ok(live.clone()),
            _ => Ok(config.clone()),
        },
        (Form::List, Form::List) => match (live, config) {
            (Value::Array(live), Value::Array(config))
                if !(live.is_empty() && config.is_empty()) =>
            {
                merge_lists(live, config, ty)
            }
            (Value::Array(items), Value::Null) if !items.is_empty() => Ok(live.clone()),
            _ => Ok(config.clone()),
        },
        _ => Ok(config.clone()),
    }
}

fn merge_maps(
    live: &Map<String, Value>,
    config: &Map<String, Value>,
    ty: Ty<'_>,
) -> Result<Value, String> {
    let mut merged = live.clone();
    for (key, new) in config {
        let value = match merged.get(key) {
            Some(old) => merge(old, new, ty.field(key)).map_err(|e| {
                format!(
                    ".{key}{}{e}",
                    if e.starts_with(['.', '[']) { "" } else { ": " }
                )
            })?,
            None => new.clone(),
        };
        merged.insert(key.clone(), value);
    }
    Ok(Value::Object(merged))
}

/// Elements in the configuration's order; elements that only the live list has stay next to their
/// neighbours.
fn merge_lists(live: &[Value], config: &[Value], ty: Ty<'_>) -> Result<Value, String> {
    let (live_steps, live_items) = index(live, ty, true)?;
    let (config_steps, config_items) = index(config, ty, false)?;
    let mut shared: VecDeque<&PathElement> = config_steps
        .iter()
        .filter(|s| live_items.contains_key(s))
        .collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let combine = |step: &PathElement| -> Result<Value, String> {
        match (
            live_items.get(step).copied().flatten(),
            config_items.get(step).copied().flatten(),
        ) {
            (Some(old), Some(new)) => merge(old, new, ty.items()).map_err(|e| format!("{step}{e}")),
            (_, new) => Ok(new.cloned().unwrap_or(Value::Null)),
        }
    };
    let (mut l, mut c) = (0, 0);
    while l < live_steps.len() || c < config_steps.len() {
        if let (Some(old), Some(new)) = (live_steps.get(l), config_steps.get(c)) {
            if old == new {
                done.insert(new);
                merged.push(combine(new)?);
                (l, c) = (l + 1, c + 1);
                next_shared = shared.pop_front();
                continue;
            }
            if config_items.contains_key(old) && next_shared.is_some_and(|s| s != old) {
                // It comes later, at its position in the configuration.
                l += 1;
                continue;
            }
        }
        if let Some(old) = live_steps.get(l) {
            if !config_items.contains_key(old) {
                merged.push(live[l].clone());
                l += 1;
                continue;
            }
            if done.contains(old) {
                l += 1;
            }
        }
        if let Some(new) = config_steps.get(c) {
            done.insert(new);
            merged.push(combine(new)?);
            c += 1;
            if next_shared == Some(new) {
                next_shared = shared.pop_front();
            }
        }
    }
    Ok(Value::Array(merged))
}

type Index<'v> = (Vec<PathElement>, BTreeMap<PathElement, Option<&'v Value>>);

/// The path elements of a list's items, and the value of each; None for an item that occurs twice.
fn index<'v>(list: &'v [Value], ty: Ty<'_>, duplicates: bool) -> Result<Index<'v>, String> {
    let mut steps = Vec::with_capacity(list.len());
    let mut items: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    for (i, item) in list.iter().enumerate() {
        let step = ty
            .element(item)
            .map_err(|e| format!(": element {i}: {e}"))?;
        match items.get_mut(&step) {
            Some(_) if !duplicates => return Err(format!(": duplicate entries for key {step}")),
            Some(known) => *known = None,
            None => {
                items.insert(step.clone(), Some(item));
            }
        }
        steps.push(step);
    }
    Ok((steps, items))
}

/// The value without the fields in `remove`. A map or list that loses its last field becomes null,
/// because it may have an owner itself.
pub(super) fn without(value: &Value, remove: &FieldSet, ty: Ty<'_>) -> Value {
    match (ty.form(value), value) {
        (Form::Map, Value::Object(map)) if !map.is_empty() => {
            let kept = map_without(map, remove, ty);
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        (Form::List, Value::Array(list)) if !list.is_empty() => {
            let mut kept = Vec::with_capacity(list.len());
            for item in list {
                let Ok(step) = ty.element(item) else {
                    kept.push(item.clone());
                    continue;
                };
                if remove.members.contains(&step) {
                    continue;
                }
                match remove.children.get(&step) {
                    None => kept.push(item.clone()),
                    Some(below) => kept.push(without(item, below, ty.items())),
                }
            }
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
        _ => value.clone(),
    }
}

pub(super) fn map_without(
    map: &Map<String, Value>,
    remove: &FieldSet,
    ty: Ty<'_>,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for (key, value) in map {
        let step = PathElement::Field(key.clone());
        if remove.members.contains(&step) {
            continue;
        }
        let value = match remove.children.get(&step) {
            None => value.clone(),
            Some(below) => without(value, below, ty.field(key)),
        };
        kept.insert(key.clone(), value);
    }
    kept
}

/// Removes the nulls left behind by removed fields, but not those that the configuration or the
/// live object contains.
pub(super) fn drop_nulls(
    map: &mut Map<String, Value>,
    config: Option<&Map<String, Value>>,
    live: Option<&Map<String, Value>>,
) {
    if map.values().any(holds_null) {
        drop_new_nulls(map, &config.into_iter().chain(live).collect::<Vec<_>>());
    }
}

/// Keeps nulls that one of the origins has. For a list element, the origins are all elements that
/// one of the list's origins has.
fn drop_new_nulls(map: &mut Map<String, Value>, origins: &[&Map<String, Value>]) {
    map.retain(|key, value| {
        !value.is_null()
            || origins
                .iter()
                .any(|origin| origin.get(key).is_some_and(Value::is_null))
    });
    for (key, value) in map {
        let before: Vec<&Value> = origins
            .iter()
            .filter_map(|origin| origin.get(key))
            .collect();
        match value {
            Value::Object(inner) => drop_new_nulls(
                inner,
                &before
                    .iter()
                    .filter_map(|value| value.as_object())
                    .collect::<Vec<_>>(),
            ),
            Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_null()) => {
                let lists: Vec<&Vec<Value>> =
                    before.iter().filter_map(|value| value.as_array()).collect();
                if !lists.contains(&&*list) {
                    list.retain(|v| !v.is_null());
                    let elements: Vec<_> = lists
                        .iter()
                        .flat_map(|list| list.iter().filter_map(Value::as_object))
                        .collect();
                    list.iter_mut()
                        .filter_map(Value::as_object_mut)
                        .for_each(|inner| drop_new_nulls(inner, &elements));
                }
            }
            _ => {}
        }
    }
}
