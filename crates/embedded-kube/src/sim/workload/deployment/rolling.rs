//! How many pods each ReplicaSet may have during a rollout and a scale.

use super::super::super::{fields::status_i64, plan::Plan};
use super::{MAX, Sets, Spec, available, scale_set, size};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// The size of the new ReplicaSet, currently `current` pods, that the surge allows.
pub fn new_size(spec: &Spec<'_>, sets: &Sets, current: i64) -> i64 {
    let room = spec.max_total() - sets.size();
    if room <= 0 {
        current
    } else {
        current + room.min(spec.replicas - current)
    }
}

/// One step of a rolling update: first the new ReplicaSet grows; if it cannot, old ones shrink.
pub fn step(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets) {
    let Some(new) = &sets.new else { return };
    let current = size(new);
    let wanted = if current > spec.replicas {
        spec.replicas
    } else {
        new_size(spec, sets, current)
    };
    if wanted != current {
        scale_set(plan, spec, new, wanted);
        return;
    }
    shrink_old(plan, spec, sets, new);
}

fn shrink_old(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets, new: &Object) {
    let old: Vec<&Arc<Object>> = sets.old.iter().filter(|s| size(s) > 0).collect();
    if old.is_empty() {
        return;
    }
    let min_available = spec.replicas - spec.max_unavailable;
    let new_unavailable = size(new) - available(new);
    let budget = sets.size() - min_available - new_unavailable;
    if budget <= 0 {
        return;
    }
    // Unavailable pods first: removing them does not reduce availability.
    let mut sizes: Vec<i64> = old.iter().map(|s| size(s)).collect();
    let mut cleaned = 0;
    for (set, planned) in old.iter().zip(&mut sizes) {
        let unhealthy = (*planned - available(set)).max(0).min(budget - cleaned);
        *planned -= unhealthy;
        cleaned += unhealthy;
    }
    // Then as many pods as can be spared.
    let mut spare = sets.all().map(|s| available(s)).sum::<i64>() - min_available;
    for planned in &mut sizes {
        let down = (*planned).min(spare.max(0));
        *planned -= down;
        spare -= down;
    }
    for (set, planned) in old.iter().zip(sizes) {
        if planned != size(set) {
            scale_set(plan, spec, set, planned);
        }
    }
}

/// Distributes a changed size over the ReplicaSets: all of it to the only active one, or
/// proportionally in the middle of a rollout.
pub fn scale_proportionally(plan: &mut Plan, spec: &Spec<'_>, sets: &Sets) {
    let active: Vec<&Arc<Object>> = sets.all().filter(|s| size(s) > 0).collect();
    let only = match active.as_slice() {
        [] => sets.new.as_ref().or(sets.old.last()),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(set) = only {
        scale_set(plan, spec, set, spec.replicas);
        return;
    }
    if let Some(new) = &sets.new
        && size(new) == spec.replicas
        && available(new) == spec.replicas
    {
        for set in sets.old.iter().filter(|s| size(s) > 0) {
            scale_set(plan, spec, set, 0);
        }
        return;
    }
    let total: i64 = active.iter().map(|s| size(s)).sum();
    let allowed = if spec.replicas > 0 {
        spec.max_total()
    } else {
        0
    };
    let mut to_add = allowed - total;
    // Larger ones take their share first; on a tie, the newer when growing, the older when
    // shrinking.
    let mut order = active;
    order.sort_by_key(|s| size(s));
    if to_add > 0 {
        order.reverse();
    } else {
        order.sort_by_key(|s| std::cmp::Reverse(size(s)));
    }
    let mut sizes: Vec<i64> = Vec::with_capacity(order.len());
    for set in &order {
        let part = fraction(spec, set);
        let part = if to_add > 0 {
            part.clamp(0, to_add)
        } else {
            part.clamp(to_add, 0)
        };
        to_add -= part;
        sizes.push(size(set) + part);
    }
    if let Some(first) = sizes.first_mut() {
        // The remainder from rounding.
        *first = (*first + to_add).max(0);
    }
    for (set, planned) in order.into_iter().zip(sizes) {
        scale_set(plan, spec, set, planned);
    }
}

/// The change of one ReplicaSet's size that keeps its share of the total.
fn fraction(spec: &Spec<'_>, set: &Object) -> i64 {
    if spec.replicas == 0 {
        return -size(set);
    }
    let noted = set
        .annotation(MAX)
        .and_then(|m| m.parse::<i64>().ok())
        .filter(|m| *m > 0);
    let before = noted.unwrap_or_else(|| status_i64(spec.object, "replicas"));
    if before == 0 {
        return 0;
    }
    let product = size(set) * spec.max_total();
    (2 * product + before).div_euclid(2 * before) - size(set)
}

#[cfg(test)]
mod tests {
    use super::super::super::super::plan::Change;
    use super::super::reconcile;
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use tiphys_apimachinery::Object;

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
    }

    /// A ReplicaSet of some size with some available pods, created for a Deployment with `desired`
    /// and `max`.
    fn set(
        name: &str,
        image: &str,
        (size, available): (i64, i64),
        (desired, max): (i64, i64),
    ) -> Arc<Object> {
        let value = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "uid": name, "creationTimestamp": name, "annotations": {
                "deployment.kubernetes.io/revision": if name == "old" { "1" } else { "2" },
                "deployment.kubernetes.io/desired-replicas": desired.to_string(), "deployment.kubernetes.io/max-replicas": max.to_string(),
            }},
            "spec": {"replicas": size, "template": template(image)}, "status": {"replicas": size, "availableReplicas": available},
        });
        Arc::new(Object::from_value(value).expect("a map"))
    }

    fn deployment(replicas: i64, surge: Value, unavailable: Value) -> Object {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let value = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "w", "annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"replicas": replicas, "template": template("new"), "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}},
        });
        Object::from_value(value).expect("a map")
    }

    /// The sizes that a step plans, by name; unchanged sets are left out.
    fn sizes(deployment: &Object, sets: &[Arc<Object>]) -> Vec<(String, i64)> {
        let plan = reconcile(deployment, sets, &|_| Vec::new(), Timestamp::UNIX_EPOCH);
        let size = |w: &super::super::super::super::plan::Write| match &w.change {
            Change::Update(o) if o.kind() == "ReplicaSet" => {
                Some((o.name().to_owned(), o.i64_at("/spec/replicas")?))
            }
            _ => None,
        };
        plan.writes.iter().filter_map(size).collect()
    }

    #[test]
    fn a_step_keeps_within_surge_and_unavailability() {
        // (replicas, surge, unavailable), (old size, old available), (new size, new available) ->
        // planned sizes
        let table = [
            (
                (10, json!("25%"), json!("25%")),
                (10, 10),
                (0, 0),
                vec![("new", 3)],
            ),
            (
                (10, json!("25%"), json!("25%")),
                (10, 10),
                (3, 0),
                vec![("old", 8)],
            ),
            (
                (10, json!("25%"), json!("25%")),
                (8, 8),
                (3, 0),
                vec![("new", 5)],
            ),
            ((10, json!("25%"), json!("25%")), (8, 8), (5, 0), vec![]),
            (
                (10, json!("25%"), json!("25%")),
                (8, 8),
                (5, 5),
                vec![("old", 3)],
            ),
            ((4, json!(0), json!(1)), (4, 4), (0, 0), vec![("old", 3)]),
            ((4, json!(0), json!(1)), (3, 3), (0, 0), vec![("new", 1)]),
            ((4, json!(1), json!(0)), (4, 4), (1, 0), vec![]),
            ((4, json!(1), json!(0)), (4, 4), (1, 1), vec![("old", 3)]),
            // Unavailable old pods are removed first, even while there are no new ones yet.
            ((4, json!(1), json!(0)), (4, 2), (1, 1), vec![("old", 3)]),
            // With neither surge nor unavailability, no progress would be possible: one may be
            // unavailable.
            ((4, json!(0), json!("0%")), (4, 4), (0, 0), vec![("old", 3)]),
        ];
        for ((replicas, surge, unavailable), old, new, want) in table {
            let deployment = deployment(replicas, surge.clone(), unavailable.clone());
            let max = replicas + super::super::Spec::read(&deployment).max_surge;
            let sets = [
                set("old", "old", old, (replicas, max)),
                set("new", "new", new, (replicas, max)),
            ];
            let want: Vec<(String, i64)> =
                want.into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
            assert_eq!(
                sizes(&deployment, &sets),
                want,
                "{replicas} +{surge} -{unavailable} old {old:?} new {new:?}"
            );
        }
    }

    #[test]
    fn a_changed_size_in_mid_rollout_is_shared_in_proportion() {
        for (replicas, old, new, want) in [
            // 10 with surge 3, in the middle of a rollout: 15 with surge 4 is 19 to distribute over
            // 8 and 5.
            (15, 8, 5, vec![("old", 12), ("new", 7)]),
            (5, 8, 5, vec![("old", 4), ("new", 3)]),
            (0, 8, 5, vec![("old", 0), ("new", 0)]),
        ] {
            let deployment = deployment(replicas, json!("25%"), json!("25%"));
            let sets = [
                set("old", "old", (old, old), (10, 13)),
                set("new", "new", (new, 0), (10, 13)),
            ];
            let mut got = sizes(&deployment, &sets);
            got.sort_by(|a, b| b.cmp(a));
            let want: Vec<(String, i64)> =
                want.into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
            assert_eq!(got, want, "{replicas}");
        }
    }
}
