//! Visits all schemas of a definition in turn. Main functions: [`has_defaults`],
//! [`unknown_formats`].

use super::spec::{list, text};
use serde_json::Value;
use tiphys_kube_schema::structural::formats;

const MAX_DEPTH: usize = 200;

/// Visits every schema in a schema, conditions included, in the order of the real server.
fn visit(schema: &Value, depth: usize, see: &mut dyn FnMut(&Value)) {
    let Some(map) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else {
        return;
    };
    see(schema);
    const PARTS: [&str; 11] = [
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "properties",
        "additionalProperties",
        "patternProperties",
        "additionalItems",
        "definitions",
        "dependencies",
    ];
    for key in PARTS {
        match map.get(key) {
            Some(Value::Array(many)) => many.iter().for_each(|one| visit(one, depth + 1, see)),
            Some(Value::Object(named))
                if matches!(
                    key,
                    "properties" | "patternProperties" | "definitions" | "dependencies"
                ) =>
            {
                named.values().for_each(|one| visit(one, depth + 1, see));
            }
            Some(one) => visit(one, depth + 1, see),
            None => {}
        }
    }
}

fn each_schema(spec: &Value, see: &mut dyn FnMut(&Value)) {
    let shared = spec.pointer("/validation/openAPIV3Schema");
    let own = list(spec, "versions")
        .iter()
        .filter_map(|v| v.pointer("/schema/openAPIV3Schema"));
    shared
        .into_iter()
        .chain(own)
        .for_each(|schema| visit(schema, 0, see));
}

pub fn has_defaults(spec: &Value) -> bool {
    let mut found = false;
    each_schema(spec, &mut |schema| {
        found |= schema.get("default").is_some_and(|d| !d.is_null())
    });
    found
}

/// Formats that are not known for their type, in the order they stand in.
pub fn unknown_formats(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = super::spec::hoisted(spec);
    each_schema(&spec, &mut |schema| {
        let format = text(schema, "format");
        if !format.is_empty() && !formats::is_known(text(schema, "type"), format) {
            found.push(format.to_owned());
        }
    });
    found
}
