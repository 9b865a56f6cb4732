//! Merges a strategic merge patch into a document, or into another patch.

use super::{
    DELETE_FROM_LIST, PATCH, RETAIN_KEYS, SET_ORDER, Strategy, go_string, go_text,
    lists::{
        Elements, Order, check_order, deduplicate, element_type, is_delete, merge_key_of,
        no_merge_key, normalize_order, order_of, partition, wrong_type,
    },
    rules_for, rules_for_list, same_type,
};
use crate::{patch::PatchError, schema::TypeRef};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Default)]
pub(in crate::patch) struct MergeOptions {
    /// Execute the directives for lists; otherwise keep them, because the document is itself a
    /// patch.
    pub merge_parallel_lists: bool,
    /// Drop nulls for fields that the document does not have.
    pub ignore_unmatched_nulls: bool,
}

type Fields = Map<String, Value>;

const BAD_ORDER: &str = "invalid patch format of setElementOrder list";
const BAD_RETAIN_KEYS: &str = "invalid patch format of retainKeys";
const BAD_DELETIONS: &str = "invalid patch format of primitive list";

pub(in crate::patch) fn merge_maps(
    mut doc: Fields,
    mut patch: Fields,
    ty: TypeRef<'_>,
    options: MergeOptions,
) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                return Ok(patch);
            }
            Some("delete") => return Ok(Map::new()),
            _ => return Err(unknown_directive(directive, &Value::Object(patch.clone()))),
        }
    }
    retain_keys(&mut doc, &mut patch, options)?;
    merge_ordered_lists(&mut doc, &mut patch, ty, options)?;
    for (key, value) in patch {
        merge_field(&mut doc, key, value, ty, options)?;
    }
    Ok(doc)
}

fn unknown_directive(directive: &Value, map: &Value) -> PatchError {
    PatchError::Invalid(format!(
        "unknown patch type: {} in map: {}",
        go_string(directive),
        go_text(map)
    ))
}

fn merge_field(
    doc: &mut Fields,
    key: String,
    value: Value,
    ty: TypeRef<'_>,
    options: MergeOptions,
) -> Result<(), PatchError> {
    let mut key = key;
    let mut deletes = false;
    if key.starts_with(DELETE_FROM_LIST) {
        if !options.merge_parallel_lists {
            doc.insert(key, value);
            return Ok(());
        }
        key = field_behind(&key, DELETE_FROM_LIST, BAD_DELETIONS)?.to_owned();
        deletes = true;
    }
    if value.is_null() {
        doc.remove(&key);
        if options.ignore_unmatched_nulls {
            return Ok(());
        }
    }
    let Some(old) = doc.get_mut(&key) else {
        if !deletes {
            insert_new(doc, key, value, options);
        }
        return Ok(());
    };
    if !same_type(old, &value) {
        if !deletes {
            insert_new(doc, key, value, options);
        }
        return Ok(());
    }
    match (old, value) {
        (Value::Object(old), Value::Object(new)) => {
            let rules = rules_for(ty, &key)?;
            *old = match rules.strategy {
                Strategy::Replace => new,
                _ => merge_maps(std::mem::take(old), new, rules.ty, options)?,
            };
        }
        (Value::Array(old), Value::Array(new)) => {
            let rules = rules_for_list(ty, &key)?;
            *old = if rules.strategy == Strategy::Merge || deletes {
                merge_lists(
                    std::mem::take(old),
                    new,
                    rules.ty,
                    rules.merge_key,
                    deletes,
                    options,
                )?
            } else {
                new
            };
        }
        (old, new) => *old = new,
    }
    Ok(())
}

/// Inserts content that the document did not have, without merge directives.
fn insert_new(doc: &mut Fields, key: String, mut value: Value, options: MergeOptions) {
    if options.ignore_unmatched_nulls {
        discard_nulls(&mut value);
    }
    match without_directives(value) {
        Some(value) => doc.insert(key, value),
        None => doc.remove(&key),
    };
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// None if the value consists only of a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter_map(|(k, v)| without_directives(v).map(|v| (k, v)))
                .collect(),
        )),
        Value::Array(list) => Some(Value::Array(
            list.into_iter().filter_map(without_directives).collect(),
        )),
        other => Some(other),
    }
}

fn field_behind<'k>(
    key: &'k str,
    prefix: &str,
    complaint: &'static str,
) -> Result<&'k str, PatchError> {
    key.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('/'))
        .ok_or(PatchError::Format(complaint))
}

/// `$retainKeys`: removes fields of the document that are not listed; fields of the patch must be
/// listed.
fn retain_keys(
    doc: &mut Fields,
    patch: &mut Fields,
    options: MergeOptions,
) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    if !options.merge_parallel_lists {
        match doc.get(RETAIN_KEYS) {
            Some(old) if *old != keys => {
                let text = format!(
                    "{} and {} are not deep equal: this may happen when calculating the 3-way diff patch",
                    go_text(old),
                    go_text(&keys)
                );
                return Err(PatchError::Invalid(text));
            }
            Some(_) => {}
            None => {
                doc.insert(RETAIN_KEYS.into(), keys);
            }
        }
        return Ok(());
    }
    let keys = keys.as_array().ok_or(PatchError::Format(BAD_RETAIN_KEYS))?;
    let named = |key: &str| keys.iter().any(|k| k.as_str() == Some(key));
    let directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ORDER);
    if patch
        .iter()
        .any(|(key, value)| !value.is_null() && !directive(key) && !named(key))
    {
        return Err(PatchError::Format(BAD_RETAIN_KEYS));
    }
    doc.retain(|key, _| named(key));
    Ok(())
}

/// `$setElementOrder/<list>`: merges the list with its order, and removes both from the patch.
fn merge_ordered_lists(
    doc: &mut Fields,
    patch: &mut Fields,
    ty: TypeRef<'_>,
    options: MergeOptions,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|k| k.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else {
            continue;
        };
        if !options.merge_parallel_lists {
            match doc.get(&directive) {
                Some(old) if *old != order => return Err(PatchError::Format(BAD_ORDER)),
                Some(_) => {}
                None => {
                    doc.insert(directive.clone(), order.clone());
                }
            }
        }
        let Value::Array(order) = order else {
            return Err(wrong_type("[]interface {}", &order));
        };
        merge_ordered_list(
            doc,
            patch,
            field_behind(&directive, SET_ORDER, BAD_ORDER)?,
            &order,
            ty,
            options,
        )?;
    }
    Ok(())
}

fn merge_ordered_list(
    doc: &mut Fields,
    patch: &mut Fields,
    field: &str,
    order: &[Value],
    ty: TypeRef<'_>,
    options: MergeOptions,
) -> Result<(), PatchError> {
    let list = |value: Option<&Value>| match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list.len())),
        Some(other) => Err(wrong_type("[]interface {}", other)),
    };
    let (in_doc, in_patch) = (list(doc.get(field))?, list(patch.get(field))?);
    let rules = rules_for_list(ty, field)?;
    let new = take_list(patch, field);
    check_against_order(&new, order, rules.merge_key)?;
    if in_doc.is_none() && in_patch.is_none() {
        return Ok(());
    }
    let old = take_list(doc, field);
    let elements = element_type(&[&old, &new])?;
    let server_order = match elements {
        Elements::Maps if in_patch.is_some() && rules.strategy == Strategy::Merge => {
            order_after_merge(&old, &new, rules.merge_key)
        }
        _ => order_of(&old, rules.merge_key, elements),
    };
    let merged = match (in_doc, in_patch) {
        (Some(_), None) => old,
        (None, _) => new.into_iter().filter_map(without_directives).collect(),
        (Some(_), Some(_)) if rules.strategy == Strategy::Merge => {
            merge_lists(old, new, rules.ty, rules.merge_key, false, options)?
        }
        (Some(_), Some(_)) => new,
    };
    // Scalars have no merge key; a list of maps without one is refused below.
    let by = if rules.merge_key.is_empty() {
        Elements::Scalars
    } else {
        Elements::Maps
    };
    let patch_order = order_of(order, rules.merge_key, by);
    if by == Elements::Maps {
        check_order(&merged, order, rules.merge_key)?;
    }
    let parts = partition(merged, &patch_order, rules.merge_key, by)?;
    doc.insert(
        field.to_owned(),
        normalize_order(
            parts,
            &patch_order,
            &server_order,
            rules.merge_key,
            elements,
        )?
        .into(),
    );
    Ok(())
}

/// The server's order as the reference implementation computes it: an added element takes the slot
/// of a deleted one and counts as if it had existed, which affects the position of elements that
/// only the server has.
pub(super) fn order_after_merge(old: &[Value], new: &[Value], merge_key: &str) -> Order {
    let deleted: HashSet<Option<&Value>> = new
        .iter()
        .filter(|v| is_delete(v))
        .map(|v| v.get(merge_key))
        .collect();
    let mut order: Vec<Option<&Value>> = old
        .iter()
        .map(|v| v.get(merge_key))
        .filter(|k| !deleted.contains(k))
        .collect();
    let replaces = |v: &Value| v.get(PATCH).and_then(Value::as_str) == Some("replace");
    if !new.iter().any(replaces) {
        let mut known: HashSet<Option<&Value>> = order.iter().copied().collect();
        for item in new.iter().filter(|v| v.get(PATCH).is_none()) {
            if order.len() >= old.len() {
                break;
            }
            let key = item.get(merge_key);
            if known.insert(key) {
                order.push(key);
            }
        }
    }
    order.into_iter().map(|key| key.cloned()).collect()
}

fn take_list(map: &mut Fields, field: &str) -> Vec<Value> {
    match map.remove(field) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Elements of the patch must be listed in the order, in that order; deletions need not be.
fn check_against_order(
    patch: &[Value],
    order: &[Value],
    merge_key: &str,
) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let has_directive = |item: &Value| item.as_object().is_some_and(|map| map.contains_key(PATCH));
    let mut items = patch
        .iter()
        .filter(|v| merge_key.is_empty() || !is_delete(v))
        .peekable();
    let mut places = order.iter().peekable();
    while let (Some(item), Some(place)) = (items.peek(), places.peek()) {
        if has_directive(item) {
            items.next();
            continue;
        }
        let same = if merge_key.is_empty() {
            item == place
        } else {
            merge_key_of(item, merge_key)? == merge_key_of(place, merge_key)?
        };
        if same {
            items.next();
        }
        places.next();
    }
    if items.peek().is_none() {
        return Ok(());
    }
    let (patch, order) = (
        go_text(&Value::Array(patch.to_vec())),
        go_text(&Value::Array(order.to_vec())),
    );
    Err(PatchError::Invalid(format!(
        "The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n"
    )))
}

fn merge_lists(
    old: Vec<Value>,
    new: Vec<Value>,
    ty: TypeRef<'_>,
    merge_key: &str,
    deletes: bool,
    options: MergeOptions,
) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let elements = element_type(&[&old, &new])?;
    if elements == Elements::Scalars {
        if deletes && options.merge_parallel_lists {
            let gone: HashSet<&Value> = new.iter().collect();
            return Ok(old.into_iter().filter(|v| !gone.contains(v)).collect());
        }
        let (server_order, patch_order) = (
            order_of(&old, merge_key, elements),
            order_of(&new, merge_key, elements),
        );
        let merged = deduplicate(old.into_iter().chain(new).collect());
        let parts = if merge_key.is_empty() {
            partition(merged, &patch_order, merge_key, elements)?
        } else {
            partition(merged, &patch_order, merge_key, Elements::Maps)?
        };
        return normalize_order(parts, &patch_order, &server_order, merge_key, elements);
    }
    if merge_key.is_empty() {
        return Err(PatchError::Invalid(format!(
            "cannot merge lists without merge key for {}",
            ty.name().unwrap_or("map")
        )));
    }
    let (mut merged, new) = apply_element_directives(old, new, merge_key)?;
    let server_order = order_of(&merged, merge_key, elements);
    let patch_order = order_of(&new, merge_key, elements);
    let mut known = HashMap::with_capacity(merged.len());
    for (at, item) in merged.iter().enumerate() {
        if let Some(key) = item.get(merge_key).filter(|key| is_lasting(key)) {
            known.entry(key.clone()).or_insert(at);
        }
    }
    for item in new {
        merge_element(&mut merged, &mut known, item, ty, merge_key, options)?;
    }
    let parts = partition(merged, &patch_order, merge_key, elements)?;
    normalize_order(parts, &patch_order, &server_order, merge_key, elements)
}

/// Whether a merge key stays what it is when its element is merged with one of the same key; the
/// others are searched for.
fn is_lasting(key: &Value) -> bool {
    !(key.is_null() || key.is_object() || key.is_array())
}

/// `known`: where the elements with lasting merge keys are.
fn merge_element(
    merged: &mut Vec<Value>,
    known: &mut HashMap<Value, usize>,
    item: Value,
    ty: TypeRef<'_>,
    merge_key: &str,
    options: MergeOptions,
) -> Result<(), PatchError> {
    let key = merge_key_of(&item, merge_key)?;
    let at = if is_lasting(key) {
        known.get(key).copied()
    } else {
        merged.iter().position(|v| v.get(merge_key) == Some(key))
    };
    let Some(at) = at else {
        if is_lasting(key) {
            known.insert(key.clone(), merged.len());
        }
        merged.push(item);
        return Ok(());
    };
    if let (Value::Object(old), Value::Object(new)) = (&mut merged[at], item) {
        *old = merge_maps(std::mem::take(old), new, ty, options)?;
    }
    Ok(())
}

/// Executes `$patch: delete` and `$patch: replace` elements. Returns the document's list and the
/// elements left to merge.
fn apply_element_directives(
    mut old: Vec<Value>,
    new: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut rest = Vec::with_capacity(new.len());
    let mut gone = HashSet::new();
    let mut replace = false;
    for item in new {
        let Some(directive) = item.get(PATCH) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            _ if is_delete(&item) => {
                let key = item
                    .get(merge_key)
                    .ok_or_else(|| no_merge_key(&item, merge_key))?;
                gone.insert(key.clone());
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(PatchError::invalid(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => return Err(unknown_directive(directive, &item)),
        }
    }
    old.retain(|v| v.get(merge_key).is_none_or(|key| !gone.contains(key)));
    Ok(if replace {
        (rest, Vec::new())
    } else {
        (old, rest)
    })
}
