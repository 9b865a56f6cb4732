//! JSON patch (RFC 6902), with the rules of the library used by API servers and Argo CD: negative
//! indices count from the end, a `replace` in a map may add, a `copy` from a missing path copies
//! null, and all copies together may add at most 3 MiB. In addition, no operation may nest a
//! document deeper than [`MAX_DEPTH`], which is the deepest that can be parsed again.
//!
//! Main function: [`apply`]. It knows nothing of Kubernetes types.

use super::PatchError;
use crate::object::is_deeper_than;
use serde_json::{Map, Value};
use tiphys_gocompat::json::kind;

/// The API server's limit on the operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// The API server's limit on the bytes of JSON that all `copy` operations of a patch may add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Maximum nesting of maps and lists in a document after an operation added something.
pub const MAX_DEPTH: usize = 127;
/// Limit on the values that all operations of a patch may move deeper; each one is visited to
/// compute its depth.
const MAX_SUNK: usize = 10_000_000;

/// The resources used so far by the operations of a patch.
#[derive(Default)]
struct Spent {
    copied: usize,
    sunk: usize,
}

/// Applies a list of operations to a document. If one of them fails, nothing is changed.
pub fn apply(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut result = doc.clone();
    apply_in_place(&mut result, patch)?;
    Ok(result)
}

/// The same, for a document that is not needed any more if an operation fails.
pub fn apply_in_place(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Invalid(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
            kind(patch)
        )));
    };
    if let Some(wrong) = operations.iter().find(|o| !o.is_object() && !o.is_null()) {
        return Err(PatchError::Invalid(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
            kind(wrong)
        )));
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations {
            limit: MAX_OPERATIONS,
            got: operations.len(),
        });
    }
    let mut spent = Spent::default();
    for (index, operation) in operations.iter().enumerate() {
        carry_out(doc, operation, &mut spent).map_err(|refused| match refused {
            Refused::Test(reason) => PatchError::TestFailed { index, reason },
            Refused::Other(reason) => PatchError::Operation { index, reason },
        })?;
    }
    Ok(())
}

/// Why an operation fails: its test does not hold, or it does not fit the document.
enum Refused {
    Test(String),
    Other(String),
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

fn carry_out(doc: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), Refused> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    if !matches!(
        kind,
        "add" | "remove" | "replace" | "move" | "test" | "copy"
    ) {
        return Err(format!("Unexpected kind: {kind}").into());
    }
    let from = match kind {
        "move" | "copy" => text("from").ok_or(format!(
            "{kind} operation failed to decode from: operation, missing from field: missing value"
        ))?,
        _ => "",
    };
    let field = if matches!(kind, "replace" | "move" | "test") {
        "operation missing path field: "
    } else {
        ""
    };
    let path = text("path").ok_or(format!(
        "{kind} operation failed to decode path: {field}missing value"
    ))?;
    let value = operation.get("value");
    if matches!(kind, "add" | "replace") {
        fits(path, value.unwrap_or(&Value::Null))?;
    }
    let done = match kind {
        "add" => {
            let at = locate(doc, path).ok_or(format!(
                "add operation does not apply: doc is missing path: \"{path}\": missing value"
            ))?;
            add(at, value.cloned().unwrap_or_default())
                .map_err(|e| format!("error in add for path: '{path}': {e}"))
        }
        "remove" => {
            let at = locate(doc, path).ok_or(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            ))?;
            remove(at)
                .map(drop)
                .map_err(|e| format!("error in remove for path: '{path}': {e}"))
        }
        "replace" => replace(doc, path, value.cloned().unwrap_or_default()),
        "test" => return test(doc, path, value.unwrap_or(&Value::Null)),
        "move" => {
            let at = locate(doc, from).ok_or(format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            ))?;
            let key = at.1.clone();
            let value = remove(at).map_err(|e| format!("error in move for path: '{key}': {e}"))?;
            if steps(path) > steps(from) {
                spent.sunk += count(&value);
                if spent.sunk > MAX_SUNK {
                    return Err(format!(
                        "Unable to complete the move, more than {MAX_SUNK} values were moved further down"
                    )
                    .into());
                }
                fits(path, &value)?;
            }
            let at = locate(doc, path)
                .ok_or(format!("move operation does not apply: doc is missing destination path: {path}: missing value"))?;
            add(at, value).map_err(|e| format!("error in move for path: '{path}': {e}"))
        }
        _ => {
            let at = locate(doc, from).ok_or(format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            ))?;
            let value = get(at.0, &at.1)
                .map_err(|e| format!("error in copy for from: '{from}': {e}"))?
                .cloned()
                .unwrap_or_default();
            let at = locate(doc, path)
                .ok_or(format!("copy operation does not apply: doc is missing destination path: {path}: missing value"))?;
            fits(path, &value)?;
            spent.copied += value.to_string().len();
            let copied = spent.copied;
            if copied > MAX_COPIED_BYTES {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED_BYTES}"
                )
                .into());
            }
            add(at, value).map_err(|e| format!("error while adding value during copy: {e}"))
        }
    };
    done.map_err(Refused::Other)
}

fn steps(path: &str) -> usize {
    path.matches('/').count()
}

/// Whether the document stays within the depth limit with the value at this path.
fn fits(path: &str, value: &Value) -> Result<(), String> {
    let levels = MAX_DEPTH.checked_sub(steps(path));
    match levels {
        Some(levels) if !is_deeper_than(value, levels) => Ok(()),
        _ => Err(format!(
            "exceeded max depth: the document would have more than {MAX_DEPTH} levels"
        )),
    }
}

/// The number of values in a document within the depth limit.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

fn replace(doc: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array: %!w(<nil>)".into());
        }
        *doc = value;
        return Ok(());
    }
    let missing = |what: &str| {
        format!("replace operation does not apply: doc is missing {what}: {path}: missing value")
    };
    let (container, key) = locate(doc, path).ok_or_else(|| missing("path"))?;
    get(container, &key).map_err(|_| missing("key"))?;
    match container {
        Value::Array(list) => {
            let index = index_of(&key, list.len()).map_err(|_| missing("key"))?;
            list[index] = value;
        }
        Value::Object(map) => {
            map.insert(key, value);
        }
        _ => return Err(missing("path")),
    }
    Ok(())
}

fn test(doc: &mut Value, path: &str, wanted: &Value) -> Result<(), Refused> {
    let failed = || Refused::Test(format!("testing value {path} failed: test failed"));
    if path.is_empty() {
        return if same(doc, wanted) {
            Ok(())
        } else {
            Err(failed())
        };
    }
    let (container, key) = locate(doc, path).ok_or(format!(
        "test operation does not apply: is missing path: {path}: missing value"
    ))?;
    let found =
        get(container, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
    if same(found.unwrap_or(&Value::Null), wanted) {
        Ok(())
    } else {
        Err(failed())
    }
}

/// Whether a test succeeds. The API server fails when it compares a null list element, so lists
/// with one are never equal.
fn same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| !a.is_null() && !b.is_null() && same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => found == wanted,
    }
}

/// The map or list that contains the path's target, and the last path element. Text before the
/// first slash is ignored.
fn locate<'d>(doc: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    let mut steps = path
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut last = steps.next()?;
    let mut at = doc;
    for next in steps {
        at = match at {
            Value::Object(map) => map.get_mut(&last)?,
            Value::Array(list) => {
                let index = index_of(&last, list.len()).ok()?;
                &mut list[index]
            }
            _ => return None,
        };
        last = next;
    }
    (at.is_object() || at.is_array()).then_some((at, last))
}

fn get<'d>(container: &'d Value, key: &str) -> Result<Option<&'d Value>, String> {
    match container {
        Value::Array(list) => index_of(key, list.len()).map(|index| list.get(index)),
        other => Ok(other.get(key)),
    }
}

fn add((container, key): (&mut Value, String), value: Value) -> Result<(), String> {
    match container {
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            if let Err(why) = parse_index(&key) {
                return Err(format!(
                    "value was not a proper array index: '{key}': {why}"
                ));
            }
            // The index after the last element is valid, too.
            let index = index_of(&key, list.len() + 1)?;
            list.insert(index, value);
        }
        Value::Object(map) => {
            map.insert(key, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove((container, key): (&mut Value, String)) -> Result<Value, String> {
    match container {
        Value::Array(list) => index_of(&key, list.len()).map(|index| list.remove(index)),
        Value::Object(map) => remove_key(map, &key),
        _ => Ok(Value::Null),
    }
}

fn remove_key(map: &mut Map<String, Value>, key: &str) -> Result<Value, String> {
    map.remove(key)
        .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
}

fn parse_index(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("strconv.Atoi: parsing {text:?}: invalid syntax"))
}

/// An index in a list of this length; -1 is the last one.
fn index_of(text: &str, length: usize) -> Result<usize, String> {
    let index = parse_index(text)?;
    let length = length as i64;
    if !(-length..length).contains(&index) {
        return Err(format!(
            "Unable to access invalid index: {index}: invalid index referenced"
        ));
    }
    Ok(if index < 0 { index + length } else { index } as usize)
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
        assert_eq!(
            apply(&doc, &patch),
            Ok(json!({"metadata": {"annotations": {}}, "list": [0, 2, 3, 4], "moved": 0}))
        );
    }

    #[test]
    fn no_operation_nests_a_document_without_end() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
        let path = |steps: usize| "/a".repeat(steps);
        let document = deep(MAX_DEPTH);
        let apply = |operations: Value| apply(&document, &operations);
        for operation in [
            json!({"op": "add", "path": path(MAX_DEPTH), "value": {}}),
            json!({"op": "replace", "path": path(MAX_DEPTH), "value": []}),
            json!({"op": "copy", "from": path(MAX_DEPTH - 1), "path": path(MAX_DEPTH)}),
            json!({"op": "add", "path": path(100_000), "value": 1}),
        ] {
            let refused = apply(json!([operation]));
            assert!(
                refused.is_err_and(|e| e.to_string().starts_with("exceeded max depth")),
                "{}",
                operation["op"]
            );
        }
        assert!(apply(json!([{"op": "add", "path": path(MAX_DEPTH), "value": 2}])).is_ok());
        assert!(
            apply(json!([{"op": "replace", "path": path(1), "value": deep(MAX_DEPTH - 1)}]))
                .is_ok()
        );
        // Each `move` increases the depth created by the previous one.
        let sink = json!([
            {"op": "add", "path": "/b", "value": {}},
            {"op": "move", "from": "/a", "path": "/b/a"},
        ]);
        assert!(apply(sink).is_err_and(|e| e.to_string().starts_with("exceeded max depth")));
    }

    fn document() -> Value {
        json!({"a": {"b": null}, "l": [1, 2, null], "~": {"/": 1}})
    }

    /// Operations on the document, with the result of the reference library.
    fn applied() -> Vec<(Value, Value)> {
        let lists = |l: Value| json!({"a": {"b": null}, "l": l, "~": {"/": 1}});
        vec![
            (
                json!({"op": "add", "path": "/l/-1", "value": 9}),
                lists(json!([1, 2, null, 9])),
            ),
            (
                json!({"op": "add", "path": "/l/-4", "value": 9}),
                lists(json!([9, 1, 2, null])),
            ),
            (
                json!({"op": "add", "path": "/l/3", "value": 9}),
                lists(json!([1, 2, null, 9])),
            ),
            (
                json!({"op": "add", "path": "/l/+1"}),
                lists(json!([1, null, 2, null])),
            ),
            (
                json!({"op": "remove", "path": "/l/-1"}),
                lists(json!([1, 2])),
            ),
            (
                json!({"op": "replace", "path": "/l/-3", "value": 9}),
                lists(json!([9, 2, null])),
            ),
            (
                json!({"op": "replace", "path": "/a/new", "value": 1}),
                json!({"a": {"b": null, "new": 1}, "l": [1, 2, null], "~": {"/": 1}}),
            ),
            (
                json!({"op": "copy", "from": "/a/none", "path": "/l/0"}),
                lists(json!([null, 1, 2, null])),
            ),
            (json!({"op": "test", "path": "/a/none"}), document()),
            (
                json!({"op": "test", "path": "/a/b", "value": null}),
                document(),
            ),
            (
                json!({"op": "test", "path": "/~0/~1", "value": 1}),
                document(),
            ),
            (
                json!({"op": "test", "path": "anything/l/00", "value": 1}),
                document(),
            ),
            (
                json!({"op": "test", "path": "/a", "value": {"b": null}}),
                document(),
            ),
            (
                json!({"op": "replace", "path": "", "value": [1]}),
                json!([1]),
            ),
        ]
    }

    /// Operations on the document, with the reference library's error.
    fn refused() -> Vec<(Value, &'static str)> {
        vec![
            (
                json!({"op": "test", "path": "/l", "value": [1, 2, null]}),
                "testing value /l failed: test failed",
            ),
            (
                json!({"op": "test", "path": "/l/0", "value": 1.0}),
                "testing value /l/0 failed: test failed",
            ),
            (
                json!({"op": "add", "path": "", "value": {}}),
                "add operation does not apply: doc is missing path: \"\": missing value",
            ),
            (
                json!({"op": "add", "path": "/a/b/c", "value": 1}),
                "add operation does not apply: doc is missing path: \"/a/b/c\": missing value",
            ),
            (
                json!({"op": "add", "path": "/l/4", "value": 1}),
                "error in add for path: '/l/4': Unable to access invalid index: 4: invalid index referenced",
            ),
            (
                json!({"op": "add", "path": "/l/x", "value": 1}),
                "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!({"op": "remove", "path": "/b"}),
                "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
            ),
            (
                json!({"op": "move", "from": "/a", "path": "/a/c"}),
                "move operation does not apply: doc is missing destination path: /a/c: missing value",
            ),
            (
                json!({"op": "nonsense", "path": "/a"}),
                "Unexpected kind: nonsense",
            ),
            (json!({"op": 1, "path": "/a"}), "Unexpected kind: unknown"),
            (
                json!({"op": "remove"}),
                "remove operation failed to decode path: missing value",
            ),
        ]
    }

    #[test]
    fn corners() {
        let outcome =
            |operation: &Value| apply(&document(), &json!([operation])).map_err(|e| e.to_string());
        for (operation, expected) in applied() {
            assert_eq!(outcome(&operation), Ok(expected), "{operation}");
        }
        for (operation, expected) in refused() {
            assert_eq!(outcome(&operation), Err(expected.to_owned()), "{operation}");
        }
    }

    #[test]
    fn the_shape_must_be_right() {
        for (patch, expected) in [
            (
                json!({"a": 1}),
                "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
            ),
            (
                json!([1]),
                "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
            ),
        ] {
            assert_eq!(
                apply(&json!({}), &patch),
                Err(PatchError::Invalid(expected.into()))
            );
        }
        let many = Value::Array(vec![
            json!({"op": "test", "path": "/a"});
            MAX_OPERATIONS + 1
        ]);
        assert!(matches!(
            apply(&json!({}), &many),
            Err(PatchError::TooManyOperations { .. })
        ));
    }

    #[test]
    fn copies_cannot_fill_the_memory() {
        let doubling: Vec<Value> = (0..60)
            .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
            .collect();
        let got = apply(&json!({"a": ["0123456789"]}), &doubling.into());
        assert!(got.is_err_and(|e| e.to_string().starts_with("Unable to complete the copy")));
    }

    #[test]
    fn the_error_knows_the_operation() {
        let patch =
            json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]);
        assert!(matches!(
            apply(&json!({}), &patch),
            Err(PatchError::Operation { index: 1, .. })
        ));
    }

    #[test]
    fn only_a_test_that_does_not_hold_is_a_failed_test() {
        let doc = json!({"a": 1});
        let patch = json!([
            {"op": "add", "path": "/b", "value": 1},
            {"op": "test", "path": "/a", "value": 2},
        ]);
        assert!(matches!(
            apply(&doc, &patch),
            Err(PatchError::TestFailed { index: 1, .. })
        ));
        for other in [
            json!({"op": "test", "path": "/missing/path", "value": 1}),
            json!({"op": "add", "path": "/testing value/ failed: test failed", "value": 1}),
        ] {
            assert!(
                matches!(
                    apply(&doc, &json!([other])),
                    Err(PatchError::Operation { index: 0, .. })
                ),
                "{other}"
            );
        }
    }
}
