//! Custom kinds in OpenAPI documents. Main functions: [`kind`], [`list`].
//!
//! The schema of a definition is published unchanged, together with the fields that every object
//! has; version 2 leaves out what it cannot express. The common fields have no descriptions.

use crate::catalog::{Resource, crd::Custom};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::object::map_entry;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// Schema keywords that version 2 does not support.
const NOT_IN_V2: [&str; 5] = ["allOf", "anyOf", "oneOf", "not", "default"];

/// The version of the document, and its reference to the metadata of an object.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    pub v2: bool,
    pub metadata: &'a Value,
}

/// The schema of a custom kind.
pub fn kind(resource: &Resource, custom: &Custom, form: Form<'_>) -> Value {
    let mut schema = Map::from_iter([("type".to_owned(), "object".into())]);
    // If arbitrary fields are allowed, kubectl would take these three fields for the only ones.
    if let Some(raw) = custom
        .raw
        .as_object()
        .filter(|raw| !(form.v2 && is_true(raw, PRESERVE)))
    {
        schema = raw.clone();
        publish(&mut schema, form);
        type_fields(&mut schema, form);
    }
    schema.insert(
        "x-kubernetes-group-version-kind".into(),
        json!([gvk(resource, &resource.kind)]),
    );
    schema.extend(selectable(custom));
    schema.into()
}

/// The schema of lists of a custom kind; `item` refers to that of the kind.
pub fn list(resource: &Resource, custom: &Custom, form: Form<'_>, item: &Value) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert(
        "description".into(),
        format!("{} is a list of {}", resource.list_kind, resource.kind).into(),
    );
    schema.insert("required".into(), json!(["items"]));
    schema.insert(
        "properties".into(),
        json!({"items": {"type": "array", "items": item}}),
    );
    type_fields(&mut schema, form);
    schema.insert(
        "x-kubernetes-group-version-kind".into(),
        json!([gvk(resource, &resource.list_kind)]),
    );
    schema.extend(selectable(custom));
    schema.into()
}

fn gvk(resource: &Resource, kind: &str) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": kind})
}

fn selectable(custom: &Custom) -> Option<(String, Value)> {
    let path = |path: &String| json!({"fieldPath": path.trim_start_matches('.')});
    let paths: Vec<Value> = custom.selectable_fields.iter().map(path).collect();
    (!paths.is_empty()).then(|| ("x-kubernetes-selectable-fields".to_owned(), paths.into()))
}

fn is_true(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// `apiVersion`, `kind` and `metadata`.
fn type_fields(schema: &mut Map<String, Value>, form: Form<'_>) {
    let fields = map_entry(schema, "properties");
    fields.insert("apiVersion".into(), json!({"type": "string"}));
    fields.insert("kind".into(), json!({"type": "string"}));
    fields.insert(
        "metadata".into(),
        if form.v2 {
            form.metadata.clone()
        } else {
            json!({"allOf": [form.metadata]})
        },
    );
}

/// Converts a schema and its subschemas to the form of the document.
fn publish(schema: &mut Map<String, Value>, form: Form<'_>) {
    schema.retain(|key, value| !(key == "uniqueItems" && *value == false));
    if form.v2 {
        reduce(schema);
    } else if is_true(schema, INT_OR_STRING)
        && !schema.contains_key("anyOf")
        && !schema.contains_key("allOf")
    {
        schema.insert(
            "anyOf".into(),
            json!([{"type": "integer"}, {"type": "string"}]),
        );
    }
    for key in ["items", "additionalProperties"] {
        schema
            .get_mut(key)
            .and_then(Value::as_object_mut)
            .into_iter()
            .for_each(|below| publish(below, form));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .filter_map(Value::as_object_mut)
        .for_each(|below| publish(below, form));
    if is_true(schema, "x-kubernetes-embedded-resource") && !(form.v2 && is_true(schema, PRESERVE))
    {
        type_fields(schema, form);
        let required = schema.entry("required").or_insert_with(|| json!([]));
        for field in ["kind", "apiVersion"] {
            if let Some(list) = required
                .as_array_mut()
                .filter(|list| !list.iter().any(|name| name == field))
            {
                list.push(field.into());
            }
        }
    }
}

/// Removes from one schema the parts that version 2, or kubectl when reading it, does not support.
fn reduce(schema: &mut Map<String, Value>) {
    NOT_IN_V2.iter().for_each(|key| drop(schema.remove(*key)));
    let preserves = is_true(schema, PRESERVE);
    if schema.remove("nullable") == Some(Value::Bool(true)) {
        ["type", "items", "properties"]
            .iter()
            .for_each(|key| drop(schema.remove(*key)));
    }
    if preserves {
        ["items", "properties"]
            .iter()
            .for_each(|key| drop(schema.remove(*key)));
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("");
    if (kind == "array" && !schema.contains_key("items")) || (preserves && kind == "object") {
        schema.remove("type");
    }
    let nullable = |of: &Value| of["nullable"] == true;
    let free: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, of)| nullable(of))
        .map(|(name, _)| name.clone())
        .collect();
    let drops_all = schema.get("additionalProperties").is_some_and(nullable);
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !drops_all && !free.iter().any(|f| name == f.as_str()));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}
