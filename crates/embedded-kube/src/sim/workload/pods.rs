//! Creates pods from templates and evaluates the state of existing pods.

use super::super::{
    fields::{
        after, condition, condition_is_true, owned_object, owner_reference, parse_time,
        set_metadata_map, text,
    },
    kind::Kind,
    pod::qos_class,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// A pod of `template` with the given name; the store completes a name that ends in `-`.
pub fn from_template(owner: &Object, template: &Value, name: &str) -> Object {
    let mut pod = owned_object(Kind::Pod, owner, name);
    if name.ends_with('-') {
        pod.metadata_mut().remove("name");
        pod.metadata_mut()
            .insert("generateName".into(), name.into());
    }
    let metadata = template.get("metadata").unwrap_or(&Value::Null);
    for field in ["labels", "annotations"] {
        set_metadata_map(&mut pod, field, metadata.get(field));
    }
    if let Some(list) = metadata.get("finalizers").and_then(Value::as_array) {
        pod.set_finalizers(
            list.iter()
                .filter_map(|f| f.as_str().map(str::to_owned))
                .collect(),
        );
    }
    pod.metadata_mut()
        .insert("ownerReferences".into(), json!([owner_reference(owner)]));
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    pod.0.insert(
        "status".into(),
        json!({"phase": "Pending", "qosClass": qos_class(&spec)}),
    );
    pod.0.insert("spec".into(), spec);
    pod
}

/// The prefix of generated pod names: the owner's name and a dash, truncated so that the name stays
/// valid.
pub fn name_prefix(owner: &str) -> String {
    format!("{}-", &owner[..owner.len().min(57)])
}

/// Neither ended nor being deleted.
pub fn is_active(pod: &Object) -> bool {
    pod.deletion_timestamp().is_none() && !is_ended(pod)
}

pub fn is_ended(pod: &Object) -> bool {
    matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed")
}

pub fn is_ready(pod: &Object) -> bool {
    pod.str_at("/status/phase") == "Running" && condition_is_true(pod, "Ready")
}

/// When a pod has been ready for `min_ready` seconds; `None` when it is not ready.
pub fn available_at(pod: &Object, min_ready: i64) -> Option<Timestamp> {
    if !is_ready(pod) {
        return None;
    }
    let since = condition(pod, "Ready").and_then(|c| parse_time(text(c, "lastTransitionTime")))?;
    Some(after(since, min_ready))
}

/// Numbers of pods by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub ready: i64,
    pub available: i64,
    /// When the next ready pod becomes available.
    pub next: Option<Timestamp>,
}

/// Counts ready and available pods.
pub fn count<'a>(
    pods: impl Iterator<Item = &'a Arc<Object>>,
    min_ready: i64,
    now: Timestamp,
) -> Counts {
    let mut counts = Counts::default();
    for pod in pods {
        let Some(at) = available_at(pod, min_ready) else {
            continue;
        };
        counts.ready += 1;
        if min_ready == 0 || at <= now {
            counts.available += 1;
        } else {
            counts.next = Some(counts.next.map_or(at, |n| n.min(at)));
        }
    }
    counts
}

/// Sorts pods for deletion, least important first: unassigned, pending, not ready, cheap to delete,
/// youngest.
pub fn sort_for_deletion(pods: &mut [Arc<Object>]) {
    let phase_rank = |p: &Object| match p.str_at("/status/phase") {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let cost = |p: &Object| {
        p.annotation("controller.kubernetes.io/pod-deletion-cost")
            .and_then(|c| c.parse::<i64>().ok())
            .unwrap_or(0)
    };
    pods.sort_by(|a, b| {
        let rank = |p: &Object| {
            (
                !p.str_at("/spec/nodeName").is_empty(),
                phase_rank(p),
                is_ready(p),
                cost(p),
            )
        };
        rank(a)
            .cmp(&rank(b))
            .then_with(|| b.creation_timestamp().cmp(a.creation_timestamp()))
            .then_with(|| b.name().cmp(a.name()))
    });
}
