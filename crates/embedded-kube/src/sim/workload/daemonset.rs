//! DaemonSet: one pod on each eligible node.

use super::super::{
    fields::{int_or_percent, put_counts, spec_i64},
    plan::{Note, Plan},
    pod,
};
use super::{
    pods,
    revision::{self, REVISION_LABEL},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::{Object, object::map_entry};

/// The taints that every daemon pod tolerates, with their effects.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The next step of a DaemonSet.
pub fn reconcile(
    set: &Object,
    members: &[Arc<Object>],
    revisions: &[Arc<Object>],
    nodes: &[&Object],
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    let short = |name: &str| name.rsplit('-').next().unwrap_or("").to_owned();
    let in_use = |name: &str| {
        members
            .iter()
            .any(|p| p.label(REVISION_LABEL) == Some(&short(name)))
    };
    let revisions = revision::sync(&mut plan, set, revisions, &in_use);
    let hash = revisions
        .update
        .label(REVISION_LABEL)
        .unwrap_or("")
        .to_owned();
    let template = set
        .pointer("/spec/template")
        .cloned()
        .unwrap_or(Value::Null);
    let daemon = daemon_pod(set, &template, &hash);
    let wanted: Vec<&Object> = nodes
        .iter()
        .copied()
        .filter(|n| pod::refusal(&daemon, n).is_none())
        .collect();
    let on_wanted = |p: &Object| wanted.iter().any(|n| n.name() == target(p));
    if set.deletion_timestamp().is_none() {
        for p in members.iter().filter(|p| p.deletion_timestamp().is_none()) {
            if !on_wanted(p) || p.str_at("/status/phase") == "Failed" {
                plan.delete(
                    p,
                    Some(Note::normal(
                        "SuccessfulDelete",
                        format!("Deleted pod: {}", p.name()),
                    )),
                );
            }
        }
        for node in &wanted {
            if !members.iter().any(|p| target(p) == node.name()) {
                plan.create(
                    on_node(&daemon, node.name()),
                    Some(Note::normal("SuccessfulCreate", "Created pod: {name}")),
                );
            }
        }
        if set.str_at("/spec/updateStrategy/type") != "OnDelete" {
            let surge = int_or_percent(
                set.pointer("/spec/updateStrategy/rollingUpdate/maxSurge"),
                number(wanted.len()),
                true,
                0,
            );
            if surge > 0 {
                surge_nodes(
                    &mut plan,
                    set,
                    &daemon,
                    members,
                    (&hash, &wanted, surge),
                    now,
                );
            } else {
                roll(&mut plan, set, members, &hash, wanted.len(), now);
            }
        }
    }
    status(&mut plan, set, members, &hash, &wanted, now);
    plan
}

fn daemon_pod(set: &Object, template: &Value, hash: &str) -> Object {
    let mut daemon = pods::from_template(set, template, &pods::name_prefix(set.name()));
    daemon.set_label(REVISION_LABEL, hash);
    daemon.set_label(
        "pod-template-generation",
        &set.generation().max(1).to_string(),
    );
    let body = map_entry(&mut daemon.0, "spec");
    let list = body.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.extend(
            TOLERATED
                .iter()
                .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})),
        );
    }
    daemon
}

/// The pod, bound to a node by affinity, as the real DaemonSet controller does.
fn on_node(daemon: &Object, node: &str) -> Object {
    let mut pod = daemon.clone();
    let affinity = map_entry(
        map_entry(map_entry(&mut pod.0, "spec"), "affinity"),
        "nodeAffinity",
    );
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    affinity.insert(
        "requiredDuringSchedulingIgnoredDuringExecution".into(),
        terms,
    );
    pod
}

/// The node that a daemon pod is on or intended for.
fn target(pod: &Object) -> &str {
    match pod.str_at("/spec/nodeName") {
        "" => pod.str_at(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0",
        ),
        name => name,
    }
}

fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Creates new pods beside outdated ones, on as many nodes at a time as may have two; an outdated
/// pod is deleted when the new one is available.
fn surge_nodes(
    plan: &mut Plan,
    set: &Object,
    daemon: &Object,
    members: &[Arc<Object>],
    (hash, nodes, limit): (&str, &[&Object], i64),
    now: Timestamp,
) {
    let min_ready = spec_i64(set, "minReadySeconds", 0);
    let available =
        |p: &Object| pods::available_at(p, min_ready).is_some_and(|at| min_ready == 0 || at <= now);
    let (mut surging, mut outdated) = (0, Vec::new());
    for node in nodes {
        let live = || {
            members
                .iter()
                .filter(|p| target(p) == node.name() && p.deletion_timestamp().is_none())
        };
        let Some(old) = live().find(|p| p.label(REVISION_LABEL) != Some(hash)) else {
            continue;
        };
        match live().find(|p| p.label(REVISION_LABEL) == Some(hash)) {
            Some(new) if available(new) || !available(old) => {
                plan.delete(
                    old,
                    Some(Note::normal(
                        "SuccessfulDelete",
                        format!("Deleted pod: {}", old.name()),
                    )),
                );
            }
            Some(_) => surging += 1,
            // Replacing an unavailable pod does not reduce availability.
            None if !available(old) => outdated.insert(0, (node.name(), 0)),
            None => outdated.push((node.name(), 1)),
        }
    }
    for (node, costs) in outdated {
        surging += costs;
        if surging <= limit {
            plan.create(
                on_node(daemon, node),
                Some(Note::normal("SuccessfulCreate", "Created pod: {name}")),
            );
        }
    }
}

/// Replaces outdated pods, as many at a time as may be unavailable.
fn roll(
    plan: &mut Plan,
    set: &Object,
    members: &[Arc<Object>],
    hash: &str,
    wanted: usize,
    now: Timestamp,
) {
    let total = i64::try_from(wanted).unwrap_or(i64::MAX);
    let limit = int_or_percent(
        set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable"),
        total,
        true,
        1,
    )
    .max(1);
    let min_ready = spec_i64(set, "minReadySeconds", 0);
    let available = |p: &Object| {
        p.deletion_timestamp().is_none()
            && pods::available_at(p, min_ready).is_some_and(|at| min_ready == 0 || at <= now)
    };
    let working = members.iter().filter(|p| available(p)).count();
    let mut room = limit - (total - i64::try_from(working).unwrap_or(0));
    let outdated = members
        .iter()
        .filter(|p| p.deletion_timestamp().is_none() && p.label(REVISION_LABEL) != Some(hash));
    for pod in outdated.filter(|p| p.str_at("/status/phase") != "Failed") {
        // Replacing an unavailable pod does not reduce availability.
        if available(pod) {
            if room <= 0 {
                continue;
            }
            room -= 1;
        }
        plan.delete(
            pod,
            Some(Note::normal(
                "SuccessfulDelete",
                format!("Deleted pod: {}", pod.name()),
            )),
        );
    }
}

fn status(
    plan: &mut Plan,
    set: &Object,
    members: &[Arc<Object>],
    hash: &str,
    wanted: &[&Object],
    now: Timestamp,
) {
    let min_ready = spec_i64(set, "minReadySeconds", 0);
    let (mut current, mut misplaced, mut ready, mut available, mut updated) = (0, 0, 0, 0, 0);
    for pod in members {
        if !wanted.iter().any(|n| n.name() == target(pod)) {
            misplaced += 1;
            continue;
        }
        current += 1;
        if pod.deletion_timestamp().is_some() {
            continue;
        }
        updated += i64::from(pod.label(REVISION_LABEL) == Some(hash));
        let Some(at) = pods::available_at(pod, min_ready) else {
            continue;
        };
        ready += 1;
        if min_ready == 0 || at <= now {
            available += 1;
        } else {
            plan.wake_at(at);
        }
    }
    let desired = number(wanted.len());
    let mut status = Map::new();
    for (field, count) in [
        ("currentNumberScheduled", current.min(desired)),
        ("desiredNumberScheduled", desired),
        ("numberMisscheduled", misplaced),
        ("numberReady", ready.min(desired)),
    ] {
        status.insert(field.into(), count.into());
    }
    put_counts(
        &mut status,
        &[
            ("observedGeneration", set.generation()),
            ("updatedNumberScheduled", updated.min(desired)),
            ("numberAvailable", available.min(desired)),
            ("numberUnavailable", (desired - available).max(0)),
        ],
    );
    plan.status(set, Value::Object(status), Vec::new());
}
