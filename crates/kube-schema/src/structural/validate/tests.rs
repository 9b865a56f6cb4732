//! Values, with the errors of kube-apiserver 1.36.3.

use super::*;
use serde_json::json;

fn lines(schema: Value, value: Value) -> Vec<String> {
    let whole = json!({"type": "object", "properties": {"x": schema}});
    check(&Node::read(&whole), &json!({"x": value}), None, "")
        .iter()
        .map(Problem::line)
        .collect()
}

/// A schema, a value, and the expected errors.
type Case = (Value, Value, &'static [&'static str]);

fn scalars() -> Vec<Case> {
    let number = json!({"type": "number", "minimum": 0.5, "maximum": 10});
    vec![
        (
            json!({"type": "string"}),
            json!(1),
            &["x: Invalid value: \"integer\": x in body must be of type string: \"integer\""],
        ),
        (
            json!({"type": "string"}),
            json!(null),
            &["x: Invalid value: \"null\": x in body must be of type string: \"null\""],
        ),
        (
            json!({"type": "string", "nullable": true}),
            json!(null),
            &[],
        ),
        (json!({"type": "integer"}), json!(2.0), &[]),
        (
            json!({"type": "integer"}),
            json!(1.5),
            &[
                "x: Invalid value: \"number\": x in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in x",
            ],
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(2147483648i64),
            &[
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in x",
            ],
        ),
        (
            json!({"type": "integer", "format": "int64"}),
            json!(true),
            &["x: Invalid value: \"\": x in body must be of type int64: \"\""],
        ),
        (
            number.clone(),
            json!(0.1),
            &["x: Invalid value: 0.1: x in body should be greater than or equal to 0.5"],
        ),
        (
            number,
            json!(11),
            &["x: Invalid value: 11: x in body should be less than or equal to 10"],
        ),
        (
            json!({"type": "integer", "maximum": 5, "exclusiveMaximum": true}),
            json!(5),
            &["x: Invalid value: 5: x in body should be less than 5"],
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(4),
            &["x: Invalid value: 4: x in body should be a multiple of 3"],
        ),
        (
            json!({"type": "string", "maxLength": 3}),
            json!("abcd"),
            &["x: Too long: may not be more than 3 bytes"],
        ),
        (
            json!({"type": "string", "minLength": 3}),
            json!("ab"),
            &["x: Invalid value: \"ab\": x in body should be at least 3 chars long"],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            &["x: Invalid value: \"b\": x in body should match '^a+$'"],
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            &["x: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        ),
        (
            json!({"type": "string", "format": "uuid"}),
            json!("q"),
            &["x: Invalid value: \"q\": x in body must be of type uuid: \"q\""],
        ),
    ]
}

/// Lists, maps, and values that more than one schema is for.
fn lists_maps_and_combinations() -> Vec<Case> {
    vec![
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", "b"]),
            &["x: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            json!([]),
            &["x: Invalid value: 0: x in body should have at least 1 items"],
        ),
        (
            json!({"type": "object", "required": ["a"]}),
            json!({}),
            &["x.a: Required value"],
        ),
        (
            json!({"type": "object", "maxProperties": 1}),
            json!({"a": 1, "b": 2}),
            &["x: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            &[
                "<nil>: Invalid value: \"\": \"x\" must validate at least one schema (anyOf)",
                "x.a: Required value",
            ],
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 7}]}),
            json!(6),
            &[
                "<nil>: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            json!({"type": "string", "not": {"enum": ["bad"]}}),
            json!("bad"),
            &["<nil>: Invalid value: \"\": \"x\" must not validate the schema (not)"],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            &[
                "x: Invalid value: \"boolean\": x in body must be of type integer,string: \"boolean\"",
            ],
        ),
    ]
}

#[test]
fn values_are_refused_in_the_real_words() {
    for (schema, value, wanted) in scalars().into_iter().chain(lists_maps_and_combinations()) {
        assert_eq!(
            lines(schema.clone(), value.clone()),
            wanted,
            "{schema} {value}"
        );
    }
}

#[test]
fn what_was_wrong_before_may_stay() {
    let node = Node::read(
        &json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 5}, "l": {"type": "array",
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}}}}),
    );
    let old = json!({"a": 9, "l": [{"k": "x", "v": 9}, {"k": "y", "v": 1}]});
    let found = |new: Value| {
        check(&node, &new, Some(&old), "")
            .iter()
            .map(|p| p.path.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(json!({"a": 9, "l": [{"k": "y", "v": 2}, {"k": "x", "v": 9}]})),
        Vec::<String>::new()
    );
    assert_eq!(
        found(json!({"a": 8, "l": [{"k": "y", "v": 9}, {"k": "x", "v": 9}]})),
        ["a", "l[0].v"]
    );
}
