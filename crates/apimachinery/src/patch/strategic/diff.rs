//! The difference between two documents, as a strategic merge patch.

use super::{
    DELETE_FROM_LIST, FieldRules, PATCH, RETAIN_KEYS, SET_ORDER, Strategy, go_text,
    lists::{
        Elements, deduplicate, element_type, expect_map, merge_key_of, order_of, sort_by_order,
        sort_scalars, sorted_by_key,
    },
    rules_for, rules_for_list, same_type,
};
use crate::{patch::PatchError, schema::TypeRef};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

/// Which parts of the difference the patch contains.
#[derive(Clone, Copy, Default)]
pub(in crate::patch) struct DiffOptions {
    pub set_element_order: bool,
    pub ignore_changes_and_additions: bool,
    pub ignore_deletions: bool,
    pub retain_keys: bool,
}

type Fields = Map<String, Value>;

pub(in crate::patch) fn diff_maps(
    original: &Fields,
    modified: &Fields,
    ty: TypeRef<'_>,
    options: DiffOptions,
) -> Result<Fields, PatchError> {
    let mut patch = Map::new();
    for (key, new) in modified {
        match original.get(key) {
            Some(old) if key == PATCH => diff_directive(old, new, &mut patch)?,
            Some(Value::Object(old)) if new.is_object() => {
                diff_map_field(key, old, expect_map(new)?, ty, options, &mut patch)?
            }
            Some(Value::Array(old)) if new.is_array() => {
                diff_list_field(key, old, new, ty, options, &mut patch)?
            }
            Some(old) if same_type(old, new) && old == new => {}
            _ => {
                if !options.ignore_changes_and_additions {
                    patch.insert(key.clone(), new.clone());
                }
            }
        }
    }
    if !options.ignore_deletions {
        for key in original.keys().filter(|k| !modified.contains_key(*k)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    if options.retain_keys {
        let more_in_original = || {
            original
                .iter()
                .any(|(k, v)| !v.is_null() && !modified.contains_key(k))
        };
        let keys: Vec<Value> = modified
            .iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, _)| Value::from(k.as_str()))
            .collect();
        if !keys.is_empty() && (!patch.is_empty() || more_in_original()) {
            patch.insert(RETAIN_KEYS.into(), keys.into());
        }
    }
    Ok(patch)
}

fn diff_directive(old: &Value, new: &Value, patch: &mut Fields) -> Result<(), PatchError> {
    if !old.is_string() || !new.is_string() {
        return Err(PatchError::Invalid(format!(
            "invalid value for special key: {PATCH}"
        )));
    }
    if old != new {
        patch.insert(PATCH.into(), new.clone());
    }
    Ok(())
}

fn diff_map_field(
    key: &str,
    old: &Fields,
    new: &Fields,
    ty: TypeRef<'_>,
    options: DiffOptions,
    patch: &mut Fields,
) -> Result<(), PatchError> {
    let rules = match rules_for(ty, key) {
        Ok(rules) => rules,
        Err(_) if old == new => return Ok(()),
        Err(error) => return Err(error),
    };
    if rules.strategy == Strategy::Replace {
        if !options.ignore_changes_and_additions {
            patch.insert(key.into(), Value::Object(new.clone()));
        }
        return Ok(());
    }
    let nested = diff_maps(
        old,
        new,
        rules.ty,
        DiffOptions {
            retain_keys: rules.retain_keys,
            ..options
        },
    )?;
    if !nested.is_empty() {
        patch.insert(key.into(), Value::Object(nested));
    }
    Ok(())
}

fn diff_list_field(
    key: &str,
    old: &[Value],
    new: &Value,
    ty: TypeRef<'_>,
    options: DiffOptions,
    patch: &mut Fields,
) -> Result<(), PatchError> {
    let new_list = new.as_array().map(Vec::as_slice).unwrap_or_default();
    let rules = match rules_for_list(ty, key) {
        Ok(rules) => rules,
        Err(_) if old == new_list => return Ok(()),
        Err(error) => return Err(error),
    };
    if rules.strategy != Strategy::Merge {
        if !options.ignore_changes_and_additions && old != new_list {
            patch.insert(key.into(), new.clone());
        }
        return Ok(());
    }
    let diff = diff_lists(
        old,
        new_list,
        &rules,
        DiffOptions {
            retain_keys: rules.retain_keys,
            ..options
        },
    )?;
    if !diff.changes.is_empty() {
        patch.insert(key.into(), diff.changes.into());
    }
    if !diff.deletions.is_empty() {
        patch.insert(format!("{DELETE_FROM_LIST}/{key}"), diff.deletions.into());
    }
    if !diff.order.is_empty() {
        patch.insert(format!("{SET_ORDER}/{key}"), diff.order.into());
    }
    Ok(())
}

#[derive(Default)]
struct ListDiff {
    changes: Vec<Value>,
    /// For scalars; deleted maps are directives among the changes.
    deletions: Vec<Value>,
    order: Vec<Value>,
}

fn diff_lists(
    old: &[Value],
    new: &[Value],
    rules: &FieldRules<'_>,
    options: DiffOptions,
) -> Result<ListDiff, PatchError> {
    if old.is_empty() {
        let changes = if options.ignore_changes_and_additions {
            Vec::new()
        } else {
            new.to_vec()
        };
        return Ok(ListDiff {
            changes,
            ..ListDiff::default()
        });
    }
    match element_type(&[old, new])? {
        Elements::Maps => diff_lists_of_maps(old, new, rules, options),
        Elements::Scalars => diff_lists_of_scalars(old, new, rules.merge_key, options),
    }
}

fn diff_lists_of_maps(
    old: &[Value],
    new: &[Value],
    rules: &FieldRules<'_>,
    options: DiffOptions,
) -> Result<ListDiff, PatchError> {
    let key = rules.merge_key;
    let (mut changes, mut deletions) = (Vec::new(), Vec::new());
    let (old_sorted, new_sorted) = (sorted_by_key(old, key), sorted_by_key(new, key));
    let (mut i, mut j) = (0, 0);
    while i < old_sorted.len() || j < new_sorted.len() {
        let old_key = old_sorted
            .get(i)
            .map(|v| merge_key_of(v, key))
            .transpose()?;
        let new_key = new_sorted
            .get(j)
            .map(|v| merge_key_of(v, key))
            .transpose()?;
        let order = match (old_key, new_key) {
            (Some(old), Some(new)) => go_text(old).cmp(&go_text(new)),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        if order == Ordering::Equal {
            let mut nested = diff_maps(
                expect_map(old_sorted[i])?,
                expect_map(new_sorted[j])?,
                rules.ty,
                options,
            )?;
            if let (false, Some(new_key)) = (nested.is_empty(), new_key) {
                nested.insert(key.to_owned(), new_key.clone());
                changes.push(Value::Object(nested));
            }
        } else if order == Ordering::Greater {
            if !options.ignore_changes_and_additions {
                changes.push(new_sorted[j].clone());
            }
        } else if let (false, Some(old_key)) = (options.ignore_deletions, old_key) {
            deletions.push(json!({ key: old_key, PATCH: "delete" }));
        }
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    let new_order = order_of(new, key, Elements::Maps);
    let mut changes = sort_by_order(changes, &new_order, key, Elements::Maps)?;
    let same_order = order_of(old, key, Elements::Maps) == new_order;
    changes.extend(deletions);
    let wanted = (!options.ignore_changes_and_additions && (!changes.is_empty() || !same_order))
        || (!options.ignore_deletions && !changes.is_empty());
    let order = if options.set_element_order && wanted {
        new_order
            .into_iter()
            .map(|k| json!({ key: k.unwrap_or(Value::Null) }))
            .collect()
    } else {
        Vec::new()
    };
    Ok(ListDiff {
        changes,
        deletions: Vec::new(),
        order,
    })
}

fn diff_lists_of_scalars(
    old: &[Value],
    new: &[Value],
    merge_key: &str,
    options: DiffOptions,
) -> Result<ListDiff, PatchError> {
    let (mut old_sorted, mut new_sorted) = (old.to_vec(), new.to_vec());
    sort_scalars(&mut old_sorted);
    sort_scalars(&mut new_sorted);
    let (mut additions, mut deletions) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while i < old_sorted.len() || j < new_sorted.len() {
        let order = match (old_sorted.get(i), new_sorted.get(j)) {
            (Some(old), Some(new)) => go_text(old).cmp(&go_text(new)),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Greater if !options.ignore_changes_and_additions => {
                additions.push(new_sorted[j].clone())
            }
            Ordering::Less if !options.ignore_deletions => deletions.push(old_sorted[i].clone()),
            _ => {}
        }
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    let changes = sort_by_order(
        additions,
        &order_of(new, merge_key, Elements::Scalars),
        merge_key,
        Elements::Scalars,
    )?;
    // kubectl compares with the old list as sorted above, so it always sends the order of an
    // unsorted list.
    let wanted = (!options.ignore_deletions && !deletions.is_empty())
        || (!options.ignore_changes_and_additions && old_sorted != new);
    let order = if options.set_element_order && wanted {
        new.to_vec()
    } else {
        Vec::new()
    };
    Ok(ListDiff {
        changes,
        deletions: deduplicate(deletions),
        order,
    })
}
