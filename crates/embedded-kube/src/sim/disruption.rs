//! The status of a PodDisruptionBudget: how many of the pods it selects may be evicted now.

use super::{
    fields::{Cond, after, conditions, int_or_percent, parse_time, set_condition, text},
    plan::{Note, Plan},
    workload::pods,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// The next step of a budget. `selected` are its pods, `wanted` is the number of pods that their
/// controllers want in total, `loose` says whether some have no controller.
pub fn reconcile(
    budget: &Object,
    selected: &[Arc<Object>],
    (wanted, loose): (i64, bool),
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    if selected.is_empty() {
        plan.remark(Note::normal("NoPods", "No matching pods found"));
    }
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let present = number(selected.len());
    let evicted = evicted(&mut plan, budget, selected, now);
    let counts = |p: &&Arc<Object>| {
        p.deletion_timestamp().is_none() && pods::is_ready(p) && !evicted.contains_key(p.name())
    };
    let healthy = number(selected.iter().filter(counts).count());
    let (minimum, maximum) = (
        budget.pointer("/spec/minAvailable"),
        budget.pointer("/spec/maxUnavailable"),
    );
    let (expected, desired) = match (minimum, maximum) {
        // A plain number does not require a controller with an expected number of pods.
        (Some(Value::Number(_)), _) => (present, int_or_percent(minimum, present, true, 0)),
        (None, Some(_)) => (
            wanted,
            (wanted - int_or_percent(maximum, wanted, true, 0)).max(0),
        ),
        _ => (wanted, int_or_percent(minimum, wanted, true, 1)),
    };
    if loose && !matches!(minimum, Some(Value::Number(_))) {
        plan.remark(Note::warning("UnmanagedPods", unmanaged(budget)));
    }
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let mut list = conditions(budget);
    let reason = if allowed > 0 {
        "SufficientPods"
    } else {
        "InsufficientPods"
    };
    set_condition(
        &mut list,
        Cond {
            kind: "DisruptionAllowed",
            status: allowed > 0,
            reason,
            message: "",
        },
        now,
    );
    if let Some(Value::Object(map)) = list.iter_mut().find(|c| c["type"] == "DisruptionAllowed") {
        map.insert("observedGeneration".into(), budget.generation().into());
        map.insert("message".into(), "".into());
    }
    let mut status = json!({
        "conditions": list, "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": budget.generation(),
    });
    if !evicted.is_empty() {
        status["disruptedPods"] = Value::Object(evicted);
    }
    plan.status(budget, status, Vec::new());
    plan
}

/// The pods whose eviction was allowed and that are not terminating yet; after two minutes, they
/// are assumed not to.
fn evicted(
    plan: &mut Plan,
    budget: &Object,
    selected: &[Arc<Object>],
    now: Timestamp,
) -> Map<String, Value> {
    let noted = budget
        .pointer("/status/disruptedPods")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let stays = |name: &str| {
        selected
            .iter()
            .any(|p| p.name() == name && p.deletion_timestamp().is_none())
    };
    let mut left = Map::new();
    for (name, time) in noted {
        let Some(until) = time.as_str().and_then(parse_time).map(|t| after(t, 120)) else {
            continue;
        };
        if stays(&name) && until > now {
            plan.wake_at(until);
            left.insert(name, time);
        }
    }
    left
}

fn unmanaged(budget: &Object) -> String {
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB cannot be \
         calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of \
         the PDB to an integer value.",
        spelled(budget.pointer("/spec/selector").unwrap_or(&Value::Null))
    )
}

/// A label selector as Go prints it.
fn spelled(selector: &Value) -> String {
    let labels = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let labels: String = labels
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or("")))
        .collect();
    let expression = |e: &Value| {
        let values = e
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>();
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(e, "key"),
            text(e, "operator"),
            values.join(" ")
        )
    };
    let expressions: String = selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(expression)
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
