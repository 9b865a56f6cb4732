//! Detects whether two patches change the same field differently.

use super::{
    PATCH, RETAIN_KEYS, Strategy, go_text,
    lists::{Elements, deduplicate, element_type, sort_scalars},
    rules_for, rules_for_list,
};
use crate::{patch::PatchError, schema::TypeRef};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

type Fields = Map<String, Value>;

pub(in crate::patch) fn maps_have_conflicts(
    left: &Fields,
    right: &Fields,
    ty: TypeRef<'_>,
) -> Result<bool, PatchError> {
    map_values(left, right, ty, Strategy::Unsaid)
}

/// A directive affects the whole map: it conflicts with anything except the same directive.
fn map_values(
    left: &Fields,
    right: &Fields,
    ty: TypeRef<'_>,
    strategy: Strategy,
) -> Result<bool, PatchError> {
    if left.get(PATCH) != right.get(PATCH) {
        return Ok(true);
    }
    if strategy == Strategy::Replace {
        return Ok(false);
    }
    for (key, left) in left
        .iter()
        .filter(|(k, _)| *k != PATCH && *k != RETAIN_KEYS)
    {
        let Some(right) = right.get(key) else {
            continue;
        };
        let conflict = match (left, right) {
            (Value::Object(left), _) => {
                let rules = rules_for(ty, key)?;
                match right {
                    Value::Object(right) => map_values(left, right, rules.ty, rules.strategy)?,
                    _ => true,
                }
            }
            (Value::Array(left), _) => {
                let rules = rules_for_list(ty, key)?;
                match right {
                    Value::Array(right) => {
                        lists(left, right, rules.ty, rules.strategy, rules.merge_key)?
                    }
                    _ => true,
                }
            }
            (left, right) => left != right,
        };
        if conflict {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lists(
    left: &[Value],
    right: &[Value],
    ty: TypeRef<'_>,
    strategy: Strategy,
    merge_key: &str,
) -> Result<bool, PatchError> {
    let elements = element_type(&[left, right])?;
    if strategy == Strategy::Merge {
        if elements == Elements::Scalars {
            return Ok(false);
        }
        let (left, right) = (by_key(left, merge_key)?, by_key(right, merge_key)?);
        return any(
            left.iter()
                .filter_map(|(key, left)| right.get(key).map(|right| (*left, *right))),
            ty,
        );
    }
    if left.len() != right.len() {
        return Ok(true);
    }
    if elements == Elements::Maps {
        return any(left.iter().zip(right), ty);
    }
    let sorted = |list: &[Value]| {
        let mut list = deduplicate(list.to_vec());
        sort_scalars(&mut list);
        list
    };
    // As in kubectl, only the left list's length counts after duplicates were removed.
    let (left, right) = (sorted(left), sorted(right));
    Ok(left
        .iter()
        .enumerate()
        .any(|(i, value)| right.get(i) != Some(value)))
}

fn any<'v>(
    mut pairs: impl Iterator<Item = (&'v Value, &'v Value)>,
    ty: TypeRef<'_>,
) -> Result<bool, PatchError> {
    pairs.try_fold(false, |found, (left, right)| match (left, right) {
        _ if found => Ok(true),
        (Value::Object(left), Value::Object(right)) => {
            map_values(left, right, ty, Strategy::Unsaid)
        }
        (left, right) => Ok(left != right),
    })
}

fn by_key<'v>(
    list: &'v [Value],
    merge_key: &str,
) -> Result<BTreeMap<String, &'v Value>, PatchError> {
    let keyed = |item: &'v Value| match item.get(merge_key) {
        Some(key) => Ok((go_text(key), item)),
        None => Err(PatchError::Invalid(format!(
            "cannot find merge key `{merge_key}` in merging list element:{}",
            go_text(item)
        ))),
    };
    list.iter().map(keyed).collect()
}
