//! What remains of a strategic merge patch after merging: the reference implementation consumes the
//! parts that it merges, and an API server quotes the rest if the result cannot be decoded. Parts
//! that the patch adds to a document stay shared with the patch, so a later change affects both.
//! Main function: [`rest`].

use super::{
    DELETE_FROM_LIST, PATCH, RETAIN_KEYS, SET_ORDER, Strategy, rules_for, rules_for_list, same_type,
};
use crate::schema::TypeRef;
use serde_json::Value;
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

/// The rest of a patch after applying it to `doc`.
pub fn rest(doc: &Value, patch: &Value, ty: TypeRef<'_>) -> Value {
    let (doc, patch) = (Part::of(doc), Part::of(patch));
    if let (Part::Map(doc), Part::Map(patch)) = (&doc, &patch) {
        merge(doc, patch, ty);
    }
    patch.value()
}

/// A value whose maps may be shared.
#[derive(Clone)]
enum Part {
    Leaf(Value),
    List(Vec<Part>),
    Map(Fields),
}

type Fields = Rc<RefCell<BTreeMap<String, Part>>>;

impl Part {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(map) => Self::Map(Rc::new(RefCell::new(
                map.iter()
                    .map(|(key, value)| (key.clone(), Self::of(value)))
                    .collect(),
            ))),
            Value::Array(list) => Self::List(list.iter().map(Self::of).collect()),
            leaf => Self::Leaf(leaf.clone()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Map(map) => Value::Object(
                map.borrow()
                    .iter()
                    .map(|(key, part)| (key.clone(), part.value()))
                    .collect(),
            ),
            Self::List(list) => Value::Array(list.iter().map(Self::value).collect()),
            Self::Leaf(leaf) => leaf.clone(),
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Leaf(Value::Null))
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(a), Self::Leaf(b)) => same_type(a, b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn field(&self, key: &str) -> Option<Value> {
        let Self::Map(map) = self else { return None };
        map.borrow().get(key).map(Self::value)
    }
}

/// Merges into `doc`, which may be shared with the patch afterwards.
fn merge(doc: &Fields, patch: &Fields, ty: TypeRef<'_>) -> Fields {
    let directive = patch.borrow().get(PATCH).map(Part::value);
    if let Some(directive) = directive {
        if directive == "replace" {
            patch.borrow_mut().remove(PATCH);
            return patch.clone();
        }
        return Fields::default();
    }
    if let Some(Part::List(kept)) = patch.borrow_mut().remove(RETAIN_KEYS) {
        doc.borrow_mut()
            .retain(|key, _| kept.iter().any(|named| named.value() == *key));
    }
    merge_ordered_lists(doc, patch, ty);
    let keys: Vec<String> = patch.borrow().keys().cloned().collect();
    for key in keys {
        merge_field(doc, patch, &key, ty);
    }
    doc.clone()
}

/// Merges a list with its order; both are consumed.
fn merge_ordered_lists(doc: &Fields, patch: &Fields, ty: TypeRef<'_>) {
    let fields = |key: &String| Some(key.strip_prefix(SET_ORDER)?.strip_prefix('/')?.to_owned());
    let ordered: Vec<String> = patch.borrow().keys().filter_map(fields).collect();
    patch
        .borrow_mut()
        .retain(|key, _| !key.starts_with(SET_ORDER));
    for field in ordered {
        merge_field(doc, patch, &field, ty);
        patch.borrow_mut().remove(&field);
    }
}

fn merge_field(doc: &Fields, patch: &Fields, key: &str, ty: TypeRef<'_>) {
    let Some(new) = patch.borrow().get(key).cloned() else {
        return;
    };
    if key.starts_with(DELETE_FROM_LIST) {
        return;
    }
    if new.is_null() {
        doc.borrow_mut().remove(key);
        return;
    }
    let old = doc
        .borrow()
        .get(key)
        .filter(|old| old.is_like(&new))
        .cloned();
    let merged = match (old, &new) {
        (None, new) => {
            discard_nulls(new);
            without_directives(new)
        }
        (Some(Part::Map(old)), Part::Map(new)) => match rules_for(ty, key) {
            Ok(rules) if rules.strategy != Strategy::Replace => {
                Some(Part::Map(merge(&old, new, rules.ty)))
            }
            _ => Some(Part::Map(new.clone())),
        },
        (Some(Part::List(old)), Part::List(new)) => match rules_for_list(ty, key) {
            Ok(rules) if rules.strategy == Strategy::Merge => {
                Some(Part::List(merge_lists(old, new, rules.ty, rules.merge_key)))
            }
            _ => Some(Part::List(new.clone())),
        },
        (Some(_), new) => Some(new.clone()),
    };
    match merged {
        Some(merged) => doc.borrow_mut().insert(key.to_owned(), merged),
        None => doc.borrow_mut().remove(key),
    };
}

fn merge_lists(mut old: Vec<Part>, new: &[Part], ty: TypeRef<'_>, merge_key: &str) -> Vec<Part> {
    let (directives, items): (Vec<&Part>, Vec<&Part>) =
        new.iter().partition(|item| item.field(PATCH).is_some());
    if directives
        .iter()
        .any(|item| item.field(PATCH) == Some("replace".into()))
    {
        return items.into_iter().cloned().collect();
    }
    old.retain(|item| {
        item.field(merge_key).is_none()
            || directives
                .iter()
                .all(|gone| gone.field(merge_key) != item.field(merge_key))
    });
    for item in items {
        let known = item.field(merge_key);
        let same = old
            .iter_mut()
            .find(|old| known.is_some() && old.field(merge_key) == known);
        match (same, item) {
            (Some(Part::Map(old)), Part::Map(new)) => *old = merge(old, new, ty),
            _ => old.push(item.clone()),
        }
    }
    old
}

fn discard_nulls(part: &Part) {
    match part {
        Part::Map(map) => {
            map.borrow_mut().retain(|_, part| !part.is_null());
            map.borrow().values().for_each(discard_nulls);
        }
        Part::List(list) => list.iter().for_each(discard_nulls),
        Part::Leaf(_) => {}
    }
}

/// Removes directives from maps and everything in them; a list that is not in a map keeps its own.
fn without_directives(part: &Part) -> Option<Part> {
    match part {
        Part::Map(map) if map.borrow().contains_key(PATCH) => None,
        Part::Map(map) => {
            let mut fields = map.borrow_mut();
            let kept = std::mem::take(&mut *fields)
                .into_iter()
                .filter_map(|(key, part)| Some((key, without_directives(&part)?)))
                .collect();
            *fields = kept;
            drop(fields);
            Some(part.clone())
        }
        Part::List(list) => Some(Part::List(
            list.iter().filter_map(without_directives).collect(),
        )),
        Part::Leaf(_) => Some(part.clone()),
    }
}
