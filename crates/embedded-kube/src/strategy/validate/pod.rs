//! Pods and pod templates.

use super::{at, list, meta, text};
use crate::status::Cause;
use serde_json::Value;
use std::collections::HashSet;
use tiphys_apimachinery::Object;

const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with \
                         an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const FROZEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn pod(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    match old {
        None => spec(&at(object, "/spec"), "spec", causes),
        Some(old) => {
            if frozen(old) != frozen(object) {
                causes.push(Cause::forbidden("spec", FROZEN));
            }
        }
    }
}

/// The part of a pod's spec that never changes. The node may be set once.
fn frozen(pod: &Object) -> Value {
    let mut spec = at(pod, "/spec");
    if let Some(map) = spec.as_object_mut() {
        for free in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName", "schedulingGates"] {
            map.remove(free);
        }
        for key in ["containers", "initContainers"] {
            let containers = map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
            for container in containers.filter_map(Value::as_object_mut) {
                container.remove("image");
                // Defaulted from the image, and changed by resizing.
                container.remove("resources");
            }
        }
        map.remove("ephemeralContainers");
    }
    spec
}

/// A pod spec at `path`.
pub fn spec(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let containers = list(spec, "containers");
    if containers.is_empty() {
        causes.push(Cause::required(&format!("{path}.containers"), ""));
    }
    let volumes: HashSet<&str> = list(spec, "volumes").iter().map(|v| text(v, "name")).collect();
    let mut names = HashSet::new();
    for key in ["containers", "initContainers"] {
        for (i, container) in list(spec, key).iter().enumerate() {
            let field = format!("{path}.{key}[{i}]");
            let name = text(container, "name");
            if name.is_empty() {
                causes.push(Cause::required(&format!("{field}.name"), ""));
            } else if !meta::is_label(name) {
                causes.push(Cause::invalid(&format!("{field}.name"), &name.into(), DNS_LABEL));
            } else if !names.insert(name) {
                causes.push(Cause::duplicate(&format!("{field}.name"), &name.into()));
            }
            if text(container, "image").is_empty() {
                causes.push(Cause::required(&format!("{field}.image"), ""));
            }
            parts(container, &field, &volumes, causes);
        }
    }
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        if text(volume, "name").is_empty() {
            causes.push(Cause::required(&format!("{path}.volumes[{i}].name"), ""));
        }
    }
    let policy = text(spec, "restartPolicy");
    if !matches!(policy, "" | "Always" | "OnFailure" | "Never") {
        let value = spec["restartPolicy"].clone();
        causes.push(Cause::not_supported(&format!("{path}.restartPolicy"), &value, &["Always", "Never", "OnFailure"]));
    }
}

fn parts(container: &Value, field: &str, volumes: &HashSet<&str>, causes: &mut Vec<Cause>) {
    for (i, port) in list(container, "ports").iter().enumerate() {
        let number = port["containerPort"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let at = format!("{field}.ports[{i}].containerPort");
            causes.push(if number == 0 {
                Cause::required(&at, "")
            } else {
                Cause::invalid(&at, &number.into(), "must be between 1 and 65535, inclusive")
            });
        }
    }
    for (i, variable) in list(container, "env").iter().enumerate() {
        if text(variable, "name").is_empty() {
            causes.push(Cause::required(&format!("{field}.env[{i}].name"), ""));
        }
    }
    for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
        let name = text(mount, "name");
        if !volumes.contains(name) {
            let message = format!("Not found: \"{name}\"");
            causes.push(Cause { reason: "FieldValueNotFound", message, field: format!("{field}.volumeMounts[{i}].name") });
        }
        if text(mount, "mountPath").is_empty() {
            causes.push(Cause::required(&format!("{field}.volumeMounts[{i}].mountPath"), ""));
        }
    }
    let policy = text(container, "imagePullPolicy");
    if !matches!(policy, "" | "Always" | "IfNotPresent" | "Never") {
        let value = container["imagePullPolicy"].clone();
        causes.push(Cause::not_supported(&format!("{field}.imagePullPolicy"), &value, &["Always", "IfNotPresent", "Never"]));
    }
}
