//! Validates the schema of a definition. Main function: [`check`].

use super::spec::{Problems, list, text};
use super::{defaults, structure};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tiphys_kube_schema::cel::rules;
use tiphys_kube_schema::structural::problem::Problem;
use tiphys_kube_schema::structural::{Node, internal};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const MAX_DEPTH: usize = 200;
const REASONS: &[&str] = &[
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What a place in the schema inherits from the places above it.
#[derive(Clone, Copy)]
struct Place<'a> {
    root: bool,
    /// Why defaults may not stand here.
    no_defaults: Option<&'a str>,
    in_meta: bool,
    /// The first place above whose parts cannot be followed through an update.
    lost: Option<&'a str>,
    depth: usize,
}

impl Place<'_> {
    fn below(self) -> Self {
        Self {
            root: false,
            depth: self.depth + 1,
            ..self
        }
    }
}

/// Schema errors, and those of rules, which are reported after all others.
#[derive(Default)]
struct Found {
    schema: Problems,
    rules: Problems,
}

/// `of` is the thing that has `openAPIV3Schema`.
pub fn check(of: Option<&Value>, path: &str, status: bool, problems: &mut Problems) {
    let Some(schema) = of
        .and_then(|s| s.get("openAPIV3Schema"))
        .filter(|s| s.is_object())
    else {
        return;
    };
    let path = format!("{path}.openAPIV3Schema");
    let mut found = Vec::new();
    if status {
        at_root(schema, &path, &mut found);
    }
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        found.push(Problem::forbidden(
            &format!("{path}.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let node = Node::read(schema);
    let unsupported = unsupported(schema, 0);
    let mut with_rules = false;
    if unsupported.is_none() {
        let bad = structure::check(schema, &path);
        let bad = if bad.is_empty() {
            defaults::check(&Node::for_defaults(schema), &path)
        } else {
            bad
        };
        with_rules = bad.is_empty();
        found.extend(bad);
    }
    let mut compiler = with_rules.then(|| rules::Definitions::new(&node));
    let place = Place {
        root: true,
        no_defaults: None,
        in_meta: false,
        lost: None,
        depth: 0,
    };
    let mut walked = Found::default();
    walk(
        schema,
        &path,
        place,
        &mut walked,
        compiler.as_mut().map(|c| (c, rules::Spot::root())),
    );
    found.extend(walked.schema);
    found.extend(walked.rules);
    if let (true, Some(why)) = (found.is_empty(), unsupported) {
        found.push(Problem::invalid(&path, &"".into(), &why));
    }
    if let Some(compiler) = compiler {
        found.extend(compiler.total(&path));
    }
    problems.extend(found);
}

fn at_root(schema: &Value, path: &str, problems: &mut Problems) {
    let Some(map) = schema.as_object() else {
        return;
    };
    match internal::forbidden_at_root(map) {
        None => {}
        Some("Type") => {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            problems.push(Problem::invalid(
                &format!("{path}.type"),
                &text(schema, "type").into(),
                detail,
            ));
        }
        Some(_) => {
            let detail = format!(
                "only {} fields are allowed at the root of the schema if the status subresource is enabled",
                internal::allowed_at_root()
            );
            let text = format!("Invalid value: {}: {detail}", internal::schema(schema));
            problems.push(Problem {
                reason: "FieldValueInvalid",
                path: path.to_owned(),
                text,
            });
        }
    }
}

/// Keywords that structural schemas cannot have: the first one found.
fn unsupported(schema: &Value, depth: usize) -> Option<String> {
    let map = schema.as_object().filter(|_| depth <= MAX_DEPTH)?;
    for (key, name) in [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ] {
        let empty = map.get(key).is_some_and(|value| {
            *value == "" || (key == "dependencies" && value.as_object().is_some_and(Map::is_empty))
        });
        if is_there(map, key) && !empty {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
                .into(),
        );
    }
    if map
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
    {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(|key| list(schema, key));
    let single = ["not", "items", "additionalProperties"]
        .into_iter()
        .filter_map(|key| map.get(key));
    let properties = map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values);
    lists
        .chain(single)
        .chain(properties)
        .find_map(|s| unsupported(s, depth + 1))
}

fn is_there(map: &Map<String, Value>, key: &str) -> bool {
    match map.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(s)) => !s.is_empty() || key == "$ref",
        Some(Value::Object(m)) => {
            !m.is_empty() || key == "dependencies" || key == "additionalItems"
        }
        Some(_) => true,
    }
}

type Compiler<'c, 'n> = Option<(&'c mut rules::Definitions<'n>, rules::Spot)>;

fn walk(
    schema: &Value,
    path: &str,
    place: Place<'_>,
    found: &mut Found,
    mut compiler: Compiler<'_, '_>,
) {
    let Some(map) = schema.as_object().filter(|_| place.depth <= MAX_DEPTH) else {
        return;
    };
    let below = place.below();
    let mut here = Found::default();
    keywords(map, path, place, &mut here.schema);
    additional_properties(schema, path, place, &mut here, &mut compiler);
    properties(schema, path, place, &mut here, &mut compiler);
    if let Some(not) = map.get("not") {
        walk(not, &format!("{path}.not"), below, &mut here, None);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (i, one) in list(schema, key).iter().enumerate() {
            walk(one, &format!("{path}.{key}[{i}]"), below, &mut here, None);
        }
    }
    for (name, one) in map
        .get("definitions")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        walk(
            one,
            &format!("{path}.definitions[{name}]"),
            below,
            &mut here,
            None,
        );
    }
    items(schema, path, place, &mut here, &mut compiler);
    for (name, one) in map
        .get("dependencies")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        walk(
            one,
            &format!("{path}.dependencies[{name}]"),
            below,
            &mut here,
            None,
        );
    }
    extensions(schema, map, path, &mut here.schema);
    rule_forms(schema, path, &mut here.schema);
    if let (true, false, Some((compiler, spot))) = (
        here.schema.is_empty(),
        list(schema, "x-kubernetes-validations").is_empty(),
        compiler,
    ) {
        here.rules
            .extend(compiler.check(schema, &spot, path, place.lost));
    }
    found.schema.extend(here.schema);
    found.rules.extend(here.rules);
}

fn additional_properties(
    schema: &Value,
    path: &str,
    place: Place<'_>,
    found: &mut Found,
    compiler: &mut Compiler<'_, '_>,
) {
    if let Some(additional) = schema.get("additionalProperties").filter(|a| a.is_object()) {
        let no_defaults = if place.in_meta {
            Some("inside additionalProperties applying to object metadata")
        } else {
            place.no_defaults
        };
        let next = compiler
            .as_mut()
            .map(|(c, spot)| (&mut **c, spot.additional(schema)));
        walk(
            additional,
            &format!("{path}.additionalProperties"),
            Place {
                no_defaults,
                ..place.below()
            },
            found,
            next,
        );
    }
}

fn properties(
    schema: &Value,
    path: &str,
    place: Place<'_>,
    found: &mut Found,
    compiler: &mut Compiler<'_, '_>,
) {
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let next = compiler
            .as_mut()
            .map(|(c, spot)| (&mut **c, spot.property(schema, name)));
        let map_type = text(schema, "x-kubernetes-map-type");
        let lost = if matches!(map_type, "" | "granular" | "atomic") {
            place.lost
        } else {
            place.lost.or(Some(path))
        };
        let meta = (place.root
            || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)))
            && matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        let why = format!("in top-level {name}");
        let no_defaults = if meta && place.root {
            Some(why.as_str())
        } else {
            place.no_defaults
        };
        let at = Place {
            no_defaults,
            in_meta: place.in_meta || meta,
            lost,
            ..place.below()
        };
        walk(
            property,
            &format!("{path}.properties[{name}]"),
            at,
            found,
            next,
        );
    }
}

fn items(
    schema: &Value,
    path: &str,
    place: Place<'_>,
    found: &mut Found,
    compiler: &mut Compiler<'_, '_>,
) {
    if let Some(items) = schema.get("items") {
        let lost = if text(schema, "x-kubernetes-list-type") == "map" {
            place.lost
        } else {
            place.lost.or(Some(path))
        };
        let next = compiler
            .as_mut()
            .map(|(c, spot)| (&mut **c, spot.items(schema)));
        walk(
            items,
            &format!("{path}.items"),
            Place {
                lost,
                ..place.below()
            },
            found,
            next,
        );
        for (i, one) in list(schema, "items").iter().enumerate() {
            walk(
                one,
                &format!("{path}.items[{i}]"),
                Place {
                    lost,
                    ..place.below()
                },
                found,
                None,
            );
        }
    }
}

fn keywords(map: &Map<String, Value>, path: &str, place: Place<'_>, problems: &mut Problems) {
    let kind = map.get("type").and_then(Value::as_str).unwrap_or("");
    let at = |key: &str| format!("{path}.{key}");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        problems.push(Problem::not_supported(
            &at("type"),
            &kind.into(),
            &TYPES.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(),
        ));
    }
    if let (true, Some(why)) = (
        map.get("default").is_some_and(|d| !d.is_null()),
        place.no_defaults,
    ) {
        problems.push(Problem::forbidden(
            &at("default"),
            &format!("must not be set {why}"),
        ));
    }
    for key in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if is_there(map, key) {
            problems.push(Problem::forbidden(
                &at(key),
                &format!("{key} is not supported"),
            ));
        }
    }
    if kind == "null" {
        problems.push(Problem::forbidden(
            &at("type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    }
    if map
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
    {
        problems.push(Problem::forbidden(
            &at("items"),
            "items must be a schema object and not an array",
        ));
    }
    if place.in_meta && map.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        problems.push(Problem::forbidden(
            &at("x-kubernetes-embedded-resource"),
            "must not be used inside of resource meta",
        ));
    }
    if map.get("uniqueItems") == Some(&Value::Bool(true)) {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        problems.push(Problem::forbidden(&at("uniqueItems"), detail));
    }
    let has_properties = map
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|p| !p.is_empty());
    let additional = map.get("additionalProperties").filter(|a| !a.is_null());
    if has_properties && additional.is_some_and(|a| *a != Value::Bool(true)) {
        problems.push(Problem::forbidden(
            &at("additionalProperties"),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

/// Map types, list types and their keys.
fn extensions(schema: &Value, map: &Map<String, Value>, path: &str, problems: &mut Problems) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    let said = |key: &str| map.get(key).and_then(Value::as_str);
    let wrong_type = |detail: &str| match kind {
        "" => Problem::required(&at("type"), detail),
        kind => Problem::invalid(&at("type"), &kind.into(), detail),
    };
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        problems.push(Problem::invalid(
            &at("x-kubernetes-preserve-unknown-fields"),
            &false.into(),
            "must be true or undefined",
        ));
    }
    if let Some(map_type) = said("x-kubernetes-map-type") {
        if kind != "object" {
            problems.push(wrong_type(
                "must be object if x-kubernetes-map-type is specified",
            ));
        }
        if !matches!(map_type, "atomic" | "granular") {
            problems.push(Problem::not_supported(
                &at("x-kubernetes-map-type"),
                &map_type.into(),
                &words(&["atomic", "granular"]),
            ));
        }
    }
    let list_type = said("x-kubernetes-list-type");
    if list_type.is_some() && kind != "array" {
        problems.push(wrong_type(
            "must be array if x-kubernetes-list-type is specified",
        ));
    } else if list_type == Some("set") {
        atomic_items(schema, path, problems);
    }
    if let Some(list_type) = list_type.filter(|t| !matches!(*t, "atomic" | "set" | "map")) {
        problems.push(Problem::not_supported(
            &at("x-kubernetes-list-type"),
            &list_type.into(),
            &words(&["atomic", "set", "map"]),
        ));
    }
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
    match list_type {
        None if !keys.is_empty() => {
            problems.push(Problem::required(&at("x-kubernetes-list-type"), detail))
        }
        Some(other) if !keys.is_empty() && other != "map" => {
            problems.push(Problem::invalid(
                &at("x-kubernetes-list-type"),
                &other.into(),
                detail,
            ));
        }
        Some("map") => keyed_list(schema, keys, path, problems),
        _ => {}
    }
    if let (Some(list_type @ ("map" | "set")), Some(items)) =
        (list_type, map.get("items").filter(|i| i.is_object()))
    {
        required_keys(list_type, items, keys, path, problems);
    }
}

/// The elements of a set are compared as a whole.
fn atomic_items(schema: &Value, path: &str, problems: &mut Problems) {
    let Some(items) = schema.get("items").filter(|i| i.is_object()) else {
        return;
    };
    let list_type = items
        .get("x-kubernetes-list-type")
        .cloned()
        .unwrap_or(Value::Null);
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match text(items, "type") {
        "array" if !list_type.is_null() && list_type != "atomic" => {
            problems.push(Problem::invalid(
                &format!("{path}.items.x-kubernetes-list-type"),
                &list_type,
                detail,
            ));
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
            problems.push(Problem::invalid(
                &format!("{path}.items.x-kubernetes-map-type"),
                &list_type,
                detail,
            ));
        }
        _ => {}
    }
}

fn keyed_list(schema: &Value, keys: &[Value], path: &str, problems: &mut Problems) {
    let at = |key: &str| format!("{path}.{key}");
    if keys.is_empty() {
        problems.push(Problem::required(
            &at("x-kubernetes-list-map-keys"),
            "must not be empty if x-kubernetes-list-type is map",
        ));
    }
    let items = match schema.get("items").filter(|i| !i.is_null()) {
        None => {
            problems.push(Problem::required(
                &at("items"),
                "must have a schema if x-kubernetes-list-type is map",
            ));
            return;
        }
        Some(list) if !list.is_object() => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            let text = format!(
                "Invalid value: {{\"Schema\":null,\"JSONSchemas\":{}}}: {detail}",
                internal::schemas(list)
            );
            problems.push(Problem {
                reason: "FieldValueInvalid",
                path: at("items"),
                text,
            });
            return;
        }
        Some(items) => items,
    };
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        problems.push(Problem::invalid(&at("items.type"), &kind.into(), detail));
        return;
    }
    let mut seen = BTreeSet::new();
    let all = Value::Array(keys.to_vec());
    for key in keys.iter().filter_map(Value::as_str) {
        match items.get("properties").and_then(|p| p.get(key)) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                problems.push(Problem::invalid(
                    &at(&format!("items.properties[{key}].type")),
                    &kind.into(),
                    detail,
                ));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                problems.push(Problem::invalid(
                    &at("x-kubernetes-list-map-keys"),
                    &all,
                    detail,
                ));
            }
        }
        if !seen.insert(key) {
            problems.push(Problem::invalid(
                &at("x-kubernetes-list-map-keys"),
                &all,
                "must not contain duplicate entries",
            ));
        }
    }
}

fn required_keys(
    list_type: &str,
    items: &Value,
    keys: &[Value],
    path: &str,
    problems: &mut Problems,
) {
    let null = |of: &Value| of.get("nullable") == Some(&Value::Bool(true));
    if null(items) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        problems.push(Problem::forbidden(
            &format!("{path}.items.nullable"),
            &detail,
        ));
    }
    if list_type != "map" {
        return;
    }
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(property) = items.get("properties").and_then(|p| p.get(key)) else {
            continue;
        };
        let at = format!("{path}.items.properties[{key}]");
        let required = list(items, "required").iter().any(|r| r == key);
        if !required && property.get("default").is_none_or(Value::is_null) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            problems.push(Problem::required(&format!("{at}.default"), detail));
        }
        if null(property) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            problems.push(Problem::forbidden(&format!("{at}.nullable"), detail));
        }
    }
}

/// Texts of rules, before they are compiled.
fn rule_forms(schema: &Value, path: &str, problems: &mut Problems) {
    let breaks = |s: &str| s.contains(['\n', '\r']);
    for (i, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
        let at = |key: &str| format!("{path}.x-kubernetes-validations[{i}].{key}");
        let (expression, message, by, field) = (
            text(rule, "rule"),
            text(rule, "message"),
            text(rule, "messageExpression"),
            text(rule, "fieldPath"),
        );
        if expression.trim().is_empty() {
            problems.push(Problem::required(&at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            problems.push(Problem::invalid(
                &at("message"),
                &message.into(),
                "must be non-empty if specified",
            ));
        } else if breaks(message.trim()) {
            problems.push(Problem::invalid(
                &at("message"),
                &message.into(),
                "must not contain line breaks",
            ));
        } else if breaks(expression.trim()) && message.trim().is_empty() {
            problems.push(Problem::required(
                &at("message"),
                "message must be specified if rule contains line breaks",
            ));
        }
        if !by.is_empty() && by.trim().is_empty() {
            problems.push(Problem::required(
                &at("messageExpression"),
                "messageExpression must be non-empty if specified",
            ));
        }
        if let Some(reason) = rule
            .get("reason")
            .and_then(Value::as_str)
            .filter(|r| !REASONS.contains(r))
        {
            problems.push(Problem::not_supported(
                &at("reason"),
                &reason.into(),
                &words(REASONS),
            ));
        }
        if !field.is_empty() && field.trim().is_empty() {
            problems.push(Problem::invalid(
                &at("fieldPath"),
                &field.into(),
                "must be non-empty if specified",
            ));
        }
        if breaks(field) {
            problems.push(Problem::invalid(
                &at("fieldPath"),
                &field.into(),
                "must not contain line breaks",
            ));
        }
        if !field.is_empty()
            && unsupported(schema, 0).is_none()
            && tiphys_kube_schema::structural::path::resolve(field, &Node::read(schema), true)
                .is_err()
        {
            problems.push(Problem::invalid(
                &at("fieldPath"),
                &field.into(),
                "must be a valid path",
            ));
        }
    }
}
