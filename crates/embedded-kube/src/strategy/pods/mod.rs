//! The fields of a new pod and of its status that the server sets. Main functions:
//! [`prepare_create`], [`keep_status`].

mod apparmor;
mod disabled_fields;

pub use disabled_fields::{forget, forgets};

use crate::validation::qos::quality_of_service;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// Sets the initial status of a pod, and completes selectors from its own labels. Returns warnings.
pub fn prepare_create(pod: &mut Object, now: &str) -> Vec<String> {
    let mut status = json!({"phase": "Pending", "qosClass": quality_of_service(pod)});
    let gates = pod
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array);
    if gates.is_some_and(|list| !list.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null, "lastTransitionTime": now,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.0.insert("status".into(), status);
    let labels = pod
        .metadata("labels")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let spec = map_entry(&mut pod.0, "spec");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = spec
            .get_mut("affinity")
            .and_then(|a| a.get_mut(kind))
            .and_then(Value::as_object_mut);
        let Some(terms) = terms else { continue };
        for (list, inner) in [
            ("preferredDuringSchedulingIgnoredDuringExecution", true),
            ("requiredDuringSchedulingIgnoredDuringExecution", false),
        ] {
            for term in terms
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                let term = if inner {
                    term.get_mut("podAffinityTerm")
                } else {
                    Some(term)
                };
                if let Some(term) = term.and_then(Value::as_object_mut) {
                    complete(term, &labels);
                }
            }
        }
    }
    for spread in spec
        .get_mut("topologySpreadConstraints")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(spread) = spread.as_object_mut() {
            complete(spread, &labels);
        }
    }
    apparmor::take_over(pod)
}

/// Converts `matchLabelKeys` and `mismatchLabelKeys` to requirements of the selector next to them.
fn complete(term: &mut Map<String, Value>, labels: &Map<String, Value>) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term
            .get(field)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else {
            return;
        };
        for key in keys.iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else {
                continue;
            };
            let requirements = selector
                .entry("matchExpressions")
                .or_insert_with(|| json!([]));
            if let Some(list) = requirements.as_array_mut() {
                list.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
}

/// Copies missing values from the previous status: the QoS class, and the observed generation, also
/// for each condition. If there are several conditions of a type, the first ones correspond.
pub fn keep_status(old: &Object, new: &mut Object) {
    const OBSERVED: &str = "observedGeneration";
    let none = |value: Option<&Value>| value.is_none_or(|v| v.is_null() || *v == 0 || *v == "");
    let status = map_entry(&mut new.0, "status");
    disabled_fields::forget_in_status(status);
    for field in ["qosClass", OBSERVED] {
        if let (true, Some(before)) = (
            none(status.get(field)),
            old.pointer(&format!("/status/{field}")),
        ) {
            status.insert(field.into(), before.clone());
        }
    }
    let mut observed: HashMap<&str, Vec<&Value>> = HashMap::new();
    for condition in old
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .rev()
    {
        observed
            .entry(condition["type"].as_str().unwrap_or(""))
            .or_default()
            .push(&condition[OBSERVED]);
    }
    for condition in status
        .get_mut("conditions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let before = observed
            .get_mut(condition["type"].as_str().unwrap_or(""))
            .and_then(Vec::pop)
            .filter(|v| !v.is_null());
        if let (Some(before), true, Some(map)) = (
            before,
            none(condition.get(OBSERVED)),
            condition.as_object_mut(),
        ) {
            map.insert(OBSERVED.into(), before.clone());
        }
    }
}
