//! Revision numbers of a Deployment and its ReplicaSets, and how many old ones are kept.

use super::super::super::{
    fields::status_i64,
    plan::{Change, Plan},
};
use super::{Sets, Spec, size};
use std::sync::Arc;
use tiphys_apimachinery::Object;

pub const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn revision(object: &Object) -> i64 {
    object
        .annotation(REVISION)
        .and_then(|r| r.parse().ok())
        .unwrap_or(0)
}

/// The highest revision of some ReplicaSets, 0 for none.
pub fn highest(sets: &[Arc<Object>]) -> i64 {
    sets.iter().map(|s| revision(s)).max().unwrap_or(0)
}

/// The annotations of a Deployment that are copied to its ReplicaSets.
pub fn copied_annotations(deployment: &Object) -> impl Iterator<Item = (String, String)> {
    let own = [
        LAST_APPLIED,
        REVISION,
        HISTORY,
        super::DESIRED,
        super::MAX,
        "deprecated.deployment.rollback.to",
    ];
    deployment
        .annotations()
        .into_iter()
        .filter(move |(key, _)| !own.contains(&key.as_str()))
}

/// Gives the new ReplicaSet a revision above the old ones and records it on the Deployment. Returns
/// whether a ReplicaSet changes.
pub fn sync(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets) -> bool {
    let number = match &sets.new {
        Some(new) => revision(new).max(highest(&sets.old) + 1),
        None if spec.paused || (spec.recreate && sets.old.iter().any(|s| size(s) > 0)) => {
            return false;
        }
        None => highest(&sets.old) + 1,
    };
    let mut changed = false;
    if let Some(new) = &sets.new {
        let mut set = Object::clone(new);
        if revision(new) != number {
            if revision(new) > 0 {
                let past = new
                    .annotation(HISTORY)
                    .filter(|h| !h.is_empty())
                    .map(|h| format!("{h},"))
                    .unwrap_or_default();
                set.set_annotation(HISTORY, &format!("{past}{}", revision(new)));
            }
            set.set_annotation(REVISION, &number.to_string());
        }
        for (key, value) in copied_annotations(spec.object) {
            set.set_annotation(&key, &value);
        }
        if set != **new {
            plan.update(set, None);
            changed = true;
        }
    }
    if spec.object.annotation(REVISION) != Some(&number.to_string()) {
        let mut deployment = spec.object.clone();
        deployment.set_annotation(REVISION, &number.to_string());
        // Written with the status, since other changes of annotations increase the generation.
        plan.push(Change::Status(deployment));
    }
    changed
}

/// Deletes the oldest empty ReplicaSets beyond the limit, once the rollout is complete.
pub fn cleanup(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets) {
    let Some(new) = &sets.new else { return };
    if status_i64(new, "availableReplicas") != spec.replicas || sets.old.iter().any(|s| size(s) > 0)
    {
        return;
    }
    let mut empty: Vec<&Arc<Object>> = sets
        .old
        .iter()
        .filter(|s| s.deletion_timestamp().is_none() && status_i64(s, "replicas") == 0)
        .collect();
    if empty.len() <= spec.history {
        return;
    }
    empty.sort_by_key(|s| revision(s));
    let surplus = empty.len() - spec.history;
    for set in &empty[..surplus] {
        plan.delete(set, None);
    }
}
