//! AppArmor profiles used to be annotations: a new pod gets the corresponding fields. Main
//! function: [`take_over`].

use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

const KEY: &str = "container.apparmor.security.beta.kubernetes.io/";
const LONGEST: usize = 4095;

/// Sets the profiles that are only in annotations; returns warnings.
pub fn take_over(pod: &mut Object) -> Vec<String> {
    let annotations = pod.annotations();
    if pod.str_at("/spec/os/name") == "windows"
        || !annotations.keys().any(|key| key.starts_with(KEY))
    {
        return Vec::new();
    }
    let own = pod
        .pointer("/spec/securityContext/appArmorProfile")
        .cloned();
    let mut warnings = Vec::new();
    for list in ["initContainers", "containers"] {
        let containers = map_entry(&mut pod.0, "spec")
            .get_mut(list)
            .and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let key = format!(
                "{KEY}{}",
                container.get("name").and_then(Value::as_str).unwrap_or("")
            );
            let has_one = container
                .get("securityContext")
                .is_some_and(|context| context.get("appArmorProfile").is_some());
            let Some(says) = annotations.get(&key).filter(|_| !has_one) else {
                continue;
            };
            let meant = profile(says);
            if meant.is_none() || meant != own {
                warnings.push(format!("metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"));
                set(container, meant);
            }
        }
    }
    warnings
}

/// The profile in an annotation, if it is valid.
fn profile(says: &str) -> Option<Value> {
    match says {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let path = says.strip_prefix("localhost/")?;
            let is_valid = !path.is_empty() && path.trim() == path && path.len() <= LONGEST;
            is_valid.then(|| json!({"type": "Localhost", "localhostProfile": path}))
        }
    }
}

fn set(container: &mut Map<String, Value>, profile: Option<Value>) {
    if let Some(profile) = profile {
        map_entry(container, "securityContext").insert("appArmorProfile".into(), profile);
    }
}
