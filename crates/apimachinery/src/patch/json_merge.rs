//! JSON merge patch (RFC 7386): how the API server applies it and how kubectl creates it for kinds
//! without a schema.
//!
//! Main functions: [`apply`], [`create_two_way`], [`create_three_way`]. They know nothing of
//! Kubernetes types.

use super::PatchError;
use serde_json::{Map, Value};

/// Applies `patch` to a copy of `doc`.
pub fn apply(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut result = doc.clone();
    apply_in_place(&mut result, patch)?;
    Ok(result)
}

/// Applies `patch`, which must be a map. A null removes a field; nulls in new content are dropped.
pub fn apply_in_place(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if !patch.is_object() {
        return Err(PatchError::invalid("a JSON merge patch must be a map"));
    }
    merge(doc, patch);
    Ok(())
}

fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(target), Value::Object(patch)) = (&mut *target, patch) else {
        *target = without_nulls(patch);
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
            continue;
        }
        match target.get_mut(key) {
            Some(Value::Object(_)) if !value.is_object() => {
                // A map that replaces a scalar or list is inserted unchanged.
                target.insert(key.clone(), value.clone());
            }
            Some(old) if !old.is_null() => merge(old, value),
            _ => {
                target.insert(key.clone(), without_nulls(value));
            }
        }
    }
}

/// A copy without the null fields of its maps; nulls that are list elements stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k.clone(), without_nulls(v)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The patch that turns `from` into `to`. Both must be maps.
pub fn create_two_way(from: &Value, to: &Value) -> Result<Value, PatchError> {
    Ok(Value::Object(difference(as_map(from)?, as_map(to)?)))
}

fn as_map(value: &Value) -> Result<&Map<String, Value>, PatchError> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(&EMPTY),
        _ => Err(PatchError::invalid(
            "invalid JSON document: it must be a map",
        )),
    }
}

fn difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, new) in to {
        match (from.get(key), new) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let nested = difference(old, new);
                if !nested.is_empty() {
                    patch.insert(key.clone(), nested.into());
                }
            }
            (Some(old), new) if old == new => {}
            _ => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    for key in from.keys().filter(|k| !to.contains_key(*k)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

/// kubectl's patch for a kind without a schema: changes from `current` to `modified`, deletions
/// from `original` to `modified`. It is a conflict if a field is both deleted and changed.
pub fn create_three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
) -> Result<Value, PatchError> {
    let changes = filter_null(&create_two_way(current, modified)?, false);
    let deletions = filter_null(&create_two_way(original, modified)?, true);
    if has_conflicts(&changes, &deletions) {
        return Err(PatchError::Conflict {
            patch: super::three_way::pretty(&changes),
            changed: super::three_way::pretty(&deletions),
        });
    }
    let mut patch = deletions;
    merge(&mut patch, &changes);
    Ok(patch)
}

/// Keeps only the null fields of a map (`keep_only_null`), or all other fields. Maps that become
/// empty are dropped.
pub fn filter_null(value: &Value, keep_only_null: bool) -> Value {
    let Value::Object(map) = value else {
        return value.clone();
    };
    let mut kept = Map::new();
    for (key, value) in map {
        match value {
            Value::Null if keep_only_null => {
                kept.insert(key.clone(), Value::Null);
            }
            Value::Null => {}
            Value::Object(inner) if !inner.is_empty() => {
                let inner = filter_null(value, keep_only_null);
                if inner.as_object().is_some_and(|m| !m.is_empty()) {
                    kept.insert(key.clone(), inner);
                }
            }
            // An empty map is a value; lists are replaced as a whole.
            other if !keep_only_null => {
                kept.insert(key.clone(), other.clone());
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

/// Whether two patches set something to different values.
pub fn has_conflicts(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => left.iter().any(|(key, left)| {
            right
                .get(key)
                .is_some_and(|right| has_conflicts(left, right))
        }),
        (Value::Array(left), Value::Array(right)) => {
            left.len() != right.len()
                || left
                    .iter()
                    .zip(right)
                    .any(|(left, right)| has_conflicts(left, right))
        }
        (left, right) => left != right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merging() {
        for (doc, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!({"a": [1, 2]}),
                json!({"a": [{"b": null}]}),
                json!({"a": [{}]}),
            ),
        ] {
            assert_eq!(apply(&doc, &patch), Ok(expected), "{doc} + {patch}");
        }
        assert!(apply(&json!({}), &json!([1])).is_err());
    }

    #[test]
    fn three_way_keeps_what_others_added() {
        let (original, modified, current) = (
            json!({"a": 1, "b": 2}),
            json!({"a": 2}),
            json!({"a": 1, "b": 2, "c": 3}),
        );
        assert_eq!(
            create_three_way(&original, &modified, &current),
            Ok(json!({"a": 2, "b": null}))
        );
    }
}
