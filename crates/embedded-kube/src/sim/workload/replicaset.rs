//! ReplicaSet and ReplicationController: keep a number of pods.

use super::super::{
    engine::Failure,
    fields::{Cond, conditions, put_counts, remove_condition, set_condition, spec_i64},
    plan::{Note, Plan},
};
use super::pods;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// At most this many pods are created or deleted in one step.
const BURST: usize = 500;

/// The next step of a ReplicaSet. `members` are its pods, `failure` is its last rejected pod.
pub fn reconcile(
    set: &Object,
    members: &[Arc<Object>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    let mut active: Vec<Arc<Object>> = members
        .iter()
        .filter(|p| pods::is_active(p))
        .cloned()
        .collect();
    let wanted = usize::try_from(spec_i64(set, "replicas", 1)).unwrap_or(0);
    let resting = failure.is_some_and(|f| f.until > now);
    if set.deletion_timestamp().is_none() {
        if active.len() < wanted && !resting {
            let template = set
                .pointer("/spec/template")
                .cloned()
                .unwrap_or(Value::Null);
            let prefix = pods::name_prefix(set.name());
            for _ in 0..(wanted - active.len()).min(BURST) {
                let pod = pods::from_template(set, &template, &prefix);
                plan.create(
                    pod,
                    Some(Note::normal("SuccessfulCreate", "Created pod: {name}")),
                );
            }
        } else if active.len() > wanted {
            let surplus = (active.len() - wanted).min(BURST);
            pods::sort_for_deletion(&mut active);
            for pod in &active[..surplus] {
                plan.delete(
                    pod,
                    Some(Note::normal(
                        "SuccessfulDelete",
                        format!("Deleted pod: {}", pod.name()),
                    )),
                );
            }
        }
    }
    // The planned writes trigger another reconcile; until then the counts would be outdated
    // immediately.
    if plan.writes.is_empty() || failure.is_some() {
        status(&mut plan, set, members, failure, now);
    }
    plan
}

fn status(
    plan: &mut Plan,
    set: &Object,
    members: &[Arc<Object>],
    failure: Option<&Failure>,
    now: Timestamp,
) {
    let active: Vec<&Arc<Object>> = members.iter().filter(|p| pods::is_active(p)).collect();
    let counts = pods::count(
        active.iter().copied(),
        spec_i64(set, "minReadySeconds", 0),
        now,
    );
    let labels = set
        .pointer("/spec/template/metadata/labels")
        .and_then(Value::as_object);
    let labeled = active
        .iter()
        .filter(|p| {
            labels
                .into_iter()
                .flatten()
                .all(|(k, v)| p.label(k) == v.as_str())
        })
        .count();
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let mut status = Map::new();
    status.insert("replicas".into(), active.len().into());
    put_counts(
        &mut status,
        &[
            ("fullyLabeledReplicas", number(labeled)),
            ("readyReplicas", counts.ready),
            ("availableReplicas", counts.available),
            ("observedGeneration", set.generation()),
        ],
    );
    // A ReplicationController does not count terminating pods.
    let terminating = members
        .iter()
        .filter(|p| p.deletion_timestamp().is_some() && !pods::is_ended(p))
        .count();
    if set.kind() == "ReplicaSet" {
        status.insert("terminatingReplicas".into(), terminating.into());
    }
    let mut list = conditions(set);
    match failure {
        Some(f) => {
            let failed = Cond {
                kind: "ReplicaFailure",
                status: true,
                reason: "FailedCreate",
                message: &f.message,
            };
            set_condition(&mut list, failed, now);
        }
        None => remove_condition(&mut list, "ReplicaFailure"),
    }
    if !list.is_empty() {
        status.insert("conditions".into(), Value::Array(list));
    }
    plan.status(set, Value::Object(status), Vec::new());
    for at in [counts.next, failure.map(|f| f.until)]
        .into_iter()
        .flatten()
        .filter(|at| *at > now)
    {
        plan.wake_at(at);
    }
}
