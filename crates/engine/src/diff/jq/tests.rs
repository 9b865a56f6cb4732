//! Tables for `jq`.

use super::Paths;
use serde_json::{Value, json};

fn document() -> Value {
    json!({
        "metadata": {"annotations": {"a/b": "1", "c": "2"}},
        "spec": {
            "replicas": 3,
            "containers": [
                {"name": "web", "image": "x:1", "env": [{"name": "A", "value": "1"}, {"name": "B"}]},
                {"name": "injected-proxy", "image": "y:1", "resources": {}}
            ]
        },
        "webhooks": [{"clientConfig": {"caBundle": "x"}}, {"clientConfig": {}}]
    })
}

/// The document after the deletion, or the error.
fn after(expression: &str) -> Result<Value, String> {
    let mut document = document();
    let paths = Paths::parse(expression).map_err(|e| e.to_string())?;
    paths
        .delete_from(&mut document, "", None)
        .map_err(|e| e.to_string())?;
    Ok(document)
}

/// The document without what the pointers select; the last element of a list first.
fn without(pointers: &[&str]) -> Value {
    let mut document = document();
    for pointer in pointers {
        let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
        match document.pointer_mut(parent).expect("a parent") {
            Value::Object(map) => drop(map.remove(&last.replace("~1", "/"))),
            Value::Array(list) => drop(list.remove(last.parse().expect("an index"))),
            _ => unreachable!("scalars have no fields"),
        }
    }
    document
}

#[test]
fn named_fields_are_deleted() {
    let table: &[(&str, &[&str])] = &[
        (".spec.replicas", &["/spec/replicas"]),
        (
            ".webhooks[].clientConfig.caBundle",
            &["/webhooks/0/clientConfig/caBundle"],
        ),
        (".webhooks[0].clientConfig", &["/webhooks/0/clientConfig"]),
        (".webhooks[-1]", &["/webhooks/1"]),
        (
            ".metadata.annotations[\"a/b\"]",
            &["/metadata/annotations/a~1b"],
        ),
        (
            ".metadata.annotations.\"a/b\", .spec.replicas",
            &["/metadata/annotations/a~1b", "/spec/replicas"],
        ),
        (
            ".spec.containers[] | select(.name == \"injected-proxy\")",
            &["/spec/containers/1"],
        ),
        (
            ".spec.containers[] | select(.name | test(\"^injected\")) | .image",
            &["/spec/containers/1/image"],
        ),
        (
            ".spec.containers[] | select(.name | startswith(\"web\") or endswith(\"none\")).env[] | select(.name==\"B\")",
            &["/spec/containers/0/env/1"],
        ),
        (
            ".spec.containers[]?.env[]?.value",
            &["/spec/containers/0/env/0/value"],
        ),
        (
            ".spec.containers[] | select(.resources == {}) | .resources",
            &["/spec/containers/1/resources"],
        ),
        (
            ".spec.containers[] | select(has(\"env\") and (.env | length > 1)) | .env",
            &["/spec/containers/0/env"],
        ),
        (
            ".spec.containers[] | select(any(.env[]?; .name == \"A\")) | .name",
            &["/spec/containers/0/name"],
        ),
        (".. | .caBundle?", &["/webhooks/0/clientConfig/caBundle"]),
        (
            ".. | objects | select(.name == \"web\") | .image",
            &["/spec/containers/0/image"],
        ),
        (".spec | .replicas", &["/spec/replicas"]),
        (".spec.nothing.here", &[]),
        (".spec.containers | first", &["/spec/containers/0"]),
        (
            "if .spec.replicas > 2 then .spec.replicas else empty end",
            &["/spec/replicas"],
        ),
        (".spec.none // .spec.replicas", &["/spec/replicas"]),
        (".spec.containers[1:]", &["/spec/containers/1"]),
        (
            "\"web\" as $name | .spec.containers[] | select(.name == $name) | .env",
            &["/spec/containers/0/env"],
        ),
        (
            ".metadata.annotations | .[keys[] | select(contains(\"/\"))]",
            &["/metadata/annotations/a~1b"],
        ),
        (
            ".spec.containers[.spec.replicas - 2]",
            &["/spec/containers/1"],
        ),
        (
            "def unset: select(. == {}); .webhooks[].clientConfig | unset",
            &["/webhooks/1/clientConfig"],
        ),
        (
            "paths(type == \"number\") as $p | getpath($p)",
            &["/spec/replicas"],
        ),
        (".spec.replicas, .spec.replicas", &["/spec/replicas"]),
        // The text is inserted between the parentheses unchanged.
        (
            ".spec.replicas) | del(.webhooks[0]",
            &["/spec/replicas", "/webhooks/0"],
        ),
    ];
    for (expression, pointers) in table {
        assert_eq!(after(expression), Ok(without(pointers)), "{expression}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let table = [
        (".spec[", "unexpected EOF"),
        (".a \"x\"", "unexpected token \"\\\"\""),
        (".spec | nothing(.a)", "function not defined: nothing/1"),
        (".spec | $x", "variable not defined: $x"),
        (".a; .b", "unexpected token \";\""),
        (".a # all of it", "unexpected EOF"),
        ("now", "now/0 is not supported: an expression has no clock"),
        ("input", "input(s)/0 is not allowed"),
        (
            ".spec.containers | map(.name)",
            "invalid path against: array ([\"web\",\"injected-proxy\"])",
        ),
        (".spec.replicas + 1", "invalid path against: number (4)"),
        (".spec.replicas[]", "cannot iterate over: number (3)"),
        (".nothing[]", "cannot iterate over: null"),
        (".spec.replicas.x", "expected an object but got: number (3)"),
        ("\"text\"", "invalid path against: string (\"text\")"),
        ("error(\"no\")", "error: no"),
        (".spec), del(.webhooks", "it gives more than one result"),
        ("def f: f; f", "the expression takes too many steps"),
        ("def f: f | f; f", "the expression calls itself too deeply"),
    ];
    for (expression, error) in table {
        assert_eq!(after(expression), Err(error.to_owned()), "{expression}");
    }
    let deep = format!("{}.a{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(
        after(&deep),
        Err("the expression is nested too deeply".to_owned())
    );
}

#[test]
fn expressions_end_within_their_budget() {
    let explosive = format!(".{}", " | .., ..".repeat(60));
    assert_eq!(
        after(&explosive),
        Err("the expression makes too much data".to_owned())
    );
}
