//! What the API server allocates for a Service, and keeps when the field is applied empty.
//!
//! Main function: [`keep`]. Without it, `clusterIP: ""` in Git would always be drift under
//! Server-Side Apply.

use serde_json::{Map, Value};
use tiphys_apimachinery::Object;

/// Fills in what was allocated for `live` where `predicted` has the field, but empty.
pub fn keep(predicted: &mut Object, live: &Object) {
    if predicted.kind() != "Service" || predicted.api_version() != "v1" {
        return;
    }
    let (Some(Value::Object(old)), Some(Value::Object(new))) =
        (live.0.get("spec"), predicted.0.get_mut("spec"))
    else {
        return;
    };
    let external = |spec: &Map<String, Value>| {
        spec.get("type").and_then(Value::as_str) == Some("ExternalName")
    };
    if external(old) || external(new) {
        return;
    }
    ["clusterIP", "clusterIPs", "healthCheckNodePort"]
        .iter()
        .for_each(|field| fill(new, old, field));
    let old_ports = old.get("ports").and_then(Value::as_array);
    let new_ports = new.get_mut("ports").and_then(Value::as_array_mut);
    for (new, old) in new_ports
        .into_iter()
        .flatten()
        .zip(old_ports.into_iter().flatten())
    {
        if let (Value::Object(new), Value::Object(old)) = (new, old) {
            fill(new, old, "nodePort");
        }
    }
}

fn fill(new: &mut Map<String, Value>, old: &Map<String, Value>, field: &str) {
    let empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    };
    if let Some(value) = new.get_mut(field).filter(|value| empty(value))
        && let Some(old) = old.get(field)
    {
        *value = old.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_allocated_stays_where_the_field_is_empty() {
        let service = |spec: Value| {
            let value = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
            Object::from_value(value).expect("a map")
        };
        let live = service(
            json!({"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "healthCheckNodePort": 30001, "ports": [{"port": 80, "nodePort": 30002}]}),
        );
        for (predicted, want) in [
            (
                json!({"clusterIP": "", "clusterIPs": []}),
                json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}),
            ),
            (
                json!({"healthCheckNodePort": 0, "ports": [{"port": 80, "nodePort": 0}]}),
                json!({"healthCheckNodePort": 30001, "ports": [{"port": 80, "nodePort": 30002}]}),
            ),
            // What is not there stays away, and other values stay what they are.
            (
                json!({"ports": [{"port": 80}]}),
                json!({"ports": [{"port": 80}]}),
            ),
            (json!({"clusterIP": "None"}), json!({"clusterIP": "None"})),
            (
                json!({"type": "ExternalName", "clusterIP": ""}),
                json!({"type": "ExternalName", "clusterIP": ""}),
            ),
        ] {
            let mut predicted = service(predicted);
            keep(&mut predicted, &live);
            assert_eq!(predicted, service(want));
        }
    }
}
