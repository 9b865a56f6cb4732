//! The status of a PodDisruptionBudget: how many of the pods it selects may be evicted now.

use super::{
    fields::{Cond, conditions, int_or_percent, set_condition},
    plan::Plan,
    workload::pods,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// The next step of a budget. `selected` are its pods, `wanted` how many pods their controllers want in all.
pub fn reconcile(budget: &Object, selected: &[Arc<Object>], wanted: i64, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let present = number(selected.len());
    let healthy = number(selected.iter().filter(|p| p.deletion_timestamp().is_none() && pods::is_ready(p)).count());
    let (minimum, maximum) = (budget.pointer("/spec/minAvailable"), budget.pointer("/spec/maxUnavailable"));
    let (expected, desired) = match (minimum, maximum) {
        // A plain number needs no controller to say how many pods there should be.
        (Some(Value::Number(_)), _) => (present, int_or_percent(minimum, present, true, 0)),
        (None, Some(_)) => (wanted, (wanted - int_or_percent(maximum, wanted, true, 0)).max(0)),
        _ => (wanted, int_or_percent(minimum, wanted, true, 1)),
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let mut list = conditions(budget);
    let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
    set_condition(&mut list, Cond { kind: "DisruptionAllowed", status: allowed > 0, reason, message: "" }, now);
    if let Some(Value::Object(map)) = list.iter_mut().find(|c| c["type"] == "DisruptionAllowed") {
        map.insert("observedGeneration".into(), budget.generation().into());
        map.insert("message".into(), "".into());
    }
    let status = json!({
        "conditions": list, "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": budget.generation(),
    });
    plan.status(budget, status, Vec::new());
    plan
}
