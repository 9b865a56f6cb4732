//! Changes to the resources of the containers of a running pod. Main function: [`check`].

use super::super::rules::At;
use super::annotations;
use crate::status::Cause;
use crate::validation::qos::quality_of_service;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;

const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const ONLY_THESE: &str = "only cpu and memory resources are mutable";

/// A resized pod; its metadata has been checked.
pub fn check(pod: &At<'_>, new: &Object, old: &Object, causes: &mut Vec<Cause>) {
    super::whole(pod, causes);
    let alone = if old.annotation(annotations::MIRROR).is_some() {
        Some("static pods cannot be resized")
    } else if old.str_at("/spec/os/name") == "windows" {
        Some("windows pods cannot be resized")
    } else {
        None
    };
    if let Some(why) = alone {
        *causes = vec![Cause::forbidden(super::NOWHERE, why)];
        return;
    }
    let spec = pod.get("spec");
    if old.str_at("/status/qosClass") != quality_of_service(new) {
        let class = pod.get("status.qosClass").text();
        causes.push(spec.invalid_as(
            class,
            "Pod QOS Class may not change as a result of resizing",
        ));
    }
    let statuses = old
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    if statuses
        .into_iter()
        .find(|s| s.pointer("/state/running").is_some())
        .is_some_and(|s| s.get("resources").is_none())
    {
        causes.push(spec.forbidden("Pod running on node without support for resize"));
    }
    let before = Value::Object(old.0.clone());
    let before = At::new(&before, "").get("spec");
    let mut kept = spec.value.clone();
    whole_pod(&spec, &before, &mut kept, causes);
    if !same_order(&spec, &before, causes) {
        return;
    }
    for list in ["initContainers", "containers"] {
        for (now, was) in spec.get(list).items().iter().zip(before.get(list).items()) {
            removed(
                &now.get("resources"),
                &was.get("resources"),
                ["resource requests", "resource limits"],
                causes,
            );
        }
    }
    for list in LISTS {
        containers(list, &spec, &before, &mut kept, causes);
    }
    if causes.is_empty() && kept != *before.value {
        causes.push(spec.forbidden(ONLY_THESE));
    }
}

/// The resources of the pod itself.
fn whole_pod(spec: &At<'_>, before: &At<'_>, kept: &mut Value, causes: &mut Vec<Cause>) {
    let (now, was) = (spec.get("resources"), before.get("resources"));
    let says = |at: &At<'_>| at.get("requests").len() + at.get("limits").len() > 0;
    if !says(&now) && !says(&was) {
        return;
    }
    if now.is_null() {
        return causes.push(now.forbidden("pod-level resources cannot be removed"));
    }
    if !was.is_null() {
        removed(
            &now,
            &was,
            ["pod-level resource requests", "pod-level resource limits"],
            causes,
        );
    }
    let mut resources = as_before(now.value, was.value);
    resources.extend(
        now.get("claims")
            .value
            .as_array()
            .map(|claims| ("claims".to_owned(), claims.clone().into())),
    );
    let resources = if was.is_null() && resources.is_empty() {
        Value::Null
    } else {
        resources.into()
    };
    if resources != *was.value {
        causes.push(spec.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
    if let Some(map) = kept.as_object_mut() {
        map.insert("resources".into(), resources);
        map.retain(|_, value| !value.is_null());
    }
}

/// Whether the containers are the same as before.
fn same_order(spec: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) -> bool {
    let known = causes.len();
    for list in LISTS {
        let (now, was) = (spec.get(list), before.get(list));
        if now.len() != was.len() {
            causes.push(now.forbidden(&format!("{list} may not be added or removed on resize")));
            continue;
        }
        let pairs = now
            .items()
            .into_iter()
            .zip(was.items())
            .map(|(now, was)| (now.get("name"), was.get("name")));
        let renamed = pairs.filter(|(now, was)| now.value != was.value);
        causes.extend(renamed.map(|(name, _)| {
            name.forbidden(&format!("{list} may not be renamed or reordered on resize"))
        }));
    }
    causes.len() == known
}

/// An existing quantity must not be removed.
fn removed(now: &At<'_>, was: &At<'_>, called: [&str; 2], causes: &mut Vec<Cause>) {
    for (kind, called) in ["requests", "limits"].into_iter().zip(called) {
        let (now, was) = (now.get(kind), was.get(kind));
        if was.len() > now.len()
            || was
                .entries()
                .iter()
                .any(|(name, _)| now.value.get(name).is_none())
        {
            causes.push(now.forbidden(&format!("{called} cannot be removed")));
        }
    }
}

/// Only the CPU and memory of the containers may change.
fn containers(
    list: &str,
    spec: &At<'_>,
    before: &At<'_>,
    kept: &mut Value,
    causes: &mut Vec<Cause>,
) {
    let nothing = Value::Null;
    let initial = list == "initContainers";
    for (i, (now, was)) in spec
        .get(list)
        .items()
        .iter()
        .zip(before.get(list).items())
        .enumerate()
    {
        let mut container = now.value.clone();
        let field = "resources";
        let resources = as_before(now.get(field).value, was.get(field).value);
        // An empty struct is written, too.
        container[field] = resources.into();
        let mut was_there = was.value.clone();
        if was_there.get(field).is_none_or(Value::is_null) {
            was_there[field] = Map::new().into();
        }
        if container != was_there {
            causes.push(match initial {
                true => now.forbidden(
                    "only cpu and memory resources for init or sidecar containers are mutable",
                ),
                false => spec.forbidden(ONLY_THESE),
            });
        }
        let sidecar = now.get("restartPolicy").value == "Always";
        if initial && !sidecar && now.value != was.value {
            let restarts = now
                .get("resizePolicy")
                .items()
                .into_iter()
                .filter(|p| p.get("restartPolicy").value == "RestartContainer");
            let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            causes.extend(restarts.map(|_| now.forbidden(why)));
        }
        if let Some(slot) = kept.get_mut(list).and_then(|all| all.get_mut(i)) {
            *slot = if container == was_there {
                was.value.clone()
            } else {
                container
            };
        }
    }
    if before.value.get(list).unwrap_or(&nothing).is_null() && spec.get(list).is_empty() {
        kept.as_object_mut().map(|map| map.remove(list));
    }
}

/// The resources with their previous CPU and memory.
fn as_before(now: &Value, was: &Value) -> Map<String, Value> {
    let kinds = ["limits", "requests"].into_iter().map(|kind| {
        let mut amounts = now
            .get(kind)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        for name in RESIZABLE {
            match was.get(kind).and_then(|amounts| amounts.get(name)) {
                Some(amount) => amounts.insert(name.to_owned(), amount.clone()),
                None => amounts.remove(name),
            };
        }
        (kind.to_owned(), Value::Object(amounts))
    });
    kinds
        .filter(|(_, amounts)| amounts.as_object().is_some_and(|map| !map.is_empty()))
        .collect()
}
