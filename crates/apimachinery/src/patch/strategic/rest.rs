//! What is left of a strategic merge patch once it has been merged: the reference implementation uses up what it merges, and an API
//! server quotes the rest when the result cannot be read. Main function: [`rest`].

use super::{
    DELETE_FROM_LIST, MergeOptions, PATCH, RETAIN_KEYS, SET_ORDER, Strategy,
    merge::{discard_nulls, without_directives},
    merge_maps, rules_for, rules_for_list, same_type,
};
use crate::schema::TypeRef;
use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// The rest of a patch that applies to `doc`.
pub fn rest(doc: &Value, patch: &Value, ty: TypeRef<'_>) -> Value {
    let mut rest = patch.clone();
    if let (Value::Object(doc), Value::Object(patch)) = (doc, &mut rest) {
        use_up_map(doc, patch, ty);
    }
    rest
}

fn use_up_map(doc: &Fields, patch: &mut Fields, ty: TypeRef<'_>) {
    match patch.get(PATCH).and_then(Value::as_str) {
        Some("replace") => {
            patch.remove(PATCH);
        }
        Some(_) => {}
        None => {
            patch.remove(RETAIN_KEYS);
            use_up_ordered_lists(patch);
            patch.iter_mut().for_each(|(key, value)| use_up_field(doc, key, value, ty));
        }
    }
}

/// A list is merged together with its order; both are gone then.
fn use_up_ordered_lists(patch: &mut Fields) {
    let fields = |key: &String| Some(key.strip_prefix(SET_ORDER)?.strip_prefix('/')?.to_owned());
    let ordered: Vec<String> = patch.keys().filter_map(fields).collect();
    patch.retain(|key, _| !key.starts_with(SET_ORDER) && !ordered.contains(key));
}

fn use_up_field(doc: &Fields, key: &str, value: &mut Value, ty: TypeRef<'_>) {
    let (key, deletes) = match key.strip_prefix(DELETE_FROM_LIST).and_then(|rest| rest.strip_prefix('/')) {
        Some(field) => (field, true),
        None => (key, false),
    };
    match (doc.get(key), value) {
        (_, Value::Null) => {}
        (Some(Value::Object(old)), Value::Object(new)) => {
            if let Some(rules) = rules_for(ty, key).ok().filter(|rules| rules.strategy != Strategy::Replace) {
                use_up_map(old, new, rules.ty);
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            if let Some(rules) = rules_for_list(ty, key).ok().filter(|rules| deletes || rules.strategy == Strategy::Merge) {
                use_up_list(old, new, rules.ty, rules.merge_key);
            }
        }
        (Some(old), new) if same_type(old, new) => {}
        (_, new) if !deletes => {
            discard_nulls(new);
            discard_directives(new);
        }
        _ => {}
    }
}

/// Uses up the elements that are merged with one that is there. One that is new takes up the later ones of the same key.
fn use_up_list(old: &[Value], new: &mut [Value], ty: TypeRef<'_>, merge_key: &str) {
    let directive = |item: &Value| item.get(PATCH).and_then(Value::as_str).map(str::to_owned);
    if merge_key.is_empty() || new.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        return;
    }
    let deleted: Vec<Value> = new.iter().filter(|item| item.get(PATCH).is_some()).filter_map(|item| item.get(merge_key).cloned()).collect();
    let is_left = |item: &&Value| item.get(merge_key).is_none_or(|key| !deleted.contains(key));
    let mut merged: Vec<(Value, Option<usize>)> = old.iter().filter(is_left).map(|item| (item.clone(), None)).collect();
    for at in 0..new.len() {
        if new[at].get(PATCH).is_some() {
            continue;
        }
        let Some(found) = merged.iter_mut().find(|(item, _)| item.get(merge_key) == new[at].get(merge_key)) else {
            merged.push((new[at].clone(), Some(at)));
            continue;
        };
        let (Value::Object(item), Value::Object(change)) = (&found.0, &mut new[at]) else { continue };
        let sent = change.clone();
        use_up_map(item, change, ty);
        let options = MergeOptions { merge_parallel_lists: true, ignore_unmatched_nulls: true };
        let Ok(both) = merge_maps(item.clone(), sent, ty, options) else { continue };
        found.0 = Value::Object(both);
        if let Some(first) = found.1 {
            new[first] = found.0.clone();
        }
    }
}

/// Directives go out of maps and all that is in them; a list that stands in no map keeps its own.
fn discard_directives(value: &mut Value) {
    match value {
        Value::Object(map) if !map.contains_key(PATCH) => *value = without_directives(std::mem::take(value)).unwrap_or_default(),
        Value::Array(list) => list.iter_mut().for_each(discard_directives),
        _ => {}
    }
}
