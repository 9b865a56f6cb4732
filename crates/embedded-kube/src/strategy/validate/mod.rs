//! What is refused with 422: the checks that people meet most, with the real server's wording.
//!
//! Main function: [`check`]. It collects causes; it changes nothing.

mod meta;
mod pod;
mod service;
mod workloads;

use crate::catalog::Resource;
use crate::status::Cause;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;

/// Everything that is wrong with an object; `old` is there for updates.
pub fn check(resource: &Resource, object: &Object, old: Option<&Object>) -> Vec<Cause> {
    let mut causes = meta::check(resource, object);
    match resource.table.as_str() {
        "apps/deployments" | "apps/replicasets" | "apps/daemonsets" | "apps/statefulsets" => {
            workloads::apps(&resource.resource, object, old, &mut causes);
        }
        "batch/jobs" => workloads::job(object, old, &mut causes),
        "batch/cronjobs" => workloads::cron_job(object, &mut causes),
        "/pods" => pod::pod(object, old, &mut causes),
        "/services" => service::check(object, old, &mut causes),
        "/configmaps" | "/secrets" => immutable_data(object, old, &mut causes),
        "/persistentvolumeclaims" => claim(object, old, &mut causes),
        "networking.k8s.io/ingresses" => ingress(object, &mut causes),
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings" => {
            let changed = old.is_some_and(|old| old.0.get("roleRef") != object.0.get("roleRef"));
            causes.extend(changed.then(|| Cause::invalid("roleRef", &at(object, "/roleRef"), "cannot change roleRef")));
        }
        "autoscaling/horizontalpodautoscalers" => {
            let (min, max) = (object.i64_at("/spec/minReplicas").unwrap_or(1), object.i64_at("/spec/maxReplicas").unwrap_or(0));
            if max < 1 {
                causes.push(Cause::required("spec.maxReplicas", "must be set and greater than 0"));
            }
            if max < min {
                causes.push(Cause::invalid("spec.maxReplicas", &max.into(), "must be greater than or equal to `minReplicas`"));
            }
        }
        _ => {}
    }
    causes
}

/// The value at a pointer, null when absent.
fn at(object: &Object, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or(Value::Null)
}

fn list<'a>(map: &'a Value, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn not_negative(object: &Object, pointer: &str, causes: &mut Vec<Cause>) {
    if let Some(n) = object.i64_at(pointer).filter(|n| *n < 0) {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        causes.push(Cause::invalid(&field, &n.into(), "must be greater than or equal to 0"));
    }
}

fn immutable_data(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let data = object.0.get("data").and_then(Value::as_object);
    for key in data.into_iter().flat_map(Map::keys) {
        let fits = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !fits || key.is_empty() || key.len() > 253 || key == "." || key.starts_with("..") {
            let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  \
                          or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            causes.push(Cause::invalid(&format!("data[{key}]"), &key.as_str().into(), detail));
        }
    }
    let Some(old) = old else { return };
    if object.kind() == "Secret" && old.0.get("type") != object.0.get("type") {
        causes.push(Cause::invalid("type", &at(object, "/type"), "field is immutable"));
    }
    if old.0.get("immutable") == Some(&Value::Bool(true)) {
        let detail = "field is immutable when `immutable` is set";
        for field in ["immutable", "data", "binaryData"] {
            if old.0.get(field) != object.0.get(field) {
                causes.push(Cause::forbidden(field, detail));
            }
        }
    }
}

/// What never changes of a claim. The binder may fill in volume and class.
fn frozen_claim(claim: &Object, of: &Object) -> Value {
    let mut spec = at(claim, "/spec");
    if let Some(map) = spec.as_object_mut() {
        map.remove("volumeAttributesClassName");
        for filled in ["volumeName", "storageClassName"] {
            if of.str_at(&format!("/spec/{filled}")).is_empty() {
                map.remove(filled);
            }
        }
        if let Some(resources) = map.get_mut("resources").and_then(Value::as_object_mut) {
            resources.remove("requests");
        }
    }
    spec
}

fn claim(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    if old.is_some_and(|old| frozen_claim(old, old) != frozen_claim(object, old)) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", detail));
    }
    if object.pointer("/spec/accessModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if object.pointer("/spec/resources/requests/storage").is_none() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
}

fn ingress(object: &Object, causes: &mut Vec<Cause>) {
    let spec = at(object, "/spec");
    if list(&spec, "rules").is_empty() && spec.get("defaultBackend").is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &Value::Null, detail));
    }
    for (i, rule) in list(&spec, "rules").iter().enumerate() {
        for (j, path) in rule.pointer("/http/paths").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let field = format!("spec.rules[{i}].http.paths[{j}]");
            match text(path, "pathType") {
                "" => causes.push(Cause::required(&format!("{field}.pathType"), "pathType must be specified")),
                "Exact" | "Prefix" | "ImplementationSpecific" => {}
                _ => causes.push(Cause::not_supported(
                    &format!("{field}.pathType"),
                    &path["pathType"],
                    &["Exact", "ImplementationSpecific", "Prefix"],
                )),
            }
            let service = path.pointer("/backend/service");
            if service.is_some_and(|s| text(s, "name").is_empty()) {
                causes.push(Cause::required(&format!("{field}.backend.service.name"), ""));
            }
        }
    }
}
