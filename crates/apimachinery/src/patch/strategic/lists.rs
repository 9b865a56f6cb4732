//! Order and identity of list elements: maps by merge key, scalars by value.

use super::{
    DELETE_FROM_LIST, PATCH, PatchError, RETAIN_KEYS, SET_ORDER, Strategy, go_text, rules_for,
    rules_for_list, same_type,
};
use crate::schema::TypeRef;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// Where each identity is first in an order. Lists may be long, so they are not searched for each
/// element.
fn places(order: &Order) -> HashMap<Option<&Value>, usize> {
    let mut places = HashMap::with_capacity(order.len());
    for (at, identity) in order.iter().enumerate() {
        places.entry(identity.as_ref()).or_insert(at);
    }
    places
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
    let no_map = order.iter().position(|place| !place.is_object());
    let mut places = HashMap::with_capacity(order.len());
    for (at, place) in order.iter().enumerate() {
        places.entry(place.get(merge_key)).or_insert(at);
    }
    for item in list {
        let found = places.get(&Some(merge_key_of(item, merge_key)?));
        if let Some(at) = no_map.filter(|at| found.is_none_or(|found| found > at)) {
            return Err(PatchError::Invalid(format!(
                "value for key {at} is not a map"
            )));
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
    let mut kept = Vec::with_capacity(list.len());
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
        kept.push(item);
    }
    let places = places(order);
    let at: Vec<Option<usize>> = kept
        .iter()
        .map(|item| places.get(&identity(item, merge_key, elements)).copied())
        .collect();
    let mut kept: Vec<Option<Value>> = kept.into_iter().map(Some).collect();
    Ok(insertion_order(&at)
        .into_iter()
        .filter_map(|i| kept[i].take())
        .chain(deleted)
        .collect())
}

/// The order in which an insertion sort by these positions leaves the elements. As in kubectl, an
/// element whose position is unknown on either side moves towards the front.
///
/// The sort puts each element right behind another one, its parent, or at the front: one with a
/// position behind the last of those with the same position or the next smaller one, and one
/// without at the front. What comes later is closer to the parent. So the result is the tree of
/// parents, each before its children and the youngest child first, which takes no moves.
fn insertion_order(positions: &[Option<usize>]) -> Vec<usize> {
    // Elements count from 1; 0 is the front.
    let mut youngest = vec![0; positions.len() + 1];
    let mut older = vec![0; positions.len() + 1];
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (element, at) in (1..).zip(positions) {
        let parent = at.and_then(|at| last.range(..=at).next_back().map(|(_, parent)| *parent));
        let parent = parent.unwrap_or(0);
        older[element] = youngest[parent];
        youngest[parent] = element;
        if let Some(at) = at {
            last.insert(*at, element);
        }
    }
    let mut sorted = Vec::with_capacity(positions.len());
    let mut waiting = vec![youngest[0]];
    while let Some(element) = waiting.pop() {
        if element > 0 {
            sorted.push(element - 1);
            waiting.push(older[element]);
            waiting.push(youngest[element]);
        }
    }
    sorted
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
    let places = places(server_order);
    let place = |item: &Value| places.get(&identity(item, merge_key, elements)).copied();
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
    let places = places(by);
    for item in list {
        if elements == Elements::Maps {
            merge_key_of(&item, merge_key)?;
        }
        if places.contains_key(&identity(&item, merge_key, elements)) {
            named.push(item)
        } else {
            others.push(item)
        }
    }
    Ok((named, others))
}

/// Removes later duplicates; the last element moves to the position of a removed one.
pub(super) fn deduplicate(list: Vec<Value>) -> Vec<Value> {
    // Equal elements have the same number.
    let mut numbers: HashMap<&Value, usize> = HashMap::with_capacity(list.len());
    let mut same = Vec::with_capacity(list.len());
    for item in &list {
        let next = numbers.len();
        same.push(*numbers.entry(item).or_insert(next));
    }
    let distinct = numbers.len();
    drop(numbers);
    if distinct == list.len() {
        return list;
    }
    let mut places = vec![BTreeSet::new(); distinct];
    for (at, number) in same.iter().enumerate() {
        places[*number].insert(at);
    }
    // The elements by where they were.
    let mut left: Vec<usize> = (0..list.len()).collect();
    let mut i = 0;
    while i < left.len() {
        let number = same[left[i]];
        while let Some(at) = places[number].range(i + 1..).next().copied() {
            places[number].remove(&at);
            left.swap_remove(at);
            if let Some(moved) = left.get(at) {
                let moved = &mut places[same[*moved]];
                moved.remove(&left.len());
                moved.insert(at);
            }
        }
        i += 1;
    }
    let mut list: Vec<Option<Value>> = list.into_iter().map(Some).collect();
    left.into_iter().filter_map(|at| list[at].take()).collect()
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
