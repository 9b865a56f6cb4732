//! Writes to one part of an object: the debug containers and the sizes of a pod, the decision about a certificate request.
//!
//! Main functions: [`take`], which leaves everything else as it was, and [`check`].

use super::defaults::quality_of_service;
use crate::gotypes;
use crate::registry::Part;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// Makes `new` the old object with the part from `new`.
pub fn take(part: Part, old: &Object, new: &mut Object) {
    let sent = std::mem::replace(new, old.clone());
    if let Some(managed) = sent.metadata("managedFields") {
        new.metadata_mut().insert("managedFields".into(), managed.clone());
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
            new.0.insert("metadata".into(), sent.0.get("metadata").cloned().unwrap_or_default());
            let conditions = sent.pointer("/status/conditions").cloned().unwrap_or(Value::Null);
            map_entry(&mut new.0, "status").insert("conditions".into(), conditions);
        }
        _ => {
            for list in ["containers", "initContainers"] {
                resize(&sent, new, list);
            }
        }
    }
}

/// Takes over what containers of the same name ask for.
fn resize(sent: &Object, new: &mut Object, list: &str) {
    let sizes = sent.pointer(&format!("/spec/{list}")).and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(containers) = map_entry(&mut new.0, "spec").get_mut(list).and_then(Value::as_array_mut) else { return };
    for container in containers.iter_mut().filter_map(Value::as_object_mut) {
        let same = sizes.iter().find(|s| s.get("name") == container.get("name"));
        for field in ["resources", "resizePolicy"] {
            if let Some(value) = same.and_then(|s| s.get(field)) {
                container.insert(field.into(), value.clone());
            }
        }
    }
}

/// A certificate request stays what it was asked for; conditions get their times.
pub fn prepare_request(part: Part, old: &Object, new: &mut Object, now: &str) {
    if let Some(spec) = old.0.get("spec").cloned() {
        new.0.insert("spec".into(), spec);
    }
    let before = old.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(conditions) = new.0.get_mut("status").and_then(|s| s.get_mut("conditions")).and_then(Value::as_array_mut) else { return };
    if part == Part::Main {
        return;
    }
    for kind in ["Approved", "Denied"].iter().filter(|_| part == Part::Status) {
        let was: Vec<&Value> = before.iter().filter(|c| c["type"] == *kind).collect();
        let mut is: Vec<&mut Value> = conditions.iter_mut().filter(|c| c["type"] == *kind).collect();
        if was.len() == is.len() {
            is.iter_mut().zip(was).for_each(|(is, was)| **is = was.clone());
        }
    }
    for condition in conditions.iter_mut() {
        let same = before.iter().find(|c| c["type"] == condition["type"] && c["status"] == condition["status"]);
        let since = same.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or(now);
        for (field, time) in [("lastUpdateTime", now), ("lastTransitionTime", since)] {
            if condition[field].is_null() {
                condition[field] = time.into();
            }
        }
    }
}

/// Debug containers come and never go or change.
pub fn check(part: Part, new: &Object, old: &Object) -> Vec<Cause> {
    match part {
        Part::Ephemeral => {}
        Part::Approval => return super::validate::decision(new, old),
        Part::Resize if quality_of_service(new) != quality_of_service(old) => {
            let class = new.str_at("/status/qosClass").into();
            return vec![Cause::invalid("spec", &class, "Pod QOS Class may not change as a result of resizing")];
        }
        _ => return Vec::new(),
    }
    let list = |o: &Object| o.pointer("/spec/ephemeralContainers").and_then(Value::as_array).cloned().unwrap_or_default();
    let (new_list, old_list) = (list(new), list(old));
    let mut causes = Vec::new();
    for (i, container) in new_list.iter().enumerate() {
        for field in ["name", "image"] {
            if container.get(field).and_then(Value::as_str).unwrap_or("").is_empty() {
                causes.push(Cause::required(&format!("spec.ephemeralContainers[{i}].{field}"), ""));
            }
        }
    }
    let field = "spec.ephemeralContainers";
    for was in &old_list {
        let name = was.get("name").and_then(Value::as_str).unwrap_or("");
        match new_list.iter().find(|c| c.get("name") == was.get("name")) {
            None => causes.push(Cause::forbidden(field, &format!("existing ephemeral containers {name:?} may not be removed\n"))),
            Some(now) if now != was => {
                let diff = gotypes::diff(was, now, "core/v1.EphemeralContainer");
                causes.push(Cause::forbidden(field, &format!("existing ephemeral containers {name:?} may not be changed\n{diff}")));
            }
            Some(_) => {}
        }
    }
    causes
}
