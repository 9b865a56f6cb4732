//! Order and identity of list elements: maps by merge key, scalars by value.

use super::{
    DELETE_FROM_LIST, PATCH, PatchError, RETAIN_KEYS, SET_ORDER, Strategy, go_text, rules_for,
    rules_for_list, same_type,
};
use crate::schema::TypeRef;
use serde_json::{Map, Value};

/// The type of all elements. Mixed lists and lists of lists cannot be merged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    Maps,
    Scalars,
}

pub(super) fn element_type(lists: &[&[Value]]) -> Result<Elements, PatchError> {
    let mut all = lists.iter().flat_map(|l| l.iter());
    let first = all
        .next()
        .ok_or_else(|| PatchError::invalid("no elements in any of the given slices"))?;
    if first.is_array() {
        return Err(PatchError::ListOfLists);
    }
    if !all.all(|v| same_type(first, v)) {
        let text = lists
            .iter()
            .map(|l| go_text(&Value::Array(l.to_vec())))
            .collect::<Vec<_>>()
            .join(" ");
        return Err(PatchError::Invalid(format!(
            "list element types are not identical: [{text}]"
        )));
    }
    Ok(if first.is_object() {
        Elements::Maps
    } else {
        Elements::Scalars
    })
}

/// What identifies an element; None for a map without the merge key.
pub(super) fn identity<'v>(
    item: &'v Value,
    merge_key: &str,
    elements: Elements,
) -> Option<&'v Value> {
    match elements {
        Elements::Maps => item.get(merge_key),
        Elements::Scalars => Some(item),
    }
}

/// The merge key's value of a map in a list.
pub(super) fn merge_key_of<'v>(item: &'v Value, merge_key: &str) -> Result<&'v Value, PatchError> {
    let map = expect_map(item)?;
    map.get(merge_key)
        .ok_or_else(|| no_merge_key(item, merge_key))
}

pub(super) fn no_merge_key(item: &Value, merge_key: &str) -> PatchError {
    PatchError::Invalid(format!(
        "map: {} does not contain declared merge key: {merge_key}",
        go_text(item)
    ))
}

/// The error for a value whose type differs from the one that Go expects.
pub(super) fn wrong_type(expected: &str, got: &Value) -> PatchError {
    let got = match got {
        Value::Object(_) => "map[string]interface {}",
        Value::Array(_) => "[]interface {}",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Null => "%!s(<nil>)",
    };
    PatchError::Invalid(format!("expected a {expected}, but received a {got}"))
}

pub(super) fn expect_map(item: &Value) -> Result<&Map<String, Value>, PatchError> {
    item.as_object()
        .ok_or_else(|| wrong_type("map[string]interface {}", item))
}

/// The desired order of elements, as a list of identities.
pub(super) type Order = Vec<Option<Value>>;

pub(super) fn order_of(list: &[Value], merge_key: &str, elements: Elements) -> Order {
    list.iter()
        .map(|v| identity(v, merge_key, elements).cloned())
        .collect()
}

fn position(order: &Order, identity: Option<&Value>) -> Option<usize> {
    order.iter().position(|o| o.as_ref() == identity)
}

pub(super) fn is_delete(item: &Value) -> bool {
    item.get(PATCH).and_then(Value::as_str) == Some("delete")
}

/// Checks that every element of the order has the merge key; which missing one is reported first
/// depends on the list.
pub(super) fn check_order(
    list: &[Value],
    order: &[Value],
    merge_key: &str,
) -> Result<(), PatchError> {
    for item in list {
        let key = merge_key_of(item, merge_key)?;
        for (at, place) in order.iter().enumerate() {
            let map = place
                .as_object()
                .ok_or_else(|| PatchError::Invalid(format!("value for key {at} is not a map")))?;
            if map.get(merge_key) == Some(key) {
                break;
            }
        }
    }
    order
        .iter()
        .try_for_each(|place| merge_key_of(place, merge_key).map(drop))
}

/// Sorts stably by `order`; elements to delete come last.
pub(super) fn sort_by_order(
    list: Vec<Value>,
    order: &Order,
    merge_key: &str,
    elements: Elements,
) -> Result<Vec<Value>, PatchError> {
    let mut deleted = Vec::new();
    let mut sorted: Vec<(Option<usize>, Value)> = Vec::with_capacity(list.len());
    if elements == Elements::Maps && order.iter().any(Option::is_none) {
        return Err(PatchError::Invalid(format!(
            "an element of the list order does not contain declared merge key: {merge_key}"
        )));
    }
    for item in list {
        if elements == Elements::Maps {
            merge_key_of(&item, merge_key)?;
            if is_delete(&item) {
                deleted.push(item);
                continue;
            }
        }
        let at = position(order, identity(&item, merge_key, elements));
        // Insertion sort: as in kubectl, an element whose position is unknown on either side moves
        // towards the front.
        let mut to = sorted.len();
        while to > 0 && !matches!((at, sorted[to - 1].0), (Some(new), Some(old)) if new >= old) {
            to -= 1;
        }
        sorted.insert(to, (at, item));
    }
    Ok(sorted
        .into_iter()
        .map(|(_, item)| item)
        .chain(deleted)
        .collect())
}

/// Sorts `patch` by `patch_order` and `server_only` by `server_order`, then merges them: both keep
/// their own order, and an element of `server_only` comes before the first element of `patch` that
/// it preceded on the server.
pub(super) fn normalize_order(
    (patch, server_only): (Vec<Value>, Vec<Value>),
    patch_order: &Order,
    server_order: &Order,
    merge_key: &str,
    elements: Elements,
) -> Result<Vec<Value>, PatchError> {
    let patch = sort_by_order(patch, patch_order, merge_key, elements)?;
    let server_only = sort_by_order(server_only, server_order, merge_key, elements)?;
    let place = |item: &Value| position(server_order, identity(item, merge_key, elements));
    let mut woven = Vec::with_capacity(patch.len() + server_only.len());
    let (mut left, mut right) = (
        server_only.into_iter().peekable(),
        patch.into_iter().peekable(),
    );
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (None, None) => return Ok(woven),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(l), Some(r)) => matches!((place(l), place(r)), (Some(l), Some(r)) if l < r),
        };
        woven.extend(if take_left { left.next() } else { right.next() });
    }
}

/// Splits the list into the elements named in `by` and the others.
pub(super) fn partition(
    list: Vec<Value>,
    by: &Order,
    merge_key: &str,
    elements: Elements,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in list {
        if elements == Elements::Maps {
            merge_key_of(&item, merge_key)?;
        }
        let found = position(by, identity(&item, merge_key, elements)).is_some();
        if found {
            named.push(item)
        } else {
            others.push(item)
        }
    }
    Ok((named, others))
}

/// Removes later duplicates; the last element moves to the position of a removed one.
pub(super) fn deduplicate(mut list: Vec<Value>) -> Vec<Value> {
    let mut i = 0;
    while i < list.len() {
        let mut j = i + 1;
        while j < list.len() {
            if list[i] == list[j] {
                list.swap_remove(j);
            } else {
                j += 1;
            }
        }
        i += 1;
    }
    list
}

pub(super) fn sort_scalars(list: &mut [Value]) {
    list.sort_by_cached_key(go_text);
}

/// Elements sorted by the text of their merge key. Equal ones are reversed, as in kubectl's sort.
pub(super) fn sorted_by_key<'v>(list: &'v [Value], merge_key: &str) -> Vec<&'v Value> {
    let mut sorted: Vec<&Value> = list.iter().rev().collect();
    sorted.sort_by_cached_key(|v| go_text(v.get(merge_key).unwrap_or(&Value::Null)));
    sorted
}

/// The document with every mergeable list sorted by its merge key (scalars by value), to compare
/// documents independently of the order.
pub fn sort_merge_lists(doc: &Value, ty: TypeRef<'_>) -> Result<Value, PatchError> {
    sort_map(super::as_map(doc)?, ty).map(Value::Object)
}

fn sort_map(map: &Map<String, Value>, ty: TypeRef<'_>) -> Result<Map<String, Value>, PatchError> {
    let mut sorted = Map::new();
    for (key, value) in map {
        let value = match value {
            Value::Array(list) if key == RETAIN_KEYS || key.starts_with(DELETE_FROM_LIST) => {
                let mut list = list.clone();
                sort_scalars(&mut list);
                Value::Array(list)
            }
            other if key == PATCH || key.starts_with(SET_ORDER) => other.clone(),
            Value::Object(inner) => Value::Object(sort_map(inner, rules_for(ty, key)?.ty)?),
            Value::Array(list) => {
                let rules = rules_for_list(ty, key)?;
                if rules.strategy == Strategy::Merge {
                    Value::Array(sort_list(list, rules.ty, rules.merge_key)?)
                } else {
                    value.clone()
                }
            }
            other => other.clone(),
        };
        sorted.insert(key.clone(), value);
    }
    Ok(sorted)
}

fn sort_list(list: &[Value], ty: TypeRef<'_>, merge_key: &str) -> Result<Vec<Value>, PatchError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    if element_type(&[list])? == Elements::Scalars {
        let mut list = deduplicate(list.to_vec());
        sort_scalars(&mut list);
        return Ok(list);
    }
    let inner = list
        .iter()
        .map(|v| Ok(Value::Object(sort_map(expect_map(v)?, ty)?)))
        .collect::<Result<Vec<_>, PatchError>>()?;
    Ok(sorted_by_key(&inner, merge_key)
        .into_iter()
        .cloned()
        .collect())
}
