//! One object as it is compared: without what is written by the cluster, and with what has several spellings in one of them.
//!
//! Main function: [`normalize`]. It knows nothing of the other object of the pair.

use super::secret;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

/// Removes `creationTimestamp` and brings Secrets, roles and Endpoints into one form.
pub fn normalize(object: &mut Object, ignore_aggregated_roles: bool) {
    if object.metadata("creationTimestamp").is_some() {
        object.metadata_mut().remove("creationTimestamp");
    }
    match (object.group(), object.kind()) {
        ("", "Secret") => secret::normalize(object),
        ("", "Endpoints") => endpoints(object),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => role(object, ignore_aggregated_roles),
        _ => {}
    }
}

/// An empty list of rules is no list. The rules of an aggregated role are written by a controller.
fn role(object: &mut Object, ignore_aggregated: bool) {
    let aggregated = ignore_aggregated && object.0.get("aggregationRule").is_some_and(Value::is_object);
    let empty = object.0.get("rules").and_then(Value::as_array).is_some_and(Vec::is_empty);
    if aggregated || empty {
        object.0.insert("rules".into(), Value::Null);
    }
}

/// The order of subsets, addresses and ports means nothing, and the API server sorts them.
fn endpoints(object: &mut Object) {
    let Some(Value::Array(subsets)) = object.0.get_mut("subsets") else { return };
    for subset in subsets.iter_mut() {
        let Some(subset) = subset.as_object_mut() else { return };
        if let Some(Value::Array(ports)) = subset.get_mut("ports") {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                port.entry("protocol").or_insert_with(|| json!("TCP"));
            }
            ports.sort_by_cached_key(|p| {
                let number = p.get("port").and_then(Value::as_i64).unwrap_or(0);
                (text(p, "name"), number, text(p, "protocol"))
            });
        }
        for field in ["addresses", "notReadyAddresses"] {
            if let Some(Value::Array(addresses)) = subset.get_mut(field) {
                addresses.sort_by_cached_key(|a| (text(a, "ip"), a.get("targetRef").map(Value::to_string)));
            }
        }
    }
    subsets.sort_by_cached_key(Value::to_string);
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
}
