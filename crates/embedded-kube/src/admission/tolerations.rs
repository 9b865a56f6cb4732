//! Adds default tolerations: a pod stays for five minutes on a node that is not ready or
//! unreachable, unless the pod has its own tolerations for that.

use super::spec;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

const KEYS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// Adds the tolerations that are missing.
pub fn admit(pod: &mut Object) {
    let slot = spec(pod).entry("tolerations").or_insert_with(|| json!([]));
    let Some(list) = slot.as_array_mut() else {
        return;
    };
    let covered = |list: &[Value], key: &str| {
        list.iter().any(|t| {
            let (of, effect) = (
                t["key"].as_str().unwrap_or(""),
                t["effect"].as_str().unwrap_or(""),
            );
            (of == key || of.is_empty()) && matches!(effect, "NoExecute" | "")
        })
    };
    let missing: Vec<&str> = KEYS.into_iter().filter(|key| !covered(list, key)).collect();
    for key in missing {
        list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
    }
    if list.is_empty() {
        spec(pod).remove("tolerations");
    }
}
