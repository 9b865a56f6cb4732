//! Strategic merge patch: a merge patch that uses the type to decide which lists are merged by key
//! and which are replaced.
//!
//! Main functions: [`apply`] (what an API server does), [`rest`] (the part of the patch that it
//! quotes in errors) and [`create_two_way`]; [`super::three_way`] builds kubectl's patch from them.
//! Directives: `$patch`, `$retainKeys`, `$setElementOrder/<list>`,
//! `$deleteFromPrimitiveList/<list>`. Unlike a JSON merge patch it refuses nested differences in
//! fields that the type does not have.

mod conflicts;
mod diff;
mod lists;
mod merge;
mod rest;

pub(super) use conflicts::maps_have_conflicts;
pub(super) use diff::{DiffOptions, diff_maps};
pub use lists::sort_merge_lists;
pub(super) use merge::{MergeOptions, merge_maps};
pub use rest::rest;

use super::PatchError;
use crate::schema::{TypeKind, TypeRef};
use serde_json::{Map, Value};

const PATCH: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// Applies a patch to a copy of `doc`. Both must be maps.
pub fn apply(doc: &Value, patch: &Value, ty: TypeRef<'_>) -> Result<Value, PatchError> {
    apply_owned(doc.clone(), patch.clone(), ty)
}

/// The same, consuming the document and the patch.
pub fn apply_owned(doc: Value, patch: Value, ty: TypeRef<'_>) -> Result<Value, PatchError> {
    let options = MergeOptions {
        merge_parallel_lists: true,
        ignore_unmatched_nulls: true,
    };
    Ok(Value::Object(merge_maps(
        owned_map(doc)?,
        owned_map(patch)?,
        ty,
        options,
    )?))
}

/// The patch that turns `original` into `modified`. Null counts as an empty map.
pub fn create_two_way(
    original: &Value,
    modified: &Value,
    ty: TypeRef<'_>,
) -> Result<Value, PatchError> {
    let options = DiffOptions {
        set_element_order: true,
        ..DiffOptions::default()
    };
    Ok(Value::Object(diff_maps(
        as_map(original)?,
        as_map(modified)?,
        ty,
        options,
    )?))
}

fn owned_map(value: Value) -> Result<Map<String, Value>, PatchError> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        _ => Err(not_a_document()),
    }
}

pub(super) fn as_map(value: &Value) -> Result<&Map<String, Value>, PatchError> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(&EMPTY),
        _ => Err(not_a_document()),
    }
}

fn not_a_document() -> PatchError {
    PatchError::Format("invalid JSON document")
}

/// The type's information about one field: its type, and how it is merged.
struct FieldRules<'a> {
    ty: TypeRef<'a>,
    retain_keys: bool,
    strategy: Strategy,
    merge_key: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Merge,
    Replace,
    Unsaid,
}

fn rules_for<'a>(parent: TypeRef<'a>, field: &str) -> Result<FieldRules<'a>, PatchError> {
    let ty = parent
        .field(field)
        .ok_or_else(|| PatchError::UnknownField {
            type_name: parent
                .name()
                .unwrap_or(if parent.kind() == TypeKind::Any {
                    "a value without a schema"
                } else {
                    "the type"
                })
                .to_owned(),
            field: field.to_owned(),
        })?;
    let words = ty.patch_strategy().unwrap_or("");
    let (mut retain_keys, mut strategy) = (false, Strategy::Unsaid);
    for word in words.split(',') {
        match word {
            "retainKeys" => retain_keys = true,
            "merge" if strategy == Strategy::Unsaid => strategy = Strategy::Merge,
            "replace" if strategy == Strategy::Unsaid => strategy = Strategy::Replace,
            "" => {}
            _ => {
                return Err(PatchError::Invalid(format!(
                    "unexpected patch strategy: {words}"
                )));
            }
        }
    }
    Ok(FieldRules {
        ty,
        retain_keys,
        strategy,
        merge_key: ty.patch_merge_key().unwrap_or(""),
    })
}

/// The same for a list; the type is that of its elements.
fn rules_for_list<'a>(parent: TypeRef<'a>, field: &str) -> Result<FieldRules<'a>, PatchError> {
    let mut rules = rules_for(parent, field)?;
    rules.ty = match rules.ty.items() {
        Some(items) => items,
        None if rules.ty.kind() == TypeKind::Map || holds_raw(parent, rules.ty) => {
            // Go's kind of the enclosing struct.
            let around = if is_called(parent, "OpaqueDeviceConfiguration") {
                "ptr"
            } else {
                "struct"
            };
            return Err(PatchError::Invalid(format!(
                "expected slice or array type, but got: {around}"
            )));
        }
        None => rules.ty,
    };
    Ok(rules)
}

fn is_called(ty: TypeRef<'_>, word: &str) -> bool {
    ty.name()
        .is_some_and(|name| name.rsplit('.').next() == Some(word))
}

/// Whether Go holds raw JSON there, and not behind a pointer (the reference implementation does not
/// follow pointers here).
fn holds_raw(parent: TypeRef<'_>, ty: TypeRef<'_>) -> bool {
    is_called(ty, "RawExtension") && !is_called(parent, "AllocatedDeviceStatus")
}

/// A value as Go prints it, for messages and for sorting by merge key: `map[name:web]`, `[a b]`,
/// `<nil>`.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(s) => s.clone(),
        Value::Array(list) => format!(
            "[{}]",
            list.iter().map(go_text).collect::<Vec<_>>().join(" ")
        ),
        Value::Object(map) => {
            format!(
                "map[{}]",
                map.iter()
                    .map(|(k, v)| format!("{k}:{}", go_text(v)))
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        }
        Value::Number(n) => match n.as_f64() {
            // Go's shortest form switches to an exponent below 1e-4 and from 1e21 on.
            Some(f) if n.is_f64() && f != 0.0 && !(1e-4..1e21).contains(&f.abs()) => {
                let text = format!("{f:e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, number) = exponent
                    .strip_prefix('-')
                    .map_or(('+', exponent), |n| ('-', n));
                format!("{digits}e{sign}{number:0>2}")
            }
            Some(f) if n.is_f64() => format!("{f}"),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

/// The same for `%s`, where Go expects a string.
fn go_string(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".into(),
        Value::Bool(flag) => format!("%!s(bool={flag})"),
        Value::Number(n) => format!(
            "%!s({}={})",
            if n.is_f64() { "float64" } else { "int64" },
            go_text(value)
        ),
        Value::Array(list) => format!(
            "[{}]",
            list.iter().map(go_string).collect::<Vec<_>>().join(" ")
        ),
        Value::Object(map) => format!(
            "map[{}]",
            map.iter()
                .map(|(k, v)| format!("{k}:{}", go_string(v)))
                .collect::<Vec<_>>()
                .join(" ")
        ),
    }
}

/// Whether Go decodes both into the same type; integers and floats differ.
fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.is_f64() == b.is_f64(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

#[cfg(test)]
mod tests;
