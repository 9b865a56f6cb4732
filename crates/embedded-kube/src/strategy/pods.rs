//! What the server decides about a new pod. Main function: [`prepare_create`].

use super::defaults::quality_of_service;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// The status that a pod starts with, and selectors completed from its own labels.
pub fn prepare_create(pod: &mut Object, now: &str) {
    let mut status = json!({"phase": "Pending", "qosClass": quality_of_service(pod)});
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|list| !list.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null, "lastTransitionTime": now,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.0.insert("status".into(), status);
    let labels = pod.metadata("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let spec = map_entry(&mut pod.0, "spec");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = spec.get_mut("affinity").and_then(|a| a.get_mut(kind)).and_then(Value::as_object_mut);
        let Some(terms) = terms else { continue };
        for (list, inner) in
            [("preferredDuringSchedulingIgnoredDuringExecution", true), ("requiredDuringSchedulingIgnoredDuringExecution", false)]
        {
            for term in terms.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                let term = if inner { term.get_mut("podAffinityTerm") } else { Some(term) };
                if let Some(term) = term.and_then(Value::as_object_mut) {
                    complete(term, &labels);
                }
            }
        }
    }
    for spread in spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(spread) = spread.as_object_mut() {
            complete(spread, &labels);
        }
    }
}

/// Turns `matchLabelKeys` and `mismatchLabelKeys` into requirements of the selector beside them.
fn complete(term: &mut Map<String, Value>, labels: &Map<String, Value>) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
        for key in keys.iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else { continue };
            let requirements = selector.entry("matchExpressions").or_insert_with(|| json!([]));
            if let Some(list) = requirements.as_array_mut() {
                list.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
}
