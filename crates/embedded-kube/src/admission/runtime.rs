//! RuntimeClasses: the fields that a new pod gets from its class, and the conflicts that are
//! rejected.

use super::{forbidden, spec};
use crate::catalog::Resource;
use crate::reader::Reader;
use crate::status::Status;
use serde_json::{Map, Value};
use std::sync::Arc;
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_apimachinery::{Gvr, Object};

const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn class(
    cluster: &dyn Reader,
    resource: &Resource,
    pod: &Object,
) -> Result<Option<Arc<Object>>, Status> {
    let Some(name) = pod
        .pointer("/spec/runtimeClassName")
        .and_then(Value::as_str)
    else {
        return Ok(None);
    };
    if name.is_empty() {
        return Err(Status::new(500, "", "resource name may not be empty"));
    }
    let found = cluster.get(&Gvr::new("node.k8s.io", "v1", "runtimeclasses"), "", name);
    found.map(Some).map_err(|_| {
        forbidden(
            resource,
            pod,
            &format!("pod rejected: RuntimeClass \"{name}\" not found"),
        )
    })
}

/// Whether the quantities are equal, however they are written.
fn same(a: &Value, b: &Value) -> bool {
    let read = |v: &Value| -> Vec<(String, Option<Quantity>)> {
        let map = v.as_object().into_iter().flatten();
        map.map(|(name, amount)| (name.clone(), amount.as_str().and_then(|t| t.parse().ok())))
            .collect()
    };
    read(a) == read(b)
}

/// The overhead of a class, which may be empty.
fn fixed(class: &Object) -> Option<Value> {
    let overhead = class
        .pointer("/overhead")
        .filter(|overhead| !overhead.is_null())?;
    Some(
        overhead
            .get("podFixed")
            .filter(|map| !map.is_null())
            .cloned()
            .unwrap_or_else(|| Map::new().into()),
    )
}

/// Adds overhead, node selector and tolerations.
pub fn admit(cluster: &dyn Reader, resource: &Resource, pod: &mut Object) -> Result<(), Status> {
    let Some(class) = class(cluster, resource, pod)? else {
        return Ok(());
    };
    if let Some(overhead) = fixed(&class) {
        let given = pod.pointer("/spec/overhead").cloned().unwrap_or_default();
        if given.as_object().is_some_and(|m| !m.is_empty()) && !same(&given, &overhead) {
            return Err(forbidden(resource, pod, OTHER_OVERHEAD));
        }
        spec(pod).insert("overhead".into(), overhead);
    }
    for (key, value) in class
        .pointer("/scheduling/nodeSelector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let given = pod
            .pointer("/spec/nodeSelector")
            .and_then(|s| s.get(key))
            .cloned();
        if let Some(given) = given.filter(|given| given != value) {
            let text = |v: &Value| v.as_str().unwrap_or("").to_owned();
            let (theirs, own) = (text(value), text(&given));
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {theirs}; pod.spec.nodeSelector[{key}] = {own}"
            );
            return Err(forbidden(resource, pod, &why));
        }
        map_entry(spec(pod), "nodeSelector").insert(key.clone(), value.clone());
    }
    let more = class
        .pointer("/scheduling/tolerations")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if class.pointer("/scheduling").is_some() {
        let given = pod
            .pointer("/spec/tolerations")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let merged = merge(given.into_iter().chain(more).collect());
        if !merged.is_empty() {
            spec(pod).insert("tolerations".into(), merged.into());
        }
    }
    Ok(())
}

/// The tolerations without those that another one covers.
fn merge(all: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (i, one) in all.iter().enumerate() {
        let before = merged.iter().any(|other| covers(other, one));
        let after = all[i + 1..]
            .iter()
            .any(|other| other != one && covers(other, one));
        if !before && !after {
            merged.push(one.clone());
        }
    }
    merged
}

/// Whether a toleration tolerates everything that another one does.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |v: &Value, field: &str| v[field].as_str().unwrap_or("").to_owned();
    let exists = text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !(text(wide, "key").is_empty() && exists) {
        return false;
    }
    if text(wide, "effect") != text(narrow, "effect") && !text(wide, "effect").is_empty() {
        return false;
    }
    let seconds = |v: &Value| v["tolerationSeconds"].as_i64();
    if text(wide, "effect") == "NoExecute"
        && let Some(limit) = seconds(wide)
        && seconds(narrow).is_none_or(|n| limit < n)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "" | "Equal" => {
            text(narrow, "operator") == "Equal" && text(wide, "value") == text(narrow, "value")
        }
        _ => exists,
    }
}

/// Checks that the overhead is that of the class. `hollow`: there is an empty overhead.
pub fn check(
    cluster: &dyn Reader,
    resource: &Resource,
    pod: &Object,
    hollow: bool,
) -> Result<(), Status> {
    let class = class(cluster, resource, pod)?;
    let given = pod.pointer("/spec/overhead").cloned().unwrap_or_default();
    match class.as_ref().and_then(|class| fixed(class)) {
        Some(overhead) if !same(&given, &overhead) => Err(forbidden(resource, pod, OTHER_OVERHEAD)),
        None if hollow || !given.is_null() => Err(forbidden(
            resource,
            pod,
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        )),
        _ => Ok(()),
    }
}
