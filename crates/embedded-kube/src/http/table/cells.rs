//! Helpers for cells that several kinds share.

use serde_json::Value;
use tiphys_apimachinery::Object;

pub const NONE: &str = "<none>";

/// A list inside an object; empty when absent.
pub fn list<'a>(object: &'a Object, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

pub fn or_none(text: &str) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text.to_owned()
    }
}

/// The integer at a pointer, 0 when absent.
pub fn number(object: &Object, pointer: &str) -> i64 {
    object.i64_at(pointer).unwrap_or(0)
}

/// How many entries a map or list has.
pub fn count(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

/// A string or a number, as text.
pub fn shown(value: Option<&Value>, default: &str) -> String {
    match value {
        Some(Value::String(s)) => s.clone(),
        Some(Value::Null) | None => default.to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Names and images of the containers of a pod spec.
pub fn containers(object: &Object, pod_spec: &str) -> (String, String) {
    let all = list(object, &format!("{pod_spec}/containers"));
    let join = |key| {
        all.iter()
            .map(|c| text(c, key))
            .collect::<Vec<_>>()
            .join(",")
    };
    (join("name"), join("image"))
}

/// A label selector, or a map of labels, on one line.
pub fn selector_text(selector: &Value) -> String {
    let labels = |map: &serde_json::Map<String, Value>| {
        map.iter()
            .map(|(k, v)| (k.clone(), format!("{k}={}", v.as_str().unwrap_or(""))))
            .collect::<Vec<_>>()
    };
    let Some(map) = selector.as_object() else {
        return NONE.to_owned();
    };
    let structured = map
        .keys()
        .all(|k| k == "matchLabels" || k == "matchExpressions");
    let mut parts = if structured {
        map.get("matchLabels")
            .and_then(Value::as_object)
            .map(labels)
            .unwrap_or_default()
    } else {
        labels(map)
    };
    for expression in map
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let mut values: Vec<&str> = expression["values"]
            .as_array()
            .map(|l| l.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        values.sort_unstable();
        let key = text(expression, "key");
        let shown = match text(expression, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), shown));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let parts: Vec<String> = parts.into_iter().map(|(_, shown)| shown).collect();
    if parts.is_empty() {
        NONE.to_owned()
    } else {
        parts.join(",")
    }
}

/// Whether a status condition is `True`.
pub fn condition(object: &Object, kind: &str) -> bool {
    list(object, "/status/conditions")
        .iter()
        .any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

/// `ReadWriteOnce` as `RWO`, and so on, always in the same order.
pub fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let named = short
        .into_iter()
        .filter(|(mode, _)| modes.iter().any(|m| m == mode));
    named.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

/// The name, marked as default if the annotation is set.
pub fn or_default(object: &Object, annotation: &str) -> Value {
    match object.annotation(annotation) {
        Some("true") => format!("{} (default)", object.name()).into(),
        _ => object.name().into(),
    }
}
