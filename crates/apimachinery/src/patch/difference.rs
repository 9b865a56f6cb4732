//! The patch that turns one document into another and keeps the other's nulls, which a JSON merge
//! patch cannot express.
//!
//! Main function: [`between`]. It knows nothing of Kubernetes types.

use super::{PatchError, json_merge};
use serde_json::{Map, Value, json};

/// How to send the difference between two documents.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// A JSON merge patch. An empty map means that there is no difference.
    Merge(Value),
    /// The operations of a JSON patch: the new document has nulls where it differs, and a merge
    /// patch would remove these fields.
    Operations(Vec<Value>),
}

/// Computes the patch from `from` to `to`. `from` may contain only some fields of what is `stored`;
/// the other stored fields stay.
pub fn between(
    from: &Value,
    to: &Value,
    stored: impl FnOnce() -> Result<Value, PatchError>,
) -> Result<Difference, PatchError> {
    if !has_new_nulls(from, to) {
        return json_merge::create_two_way(from, to).map(Difference::Merge);
    }
    let stored = stored()?;
    let mut operations = Vec::new();
    match (from, to, &stored) {
        (Value::Object(from), Value::Object(to), Value::Object(stored)) => {
            collect(from, to, stored, "", &mut operations)
        }
        _ => {
            return Err(PatchError::Invalid(
                "invalid JSON document: it must be a map".to_owned(),
            ));
        }
    }
    Ok(Difference::Operations(operations))
}

/// Whether a map has a null where `to` differs from `from`.
fn has_new_nulls(from: &Value, to: &Value) -> bool {
    match (from, to) {
        (from, to) if from == to => false,
        (Value::Object(from), Value::Object(to)) => {
            to.iter().any(|(key, new)| match from.get(key) {
                Some(old) => old != new && (new.is_null() || has_new_nulls(old, new)),
                None => new.is_null() || has_nulls(new),
            })
        }
        (_, to) => has_nulls(to),
    }
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .values()
            .any(|value| value.is_null() || has_nulls(value)),
        // A null that is an element of a list stays in a merge patch.
        Value::Array(list) => list.iter().any(has_nulls),
        _ => false,
    }
}

fn collect(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    stored: &Map<String, Value>,
    path: &str,
    operations: &mut Vec<Value>,
) {
    let at = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for (key, new) in to {
        match (from.get(key), new, stored.get(key)) {
            (Some(old), new, _) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new), Some(Value::Object(stored))) => {
                collect(old, new, stored, &at(key), operations)
            }
            (_, new, _) => operations.push(json!({"op": "add", "path": at(key), "value": new})),
        }
    }
    for key in from
        .keys()
        .filter(|key| !to.contains_key(*key) && stored.contains_key(*key))
    {
        operations.push(json!({"op": "remove", "path": at(key)}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried_out(from: &Value, to: &Value, stored: &Value) -> (bool, Value) {
        match between(from, to, || Ok(stored.clone())).expect("two maps") {
            Difference::Merge(patch) => (false, json_merge::apply(stored, &patch).expect("a map")),
            Difference::Operations(list) => (
                true,
                super::super::json::apply(stored, &json!(list)).expect("it applies"),
            ),
        }
    }

    #[test]
    fn nulls_of_the_new_document_stay_and_what_is_stored_beside_it_too() {
        for (from, to, by_operations) in [
            (json!({"a": 1}), json!({"a": 2}), false),
            (
                json!({"a": {"b": 1, "c": 1}}),
                json!({"a": {"c": 2}}),
                false,
            ),
            (json!({"a": [null]}), json!({"a": [null, 1]}), false),
            (
                json!({"v": {"x": null}, "n": 1}),
                json!({"v": {"x": null}, "n": 2}),
                false,
            ),
            (json!({"v": {"x": null}}), json!({}), false),
            (json!({"v": {"x": 1}}), json!({"v": {"x": null}}), true),
            (json!({}), json!({"v": {"x": {"y": null}}}), true),
            (json!({"l": []}), json!({"l": [{"v": {"x": null}}]}), true),
            (
                json!({"a": {"b": 1}, "s/t~": 1}),
                json!({"a": {"n": {"x": null}}}),
                true,
            ),
            (json!({"v": "text"}), json!({"v": {"x": null}}), true),
        ] {
            let beside = |document: &Value| {
                let mut document = document.clone();
                document["beside"] = json!({"x": null});
                document
            };
            assert_eq!(
                carried_out(&from, &to, &beside(&from)),
                (by_operations, beside(&to)),
                "{from} -> {to}"
            );
        }
    }

    #[test]
    fn parts_that_are_not_stored_are_added_whole_and_not_removed() {
        // A parsed value contains defaults that were never stored.
        let from = json!({"status": {"sync": {"status": ""}, "gone": 1}});
        let to = json!({"status": {"sync": {"status": "Synced", "v": {"x": null}}}});
        assert_eq!(
            carried_out(&from, &to, &json!({"kind": "A"})),
            (true, json!({"kind": "A", "status": to["status"]}))
        );
        let stored = json!({"status": {"other": 1}});
        assert_eq!(
            carried_out(&from, &to, &stored),
            (
                true,
                json!({"status": {"other": 1, "sync": to["status"]["sync"]}})
            )
        );
    }
}
