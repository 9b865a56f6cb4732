//! The status of a Deployment: counts, and whether it is available, progressing or stuck.

use super::super::super::{
    fields::{
        Cond, after, conditions, find_condition, parse_time, put_counts, remove_condition, rfc3339,
        set_condition, status_i64, text,
    },
    plan::Plan,
};
use super::{Sets, Spec, failure_of, next_set_name};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;

struct Counts {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
    unavailable: i64,
    terminating: i64,
}

impl Counts {
    fn of(sets: &Sets) -> Self {
        let sum = |field: &str| sets.all().map(|s| status_i64(s, field)).sum::<i64>();
        let available = sum("availableReplicas");
        Self {
            replicas: sum("replicas"),
            updated: sets.new.as_ref().map_or(0, |s| status_i64(s, "replicas")),
            ready: sum("readyReplicas"),
            available,
            unavailable: (sets.size() - available).max(0),
            terminating: sum("terminatingReplicas"),
        }
    }

    /// Whether the rollout is complete.
    fn complete(&self, spec: &Spec<'_>) -> bool {
        [self.updated, self.replicas, self.available]
            .iter()
            .all(|n| *n == spec.replicas)
    }

    /// Whether there is progress compared to the Deployment's current status.
    fn progressed(&self, old: &Object) -> bool {
        let old_pods = status_i64(old, "replicas") - status_i64(old, "updatedReplicas");
        self.updated > status_i64(old, "updatedReplicas")
            || self.replicas - self.updated < old_pods
            || self.ready > status_i64(old, "readyReplicas")
            || self.available > status_i64(old, "availableReplicas")
    }
}

/// Plans the status. `created`: the new ReplicaSet is created in this step.
pub fn status(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets, created: bool, now: Timestamp) {
    let counts = Counts::of(sets);
    let mut list = conditions(spec.object);
    let enough = counts.available >= spec.replicas - spec.max_unavailable;
    let (reason, message) = match enough {
        true => (
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    set(
        &mut list,
        Cond {
            kind: "Available",
            status: enough,
            reason,
            message,
        },
        now,
    );
    progressing(plan, &mut list, spec, sets, &counts, created, now);
    match failure_of(sets) {
        Some(failure) => {
            let (reason, message) = (text(&failure, "reason"), text(&failure, "message"));
            set(
                &mut list,
                Cond {
                    kind: "ReplicaFailure",
                    status: true,
                    reason,
                    message,
                },
                now,
            );
        }
        None => remove_condition(&mut list, "ReplicaFailure"),
    }
    let mut status = Map::new();
    put_counts(
        &mut status,
        &[
            ("observedGeneration", spec.object.generation()),
            ("replicas", counts.replicas),
            ("updatedReplicas", counts.updated),
            ("readyReplicas", counts.ready),
            ("availableReplicas", counts.available),
            ("unavailableReplicas", counts.unavailable),
            ("collisionCount", status_i64(spec.object, "collisionCount")),
        ],
    );
    status.insert("terminatingReplicas".into(), counts.terminating.into());
    status.insert("conditions".into(), Value::Array(list));
    plan.status(spec.object, Value::Object(status), Vec::new());
}

/// Sets a condition with Deployments' `lastUpdateTime`, only when its status or reason is new.
fn set(list: &mut Vec<Value>, cond: Cond<'_>, now: Timestamp) {
    let status = if cond.status { "True" } else { "False" };
    if find_condition(list, cond.kind)
        .is_some_and(|c| text(c, "status") == status && text(c, "reason") == cond.reason)
    {
        return;
    }
    touch(list, cond, now);
}

/// Sets a condition and its `lastUpdateTime` even if nothing else changes.
fn touch(list: &mut Vec<Value>, cond: Cond<'_>, now: Timestamp) {
    set_condition(list, cond, now);
    if let Some(Value::Object(map)) = list.iter_mut().find(|c| text(c, "type") == cond.kind) {
        map.insert("lastUpdateTime".into(), rfc3339(now).into());
    }
}

const PROGRESSING: &str = "Progressing";

fn progressing(
    plan: &mut Plan,
    list: &mut Vec<Value>,
    spec: &Spec<'_>,
    sets: &Sets,
    counts: &Counts,
    created: bool,
    now: Timestamp,
) {
    let Some(deadline) = spec.deadline else {
        return remove_condition(list, PROGRESSING);
    };
    let reason = find_condition(list, PROGRESSING)
        .map_or("", |c| text(c, "reason"))
        .to_owned();
    let unknown = |list: &mut Vec<Value>, reason: &str, message: &str| {
        touch(
            list,
            Cond {
                kind: PROGRESSING,
                status: false,
                reason,
                message,
            },
            now,
        );
        if let Some(Value::Object(map)) = list.iter_mut().find(|c| text(c, "type") == PROGRESSING) {
            map.insert("status".into(), "Unknown".into());
        }
    };
    if spec.paused {
        if !matches!(
            reason.as_str(),
            "DeploymentPaused" | "ProgressDeadlineExceeded"
        ) {
            unknown(list, "DeploymentPaused", "Deployment is paused");
        }
        return;
    }
    if reason == "DeploymentPaused" {
        unknown(list, "DeploymentResumed", "Deployment is resumed");
    }
    let name = sets
        .new
        .as_ref()
        .map_or_else(|| next_set_name(spec), |s| s.name().to_owned());
    let says = |reason, message: &str, list: &mut Vec<Value>| {
        touch(
            list,
            Cond {
                kind: PROGRESSING,
                status: true,
                reason,
                message,
            },
            now,
        )
    };
    if created {
        return says(
            "NewReplicaSetCreated",
            &format!("Created new replica set \"{name}\""),
            list,
        );
    }
    if sets.new.is_some() && reason.is_empty() {
        says(
            "FoundNewReplicaSet",
            &format!("Found new replica set \"{name}\""),
            list,
        );
    }
    if counts.replicas == counts.updated && reason == "NewReplicaSetAvailable" {
        return;
    }
    if counts.complete(spec) && sets.new.is_some() {
        let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
        return set(
            list,
            Cond {
                kind: PROGRESSING,
                status: true,
                reason: "NewReplicaSetAvailable",
                message: &message,
            },
            now,
        );
    }
    if counts.progressed(spec.object) {
        return says(
            "ReplicaSetUpdated",
            &format!("ReplicaSet \"{name}\" is progressing."),
            list,
        );
    }
    check_deadline(plan, list, &name, deadline, now);
}

/// Reports that a rollout is stuck if nothing has happened for longer than the deadline; before
/// that, plans a reconcile for when it expires.
fn check_deadline(
    plan: &mut Plan,
    list: &mut Vec<Value>,
    name: &str,
    deadline: i64,
    now: Timestamp,
) {
    let Some(condition) = find_condition(list, PROGRESSING) else {
        return;
    };
    let reason = text(condition, "reason");
    if matches!(
        reason,
        "NewReplicaSetAvailable" | "ProgressDeadlineExceeded"
    ) {
        return;
    }
    let Some(due) = parse_time(text(condition, "lastUpdateTime")).map(|t| after(t, deadline))
    else {
        return;
    };
    if due < now {
        let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
        set(
            list,
            Cond {
                kind: PROGRESSING,
                status: false,
                reason: "ProgressDeadlineExceeded",
                message: &message,
            },
            now,
        );
    } else {
        plan.wake_at(after(due, 1));
    }
}
