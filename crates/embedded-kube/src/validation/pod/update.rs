//! Which fields of an existing pod may change.

use super::super::rules::{At, Check};
use super::{affinity, annotations, container};
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::gotypes;

const FROZEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// An update of the pod itself; its metadata has been checked.
pub fn check(pod: &At<'_>, old: &Object, causes: &mut Vec<Cause>) {
    super::whole(pod, causes);
    annotation_changes(pod, causes);
    let spec = pod.get("spec");
    let before = Value::Object(old.0.clone());
    let before = At::new(&before, "").get("spec");
    for list in ["containers", "initContainers"] {
        let (now, was) = (spec.get(list), before.get(list));
        if now.len() != was.len() {
            causes.push(now.forbidden("pod updates may not add or remove containers"));
            return;
        }
        for item in now.items() {
            item.get("image").check(&[Check::Required("")], causes);
            container::trimmed_image(&item, causes);
        }
    }
    if !deadline(&spec, &before, causes) {
        return;
    }
    tolerations(&spec.get("tolerations"), &before.get("tolerations"), causes);
    gates(
        &spec.get("schedulingGates"),
        &before.get("schedulingGates"),
        causes,
    );
    if spec.value == before.value {
        return;
    }
    let munged = munged(&spec, &before, causes);
    if munged != *before.value {
        let diff = gotypes::diff(before.value, &munged, "core/v1.PodSpec");
        causes.push(spec.forbidden(&format!("{FROZEN}\n{diff}")));
    }
}

/// A pod with ephemeral containers, which can only be added; its metadata has been checked.
pub fn debugged(pod: &At<'_>, old: &Object, causes: &mut Vec<Cause>) {
    super::whole(pod, causes);
    annotation_changes(pod, causes);
    if old.annotation(annotations::MIRROR).is_some() {
        *causes = vec![Cause::forbidden(
            super::NOWHERE,
            "static pods do not support ephemeral containers",
        )];
        return;
    }
    let list = pod.get("spec.ephemeralContainers");
    let before = Value::Object(old.0.clone());
    for was in At::new(&before, "").get("spec.ephemeralContainers").items() {
        let name = was.get("name");
        match list
            .items()
            .into_iter()
            .rev()
            .find(|now| now.get("name").value == name.value)
        {
            None => causes.push(list.forbidden(&format!(
                "existing ephemeral containers {:?} may not be removed\n",
                name.text()
            ))),
            Some(now) if now.value != was.value => {
                let diff = gotypes::diff(was.value, now.value, "core/v1.EphemeralContainer");
                causes.push(list.forbidden(&format!(
                    "existing ephemeral containers {:?} may not be changed\n{diff}",
                    name.text()
                )));
            }
            Some(_) => {}
        }
    }
}

/// Annotations that stand for fields of a running pod.
pub fn annotation_changes(pod: &At<'_>, causes: &mut Vec<Cause>) {
    let at = pod.get("metadata.annotations");
    let old = at.old.unwrap_or(&Value::Null);
    for (key, was) in At::new(old, at.path.clone()).entries() {
        if at.value.get(key) == Some(was.value) {
            continue;
        }
        if key.starts_with(annotations::APP_ARMOR) {
            causes.push(was.forbidden("may not remove or update AppArmor annotations"));
        }
        if key == annotations::MIRROR {
            causes.push(was.forbidden("may not remove or update mirror pod annotation"));
        }
    }
    for (key, now) in at
        .entries()
        .into_iter()
        .filter(|(key, _)| old.get(*key).is_none())
    {
        if key.starts_with(annotations::APP_ARMOR) {
            causes.push(now.forbidden("may not add AppArmor annotations"));
        }
        if key == annotations::MIRROR {
            causes.push(now.forbidden("may not add mirror pod annotation"));
        }
    }
    annotations::check(&at, &pod.get("spec"), causes);
}

/// Deadlines can only be shortened. Returns false if the remaining checks are to be skipped.
fn deadline(spec: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) -> bool {
    let (now, was) = (
        spec.get("activeDeadlineSeconds"),
        before.get("activeDeadlineSeconds").int(),
    );
    let problem = match (now.int(), was) {
        (Some(n), _) if !(0..=i64::from(i32::MAX)).contains(&n) => {
            "must be between 0 and 2147483647, inclusive"
        }
        (Some(n), Some(was)) if was < n => "must be less than or equal to previous value",
        (None, Some(_)) => {
            causes.push(now.invalid_as(
                Value::Null,
                "must not update from a positive integer to nil value",
            ));
            return true;
        }
        _ => return true,
    };
    causes.push(now.invalid(problem));
    false
}

fn tolerations(now: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) {
    let without_time = |t: &Value| {
        let mut t = t.clone();
        t.as_object_mut().map(|map| map.remove("tolerationSeconds"));
        t
    };
    let kept = |old: &At<'_>| {
        now.items()
            .iter()
            .any(|new| without_time(new.value) == without_time(old.value))
    };
    if !before.items().iter().all(kept) {
        causes.push(
            now.forbidden("existing toleration can not be modified except its tolerationSeconds"),
        );
        return;
    }
    affinity::tolerations(now, causes);
}

fn gates(now: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) {
    let known: Vec<&str> = before
        .items()
        .iter()
        .map(|g| g.get("name").text())
        .collect();
    let gates = now.items();
    for (i, gate) in gates.iter().enumerate() {
        let name = gate.get("name");
        let is_last = gates[i + 1..]
            .iter()
            .all(|later| later.get("name").text() != name.text());
        if is_last && !known.contains(&name.text()) {
            let detail = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            );
            causes.push(name.forbidden(&detail));
        }
    }
}

/// The new spec with the old values of the mutable fields.
fn munged(spec: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) -> Value {
    let mut munged = spec.value.clone();
    let Some(map) = munged.as_object_mut() else {
        return munged;
    };
    let old = |field: &str| before.value.get(field).cloned();
    for list in ["containers", "initContainers"] {
        let images: Vec<Value> = before
            .get(list)
            .items()
            .iter()
            .map(|c| c.get("image").value.clone())
            .collect();
        for (container, image) in map
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .zip(images)
        {
            container["image"] = image;
        }
    }
    let mut keep = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    let grace = |at: &At<'_>| at.get("terminationGracePeriodSeconds").int();
    if grace(before).is_some_and(|g| g < 0) && grace(spec) == Some(1) {
        keep.push("terminationGracePeriodSeconds");
    }
    if !before.get("schedulingGates").is_empty() {
        node_selector(spec, before, causes);
        keep.push("nodeSelector");
        node_affinity(spec, before, causes);
        let mut affinity = spec
            .get("affinity")
            .value
            .as_object()
            .cloned()
            .unwrap_or_default();
        affinity.remove("nodeAffinity");
        affinity.extend(
            before
                .get("affinity.nodeAffinity")
                .value
                .as_object()
                .map(|a| ("nodeAffinity".to_owned(), a.clone().into())),
        );
        if affinity.is_empty() && before.get("affinity").is_null() {
            map.remove("affinity");
        } else if !affinity.is_empty() || !spec.get("affinity").is_null() {
            map.insert("affinity".into(), affinity.into());
        }
    }
    for field in keep {
        match old(field) {
            Some(value) => map.insert(field.into(), value),
            None => map.remove(field),
        };
    }
    munged
}

/// The node selection of a gated pod can only be narrowed.
fn node_selector(spec: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) {
    let now = spec.get("nodeSelector");
    if before
        .get("nodeSelector")
        .entries()
        .iter()
        .any(|(key, was)| now.value.get(*key) != Some(was.value))
    {
        let shown = if now.is_null() {
            Value::Null
        } else {
            now.value.clone()
        };
        causes.push(now.invalid_as(
            shown,
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        ));
    }
}

fn node_affinity(spec: &At<'_>, before: &At<'_>, causes: &mut Vec<Cause>) {
    const TERMS: &str =
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let (now, was) = (spec.get(TERMS), before.get(TERMS));
    if was.is_null()
        || spec.get("affinity.nodeAffinity").value == before.get("affinity.nodeAffinity").value
    {
        return;
    }
    if !was.is_empty() && was.len() != now.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        causes.push(now.invalid_struct("[]core/v1.NodeSelectorTerm", detail));
        return;
    }
    for (new, old) in now.items().iter().zip(was.items()) {
        let parts = ["matchExpressions", "matchFields"];
        let starts = |part: &&str| {
            let (new, old) = (new.get(part).items(), old.get(part).items());
            new.len() >= old.len() && new.iter().zip(&old).all(|(n, o)| n.value == o.value)
        };
        let was_empty = parts.iter().all(|p| old.get(p).is_empty())
            && parts.iter().any(|p| !new.get(p).is_empty());
        if was_empty || !parts.iter().all(starts) {
            causes.push(new.invalid_struct(
                "core/v1.NodeSelectorTerm",
                "only additions are allowed (no mutations or deletions)",
            ));
        }
    }
}
