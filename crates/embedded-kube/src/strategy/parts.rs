//! Writes to one part of an object: the ephemeral containers and the resources of a pod, the
//! approval of a certificate request.
//!
//! Main function: [`take`], which leaves everything else unchanged.

use crate::base::Part;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// Sets `new` to the old object with the written part from `new`.
pub fn take(part: Part, old: &Object, new: &mut Object) {
    let sent = std::mem::replace(new, old.clone());
    for field in [
        "managedFields",
        "generateName",
        "deletionGracePeriodSeconds",
    ] {
        if let Some(value) = sent.metadata(field) {
            new.metadata_mut().insert(field.into(), value.clone());
        }
    }
    match part {
        Part::Ephemeral => {
            let list = sent.pointer("/spec/ephemeralContainers").cloned();
            let spec = map_entry(&mut new.0, "spec");
            match list {
                Some(list) => spec.insert("ephemeralContainers".into(), list),
                None => spec.remove("ephemeralContainers"),
            };
        }
        Part::Approval => {
            new.0.insert(
                "metadata".into(),
                sent.0.get("metadata").cloned().unwrap_or_default(),
            );
            let conditions = sent
                .pointer("/status/conditions")
                .cloned()
                .unwrap_or(Value::Null);
            map_entry(&mut new.0, "status").insert("conditions".into(), conditions);
        }
        _ => resize(sent, new),
    }
}

/// Takes over the resources of the containers. If the containers differ, validation reports it
/// later.
fn resize(sent: Object, new: &mut Object) {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let list = |o: &Object, list: &str| {
        o.pointer(&format!("/spec/{list}"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    if LISTS
        .iter()
        .any(|name| list(&sent, name).len() != list(new, name).len())
    {
        *new = sent;
        return;
    }
    for name in LISTS {
        let (mut containers, wanted) = (list(new, name), list(&sent, name));
        if containers
            .iter()
            .zip(&wanted)
            .all(|(is, wanted)| is.get("name") == wanted.get("name"))
        {
            let pairs = containers
                .iter_mut()
                .zip(&wanted)
                .filter_map(|(is, wanted)| Some((is.as_object_mut()?, wanted)));
            pairs.for_each(|(is, wanted)| {
                ["resources", "resizePolicy"]
                    .into_iter()
                    .for_each(|field| copy(field, wanted, is))
            });
        } else {
            containers = wanted;
        }
        if !containers.is_empty() {
            map_entry(&mut new.0, "spec").insert(name.into(), containers.into());
        }
    }
    let spec = sent.0.get("spec").cloned().unwrap_or_default();
    copy("resources", &spec, map_entry(&mut new.0, "spec"));
}

fn copy(field: &str, from: &Value, to: &mut Map<String, Value>) {
    match from.get(field) {
        Some(value) => to.insert(field.to_owned(), value.clone()),
        None => to.remove(field),
    };
}

/// The spec of a certificate request does not change; its conditions get their times.
pub fn prepare_request(part: Part, old: &Object, new: &mut Object, now: &str) {
    if let Some(spec) = old.0.get("spec").cloned() {
        new.0.insert("spec".into(), spec);
    }
    let before = old
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(conditions) = new
        .0
        .get_mut("status")
        .and_then(|s| s.get_mut("conditions"))
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    if part == Part::Main {
        return;
    }
    for kind in ["Approved", "Denied"]
        .iter()
        .filter(|_| part == Part::Status)
    {
        let was: Vec<&Value> = before.iter().filter(|c| c["type"] == *kind).collect();
        let mut is: Vec<&mut Value> = conditions
            .iter_mut()
            .filter(|c| c["type"] == *kind)
            .collect();
        if was.len() == is.len() {
            is.iter_mut()
                .zip(was)
                .for_each(|(is, was)| **is = was.clone());
        }
    }
    for condition in conditions.iter_mut() {
        let same = before
            .iter()
            .find(|c| c["type"] == condition["type"] && c["status"] == condition["status"]);
        let since = same
            .and_then(|c| c["lastTransitionTime"].as_str())
            .unwrap_or(now);
        for (field, time) in [("lastUpdateTime", now), ("lastTransitionTime", since)] {
            if condition[field].is_null() {
                condition[field] = time.into();
            }
        }
    }
}
