//! Custom resources against the schema of their definition. Main function: [`check`]. CEL rules are not evaluated.

use crate::catalog::crd::Custom;
use crate::status::Cause;
use regex::Regex;
use serde_json::Value;
use tiphys_apimachinery::Object;

const MAX_DEPTH: usize = 100;
/// More causes than a person reads are not collected.
const MAX_CAUSES: usize = 100;

/// Every place where the object does not fit its schema.
pub fn check(custom: &Custom, object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (name, schema) in custom.raw["properties"].as_object().into_iter().flatten() {
        if let (false, Some(value)) = (name == "metadata", object.0.get(name)) {
            validate(value, schema, name, &mut causes, 0);
        }
    }
    required(&Value::Object(object.0.clone()), &custom.raw, "", &mut causes);
    causes
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn required(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            causes.push(Cause::required(&join(path, name), ""));
        }
    }
}

fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(value: &Value, schema: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match schema["type"].as_str() {
        None | Some("") => true,
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|f| f.fract() == 0.0),
        Some(wanted) => type_word(value) == wanted,
    }
}

fn validate(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>, depth: usize) {
    if depth > MAX_DEPTH || causes.len() > MAX_CAUSES || !schema.is_object() {
        return;
    }
    if value.is_null() {
        if schema["nullable"] != true {
            let wanted = schema["type"].as_str().unwrap_or("object");
            causes.push(wrong_type(path, value, wanted));
        }
        return;
    }
    if !has_type(value, schema) {
        causes.push(wrong_type(path, value, schema["type"].as_str().unwrap_or("integer or string")));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|a| !a.contains(value)) {
        let words: Vec<String> = allowed.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
        causes.push(Cause::not_supported(path, value, &words.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    match value {
        Value::Number(n) => number(value, n.as_f64().unwrap_or(0.0), schema, path, causes),
        Value::String(s) => string(value, s, schema, path, causes),
        Value::Array(list) => {
            size(list.len(), ("minItems", "maxItems"), "items", schema, path, causes);
            unique(list, schema, path, causes);
            for (i, item) in list.iter().enumerate() {
                validate(item, &schema["items"], &format!("{path}[{i}]"), causes, depth + 1);
            }
        }
        Value::Object(map) => {
            size(map.len(), ("minProperties", "maxProperties"), "properties", schema, path, causes);
            required(value, schema, path, causes);
            for (key, item) in map {
                let of = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                validate(item, of, &join(path, key), causes, depth + 1);
            }
        }
        _ => {}
    }
    combined(value, schema, path, causes, depth);
}

fn wrong_type(path: &str, value: &Value, wanted: &str) -> Cause {
    let found = type_word(value);
    Cause::type_invalid(path, &found.into(), &format!("{path} in body must be of type {wanted}: \"{found}\""))
}

fn number(value: &Value, n: f64, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut fail = |text: String| causes.push(Cause::invalid(path, value, &format!("{path} in body {text}")));
    if let Some(min) = schema["minimum"].as_f64() {
        let exclusive = schema["exclusiveMinimum"] == true;
        if n < min || (exclusive && n <= min) {
            fail(format!("should be greater than {}{}", if exclusive { "" } else { "or equal to " }, schema["minimum"]));
        }
    }
    if let Some(max) = schema["maximum"].as_f64() {
        let exclusive = schema["exclusiveMaximum"] == true;
        if n > max || (exclusive && n >= max) {
            fail(format!("should be less than {}{}", if exclusive { "" } else { "or equal to " }, schema["maximum"]));
        }
    }
    if let Some(step) = schema["multipleOf"].as_f64().filter(|s| *s != 0.0)
        && (n / step).fract() != 0.0
    {
        fail(format!("should be a multiple of {}", schema["multipleOf"]));
    }
}

/// Only the first problem of a string is reported.
fn string(value: &Value, text: &str, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    if let Some(max) = schema["maxLength"].as_u64().filter(|max| length > *max) {
        let message = format!("Too long: may not be more than {max} bytes");
        causes.push(Cause { reason: "FieldValueTooLong", message, field: path.to_owned() });
    } else if let Some(min) = schema["minLength"].as_u64().filter(|min| length < *min) {
        causes.push(Cause::invalid(path, value, &format!("{path} in body should be at least {min} chars long")));
    } else if let Some(pattern) = schema["pattern"].as_str()
        && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
    {
        causes.push(Cause::invalid(path, value, &format!("{path} in body should match '{pattern}'")));
    }
}

/// Elements of sets, and the keys of elements of maps in list form, are unique.
fn unique(list: &[Value], schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let identity = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.clone()),
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array()?.iter().filter_map(Value::as_str);
            Some(keys.filter_map(|k| Some((k.to_owned(), item.get(k)?.clone()))).collect::<serde_json::Map<_, _>>().into())
        }
        _ => None,
    };
    let mut seen = std::collections::HashSet::new();
    for (i, item) in list.iter().enumerate() {
        if let Some(identity) = identity(item)
            && !seen.insert(identity.to_string())
        {
            causes.push(Cause::duplicate(&format!("{path}[{i}]"), &identity));
        }
    }
}

fn size(n: usize, (min, max): (&str, &str), what: &str, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let n = n as u64;
    if let Some(min) = schema[min].as_u64().filter(|min| n < *min) {
        causes.push(Cause::invalid(path, &n.into(), &format!("{path} in body should have at least {min} {what}")));
    }
    if let Some(max) = schema[max].as_u64().filter(|max| n > *max) {
        let message = format!("Too many: {n}: must have at most {max} items");
        causes.push(Cause { reason: "FieldValueTooMany", message, field: path.to_owned() });
    }
}

fn fits(value: &Value, schema: &Value, path: &str, depth: usize) -> bool {
    let mut causes = Vec::new();
    validate(value, schema, path, &mut causes, depth + 1);
    causes.is_empty()
}

fn combined(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>, depth: usize) {
    let mut fail = |text: &str| causes.push(Cause::invalid(path, &Value::Null, &format!("{path} in body {text}")));
    let matching = |key: &str| schema[key].as_array().map(|list| (list.iter().filter(|s| fits(value, s, path, depth)).count(), list.len()));
    if matching("allOf").is_some_and(|(n, all)| n < all) {
        fail("must validate all the schemas (allOf)");
    }
    if matching("anyOf").is_some_and(|(n, _)| n == 0) {
        fail("must validate at least one schema (anyOf)");
    }
    if matching("oneOf").is_some_and(|(n, _)| n != 1) {
        fail("must validate one and only one schema (oneOf)");
    }
    if schema["not"].is_object() && fits(value, &schema["not"], path, depth) {
        fail("must not validate the schema (not)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_rule_reports_its_field() {
        let schema = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "enum": ["a", "b"]},
            "name": {"type": "string", "pattern": "^x"}, "list": {"type": "array", "maxItems": 1, "items": {"type": "string"}}}});
        let check = |value: Value| {
            let mut causes = Vec::new();
            validate(&value, &schema, "spec", &mut causes, 0);
            causes.into_iter().map(|c| format!("{}: {}", c.field, c.message)).collect::<Vec<_>>()
        };
        assert_eq!(check(json!({"size": 1, "mode": "a", "name": "xy", "list": ["1"]})), Vec::<String>::new());
        assert_eq!(check(json!({})), ["spec.size: Required value"]);
        let type_error = "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"";
        assert_eq!(check(json!({"size": "1"})), [type_error]);
        assert_eq!(check(json!({"size": 0})), ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"]);
        assert_eq!(check(json!({"size": 1, "mode": "c"})), ["spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\""]);
        assert_eq!(check(json!({"size": 1, "name": "y"})).len(), 1);
        assert_eq!(check(json!({"size": 1, "list": ["1", "2"]})), ["spec.list: Too many: 2: must have at most 1 items"]);
    }
}
