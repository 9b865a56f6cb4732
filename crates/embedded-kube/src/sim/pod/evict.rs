//! Evicts pods from nodes with NoExecute taints and from nodes that no longer exist.

use super::super::{
    fields::{Cond, after, condition, conditions, parse_time, set_condition, text},
    plan::{Note, Plan},
    store::Propagation,
};
use super::schedule::tolerates;
use jiff::Timestamp;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// When a pod has to leave its node because of taints, if ever; `since` is when a taint without a
/// time was first seen.
pub fn due(pod: &Object, node: &Object, since: Timestamp) -> Option<Timestamp> {
    let tolerations: Vec<&Value> = pod
        .pointer("/spec/tolerations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let taints = node
        .pointer("/spec/taints")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let of_taint = |taint: &Value| {
        let added = parse_time(text(taint, "timeAdded")).unwrap_or(since);
        let fits =
            |t: &&&Value| tolerates(t, text(taint, "key"), text(taint, "value"), "NoExecute");
        let seconds: Vec<Option<i64>> = tolerations
            .iter()
            .filter(fits)
            .map(|t| t.get("tolerationSeconds").and_then(Value::as_i64))
            .collect();
        match seconds.iter().flatten().min() {
            None if seconds.is_empty() => Some(added),
            None => None,
            Some(seconds) => Some(after(added, (*seconds).max(0))),
        }
    };
    taints
        .filter(|t| text(t, "effect") == "NoExecute")
        .filter_map(of_taint)
        .min()
}

/// Deletes the pod because of a taint.
pub fn evict(plan: &mut Plan, pod: &Object, now: Timestamp) {
    target(
        plan,
        pod,
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
        now,
    );
    let message = format!(
        "Marking for deletion Pod {}/{}",
        pod.namespace(),
        pod.name()
    );
    plan.delete(pod, Some(Note::normal("TaintManagerEviction", message)));
}

/// Removes the pod because its node is gone.
pub fn collect(plan: &mut Plan, pod: &Object, now: Timestamp) {
    if !matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed") {
        target(
            plan,
            pod,
            "DeletionByPodGC",
            "PodGC: node no longer exists",
            now,
        );
        return plan.wake_at(after(now, 1));
    }
    // Gives its controller time to notice that it failed.
    let told =
        condition(pod, "DisruptionTarget").and_then(|c| parse_time(text(c, "lastTransitionTime")));
    if let Some(due) = told.map(|at| after(at, 1)).filter(|due| *due > now) {
        return plan.wake_at(due);
    }
    plan.delete_with(pod, Some(0), Propagation::Background, None);
}

fn target(plan: &mut Plan, pod: &Object, reason: &str, message: &str, now: Timestamp) {
    let mut list = conditions(pod);
    set_condition(
        &mut list,
        Cond {
            kind: "DisruptionTarget",
            status: true,
            reason,
            message,
        },
        now,
    );
    let mut status = pod
        .pointer("/status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if reason == "DeletionByPodGC" && !matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed")
    {
        status.insert("phase".into(), "Failed".into());
    }
    status.insert("conditions".into(), Value::Array(list));
    plan.status(pod, Value::Object(status), Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_leaves_when_no_toleration_holds_it() {
        let object = |value: Value| Object::from_value(value).expect("a map");
        let at = |s| Timestamp::from_second(s).expect("in range");
        let node = object(json!({"spec": {"taints": [
            {"key": "quiet", "effect": "NoSchedule"}, {"key": "away", "effect": "NoExecute", "timeAdded": "1970-01-01T00:01:00Z"},
        ]}}));
        for (tolerations, want) in [
            (json!([]), Some(at(60))),
            (
                json!([{"key": "away", "operator": "Exists", "effect": "NoExecute"}]),
                None,
            ),
            (
                json!([{"key": "away", "operator": "Exists", "tolerationSeconds": 30}]),
                Some(at(90)),
            ),
            (
                json!([{"key": "other", "operator": "Exists"}]),
                Some(at(60)),
            ),
        ] {
            assert_eq!(
                due(
                    &object(json!({"spec": {"tolerations": tolerations}})),
                    &node,
                    at(5)
                ),
                want,
                "{tolerations}"
            );
        }
        assert_eq!(
            due(
                &object(json!({})),
                &object(json!({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}})),
                at(5)
            ),
            Some(at(5))
        );
    }
}
