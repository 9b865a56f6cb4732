//! Checks that a schema is structural: every field has a type, and conditions (`anyOf`, `not` and
//! so on) only restrict what the types allow. Main function: [`check`].

use super::spec::Problems;
use serde_json::{Map, Value, json};
use tiphys_kube_schema::structural::problem::Problem;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Schemas deeper than this are not looked into.
const MAX_DEPTH: usize = 200;

/// What is wrong, sorted by its text as the real server does.
pub fn check(schema: &Value, path: &str) -> Problems {
    let mut problems = Vec::new();
    invariants(schema, Level::Root, path, &mut problems, 0);
    completeness(schema, Some(schema), path, path, &mut problems, 0);
    problems.sort_by_key(Problem::line);
    problems
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or("")
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

fn invariants(schema: &Value, level: Level, path: &str, problems: &mut Problems, depth: usize) {
    if !schema.is_object() || depth > MAX_DEPTH {
        return;
    }
    let kind = text(schema, "type");
    let items = schema.get("items").filter(|v| v.is_object());
    if kind == "array" && items.is_none() {
        problems.push(Problem::required(
            &format!("{path}.items"),
            "must be specified",
        ));
    }
    if let Some(items) = items {
        invariants(
            items,
            Level::Item,
            &format!("{path}.items"),
            problems,
            depth + 1,
        );
    }
    for (name, property) in properties(schema) {
        invariants(
            property,
            Level::Field,
            &format!("{path}.properties[{name}]"),
            problems,
            depth + 1,
        );
    }
    let additional = schema.get("additionalProperties").filter(|v| !v.is_null());
    if let Some(additional) = additional {
        if level == Level::Root {
            problems.push(Problem::forbidden(
                &format!("{path}.additionalProperties"),
                "must not be used at the root",
            ));
        }
        invariants(
            additional,
            Level::Field,
            &format!("{path}.additionalProperties"),
            problems,
            depth + 1,
        );
    }
    if flag(schema, INT_OR_STRING) {
        for key in [PRESERVE, EMBEDDED]
            .into_iter()
            .filter(|key| flag(schema, key))
        {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            problems.push(Problem::invalid(
                &format!("{path}.{key}"),
                &true.into(),
                detail,
            ));
        }
    }
    conditions(
        schema,
        (either_type(schema), first_all_either_type(schema)),
        path,
        problems,
        depth,
    );
    of_type(schema, level, path, problems);
    if flag(schema, EMBEDDED) && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        problems.push(Problem::forbidden(
            &format!("{path}.additionalProperties"),
            detail,
        ));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        problems.push(Problem::invalid(
            &format!("{path}.type"),
            &kind.into(),
            "must be object at the root",
        ));
    }
    metadata(schema, level, path, problems);
    if flag(schema, EMBEDDED) && !flag(schema, PRESERVE) && properties(schema).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        problems.push(Problem::required(&format!("{path}.properties"), detail));
    }
}

fn of_type(schema: &Value, level: Level, path: &str, problems: &mut Problems) {
    let kind = text(schema, "type");
    let at = format!("{path}.type");
    if flag(schema, EMBEDDED) && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        problems.push(if kind.is_empty() {
            Problem::required(&at, detail)
        } else {
            Problem::invalid(&at, &kind.into(), detail)
        });
    } else if kind.is_empty() && !flag(schema, INT_OR_STRING) && !flag(schema, PRESERVE) {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        problems.push(Problem::required(&at, detail));
    }
}

/// Kind, apiVersion and metadata of an object may hardly be described.
fn metadata(schema: &Value, level: Level, path: &str, problems: &mut Problems) {
    let is_object = level == Level::Root || flag(schema, EMBEDDED);
    for key in ["kind", "apiVersion"] {
        if let Some(property) = schema
            .get("properties")
            .and_then(|p| p.get(key))
            .filter(|_| is_object)
            && text(property, "type") != "string"
        {
            let at = format!("{path}.properties[{key}].type");
            problems.push(Problem::invalid(
                &at,
                &text(property, "type").into(),
                "must be string",
            ));
        }
    }
    let Some(metadata) = schema.pointer("/properties/metadata") else {
        return;
    };
    let at = format!("{path}.properties[metadata]");
    if is_object && text(metadata, "type") != "object" {
        problems.push(Problem::invalid(
            &format!("{at}.type"),
            &text(metadata, "type").into(),
            "must be object",
        ));
    }
    if level != Level::Root {
        return;
    }
    let only_names = properties(metadata).all(|(key, _)| key == "name" || key == "generateName");
    let nothing_else = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "default" | "definitions" | "dependencies" | "patternProperties" => true,
        "properties" => only_names,
        "additionalProperties"
        | "required"
        | "x-kubernetes-list-map-keys"
        | "x-kubernetes-validations" => value.is_null(),
        _ => {
            matches!(value, Value::Null | Value::Bool(false))
                || value == ""
                || value.as_array().is_some_and(Vec::is_empty)
        }
    };
    if !metadata
        .as_object()
        .is_some_and(|m| m.iter().all(nothing_else))
    {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        problems.push(Problem::forbidden(&at, detail));
    }
}

fn is_either_type(schemas: &[Value]) -> bool {
    schemas == [json!({"type": "integer"}), json!({"type": "string"})]
}

fn either_type(schema: &Value) -> bool {
    is_either_type(list(schema, "anyOf"))
}

fn first_all_either_type(schema: &Value) -> bool {
    list(schema, "allOf").first().is_some_and(either_type)
}

/// `skip` says whether `anyOf`, and that of the first `allOf`, are the known way to write "integer
/// or string".
fn conditions(
    schema: &Value,
    skip: (bool, bool),
    path: &str,
    problems: &mut Problems,
    depth: usize,
) {
    if !skip.0 {
        for (i, one) in list(schema, "anyOf").iter().enumerate() {
            nested(
                one,
                false,
                false,
                &format!("{path}.anyOf[{i}]"),
                problems,
                depth + 1,
            );
        }
    }
    for (i, one) in list(schema, "allOf").iter().enumerate() {
        nested(
            one,
            skip.1 && i == 0,
            false,
            &format!("{path}.allOf[{i}]"),
            problems,
            depth + 1,
        );
    }
    for (i, one) in list(schema, "oneOf").iter().enumerate() {
        nested(
            one,
            false,
            false,
            &format!("{path}.oneOf[{i}]"),
            problems,
            depth + 1,
        );
    }
    if let Some(not) = schema.get("not").filter(|n| n.is_object()) {
        nested(
            not,
            false,
            false,
            &format!("{path}.not"),
            problems,
            depth + 1,
        );
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Some(error) = tiphys_kube_schema::go_regex::error(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        problems.push(Problem::invalid(
            &format!("{path}.pattern"),
            &pattern.into(),
            &detail,
        ));
    }
}

/// (key, what is said when it stands inside a condition)
const FORBIDDEN: &[(&str, &str)] = &[
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

fn nested(
    schema: &Value,
    skip_any: bool,
    skip_all: bool,
    path: &str,
    problems: &mut Problems,
    depth: usize,
) {
    let Some(map) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else {
        return;
    };
    conditions(schema, (skip_any, skip_all), path, problems, depth);
    if let Some(items) = schema.get("items") {
        nested(
            items,
            false,
            false,
            &format!("{path}.items"),
            problems,
            depth + 1,
        );
    }
    for (name, property) in properties(schema) {
        nested(
            property,
            false,
            false,
            &format!("{path}.properties[{name}]"),
            problems,
            depth + 1,
        );
    }
    for (key, detail) in FORBIDDEN {
        if is_said(map, key) {
            problems.push(Problem::forbidden(&format!("{path}.{key}"), detail));
        }
    }
    if map
        .get("properties")
        .and_then(|p| p.get("metadata"))
        .is_some()
    {
        problems.push(Problem::forbidden(
            &format!("{path}.properties[metadata]"),
            "must not be specified in a nested context",
        ));
    }
}

fn is_said(map: &Map<String, Value>, key: &str) -> bool {
    match map.get(key) {
        None | Some(Value::Null) => false,
        Some(_) if key == "default" => true,
        Some(Value::Bool(b)) => *b,
        Some(Value::String(s)) => !s.is_empty() || key.ends_with("-type"),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}

/// What a condition names must be there outside of it. `schema` holds the condition, `spine` the
/// types.
fn completeness(
    schema: &Value,
    spine: Option<&Value>,
    spine_path: &str,
    path: &str,
    problems: &mut Problems,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(not) = schema.get("not").filter(|n| n.is_object()) {
        below(
            not,
            spine,
            spine_path,
            &format!("{path}.not"),
            problems,
            depth + 1,
        );
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (i, one) in list(schema, key).iter().enumerate() {
            below(
                one,
                spine,
                spine_path,
                &format!("{path}.{key}[{i}]"),
                problems,
                depth + 1,
            );
        }
    }
}

fn below(
    schema: &Value,
    spine: Option<&Value>,
    spine_path: &str,
    path: &str,
    problems: &mut Problems,
    depth: usize,
) {
    let Some(spine) = spine.filter(|s| s.is_object()) else {
        problems.push(Problem::required(
            spine_path,
            &format!("because it is defined in {path}"),
        ));
        return;
    };
    completeness(schema, Some(spine), spine_path, path, problems, depth);
    if let Some(items) = schema.get("items").filter(|v| v.is_object()) {
        below(
            items,
            spine.get("items"),
            &format!("{spine_path}.items"),
            &format!("{path}.items"),
            problems,
            depth + 1,
        );
    }
    for (name, property) in properties(schema) {
        let (at, here) = (
            format!("{spine_path}.properties[{name}]"),
            format!("{path}.properties[{name}]"),
        );
        match spine.get("properties").and_then(|p| p.get(name)) {
            Some(field) => below(property, Some(field), &at, &here, problems, depth + 1),
            None => problems.push(Problem::required(
                &at,
                &format!("because it is defined in {here}"),
            )),
        }
    }
}
