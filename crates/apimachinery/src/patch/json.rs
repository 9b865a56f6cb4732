//! JSON patch (RFC 6902), with the API server's rules: an operation on a path that does not exist fails.
//!
//! Main function: [`apply`]. It knows nothing of Kubernetes types.

use super::PatchError;
use serde::Deserialize;
use serde_json::Value;

/// Most operations accepted in one patch, as the API server has it.
pub const MAX_OPERATIONS: usize = 10_000;

/// Applies a list of operations to a document. Nothing is changed when one of them fails.
pub fn apply(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = patch.as_array().ok_or_else(|| PatchError::invalid("a JSON patch must be a list of operations"))?;
    if operations.len() > MAX_OPERATIONS {
        let text = format!("the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}", operations.len());
        return Err(PatchError::Invalid(text));
    }
    let parsed = json_patch::Patch::deserialize(patch).map_err(|e| PatchError::invalid(format!("error decoding the JSON patch: {e}")))?;
    let mut result = doc.clone();
    json_patch::patch(&mut result, &parsed).map_err(|e| PatchError::Operation {
        index: e.operation,
        path: e.path.to_string(),
        reason: e.kind.to_string(),
    })?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_apply_in_order() {
        let doc = json!({"metadata": {"annotations": {"a/b": "1"}}, "list": [1, 3]});
        let patch = json!([
            {"op": "test", "path": "/list/0", "value": 1},
            {"op": "add", "path": "/list/1", "value": 2},
            {"op": "add", "path": "/list/-", "value": 4},
            {"op": "remove", "path": "/metadata/annotations/a~1b"},
            {"op": "replace", "path": "/list/0", "value": 0},
            {"op": "copy", "from": "/list/0", "path": "/first"},
            {"op": "move", "from": "/first", "path": "/moved"},
        ]);
        assert_eq!(apply(&doc, &patch), Ok(json!({"metadata": {"annotations": {}}, "list": [0, 2, 3, 4], "moved": 0})));
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let doc = json!({"a": {}});
        for patch in [
            json!([{"op": "remove", "path": "/b"}]),
            json!([{"op": "replace", "path": "/a/b", "value": 1}]),
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            json!([{"op": "test", "path": "/a", "value": 1}]),
            json!([{"op": "nonsense", "path": "/a"}]),
            json!({"a": 1}),
        ] {
            assert!(apply(&doc, &patch).is_err(), "{patch}");
        }
    }

    #[test]
    fn the_error_names_the_operation() {
        let patch = json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]);
        match apply(&json!({}), &patch) {
            Err(PatchError::Operation { index, path, .. }) => assert_eq!((index, path.as_str()), (1, "/b")),
            other => panic!("{other:?}"),
        }
    }
}
