//! Chooses the node of a pod.
//!
//! Node selectors, required node affinity, cordons, NoSchedule taints, scheduling gates and missing
//! claims are respected; resource requests are not, since simulated nodes never run out of
//! resources.

use super::{super::fields::text, Storage};
use serde_json::Value;
use tiphys_apimachinery::Object;

/// A node and its number of pods.
#[derive(Clone, Copy)]
pub struct NodeLoad<'a> {
    pub node: &'a Object,
    pub pods: usize,
}

impl NodeLoad<'_> {
    /// The node's internal address, empty if it has none.
    pub fn address(&self) -> &str {
        let list = self
            .node
            .pointer("/status/addresses")
            .and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .find(|a| text(a, "type") == "InternalIP")
            .map_or("", |a| text(a, "address"))
    }
}

/// The scheduler's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    Node(String),
    /// Soon; no event until then.
    Wait,
    Refused {
        reason: &'static str,
        message: String,
    },
}

/// Chooses the least loaded node that can run the pod.
pub fn schedule(pod: &Object, nodes: &[NodeLoad<'_>], storage: &Storage) -> Placement {
    if pod
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|g| !g.is_empty())
    {
        return Placement::Refused {
            reason: "SchedulingGated",
            message: "Scheduling is blocked due to non-empty scheduling gates".into(),
        };
    }
    let total = nodes.len();
    if let Storage::Lacking(why) = storage {
        let message = format!("0/{total} nodes are available: {why}. not found");
        return Placement::Refused {
            reason: "Unschedulable",
            message,
        };
    }
    if nodes.is_empty() {
        return Placement::Refused {
            reason: "Unschedulable",
            message: "no nodes available to schedule pods".into(),
        };
    }
    let mut refusals: Vec<(String, usize)> = Vec::new();
    let mut best: Option<&NodeLoad<'_>> = None;
    for node in nodes {
        match refusal(pod, node.node) {
            None if best.is_none_or(|b| node.pods < b.pods) => best = Some(node),
            None => {}
            Some(why) => match refusals.iter_mut().find(|(w, _)| *w == why) {
                Some((_, count)) => *count += 1,
                None => refusals.push((why, 1)),
            },
        }
    }
    if let Some(node) = best {
        if *storage == Storage::Coming {
            return Placement::Wait;
        }
        return Placement::Node(node.node.name().to_owned());
    }
    let mut reasons: Vec<String> = refusals
        .iter()
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    reasons.sort();
    let message = format!(
        "0/{total} nodes are available: {}. no new claims to deallocate, preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling.",
        reasons.join(", ")
    );
    Placement::Refused {
        reason: "Unschedulable",
        message,
    }
}

/// Why a node cannot run a pod.
pub fn refusal(pod: &Object, node: &Object) -> Option<String> {
    let tolerations: Vec<&Value> = pod
        .pointer("/spec/tolerations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true)
        && !tolerations
            .iter()
            .any(|t| tolerates(t, "node.kubernetes.io/unschedulable", "", "NoSchedule"))
    {
        return Some("node(s) were unschedulable".into());
    }
    for taint in node
        .pointer("/spec/taints")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let (key, value, effect) = (
            text(taint, "key"),
            text(taint, "value"),
            text(taint, "effect"),
        );
        if effect != "PreferNoSchedule"
            && !tolerations.iter().any(|t| tolerates(t, key, value, effect))
        {
            return Some("node(s) had untolerated taint(s)".into());
        }
    }
    let selector = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let selected = selector
        .into_iter()
        .flatten()
        .all(|(key, value)| node.label(key) == value.as_str());
    if selected && affinity_allows(pod, node) {
        None
    } else {
        Some("node(s) didn't match Pod's node affinity/selector".into())
    }
}

pub fn tolerates(toleration: &Value, key: &str, value: &str, effect: &str) -> bool {
    let same_effect = matches!(text(toleration, "effect"), "" | "NoSchedule" | "NoExecute")
        && (text(toleration, "effect").is_empty() || text(toleration, "effect") == effect);
    let same_key = match text(toleration, "operator") {
        "Exists" => text(toleration, "key").is_empty() || text(toleration, "key") == key,
        _ => text(toleration, "key") == key && text(toleration, "value") == value,
    };
    same_effect && same_key
}

fn affinity_allows(pod: &Object, node: &Object) -> bool {
    let required = pod.pointer("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let Some(terms) = required.and_then(Value::as_array) else {
        return true;
    };
    let all = |term: &Value, list: &str, read: &dyn Fn(&str) -> Option<String>| {
        term.get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .all(|e| expression_holds(e, read(text(e, "key"))))
    };
    terms.iter().any(|term| {
        let empty = ["matchExpressions", "matchFields"].iter().all(|l| {
            term.get(*l)
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
        });
        !empty
            && all(term, "matchExpressions", &|key| {
                node.label(key).map(str::to_owned)
            })
            && all(term, "matchFields", &|key| {
                (key == "metadata.name").then(|| node.name().to_owned())
            })
    })
}

fn expression_holds(expression: &Value, value: Option<String>) -> bool {
    let listed = || {
        expression
            .get("values")
            .and_then(Value::as_array)
            .is_some_and(|l| l.iter().any(|v| v.as_str() == value.as_deref()))
    };
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = || {
        number(
            expression
                .pointer("/values/0")
                .and_then(Value::as_str)
                .unwrap_or(""),
        )
    };
    match text(expression, "operator") {
        "In" => value.is_some() && listed(),
        "NotIn" => value.is_none() || !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => value
            .as_deref()
            .and_then(number)
            .zip(bound())
            .is_some_and(|(a, b)| a > b),
        "Lt" => value
            .as_deref()
            .and_then(number)
            .zip(bound())
            .is_some_and(|(a, b)| a < b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    #[test]
    fn the_least_loaded_allowed_node_is_taken() {
        let a = object(json!({"metadata": {"name": "a", "labels": {"disk": "ssd"}}}));
        let b = object(json!({"metadata": {"name": "b"}}));
        let cordoned = object(json!({"metadata": {"name": "c"}, "spec": {"unschedulable": true}}));
        let nodes = [
            NodeLoad { node: &a, pods: 3 },
            NodeLoad { node: &b, pods: 1 },
            NodeLoad {
                node: &cordoned,
                pods: 0,
            },
        ];
        for (spec, want) in [
            (json!({}), "b"),
            (json!({"nodeSelector": {"disk": "ssd"}}), "a"),
            (json!({"tolerations": [{"operator": "Exists"}]}), "c"),
        ] {
            assert_eq!(
                schedule(&object(json!({"spec": spec})), &nodes, &Storage::Ready),
                Placement::Node(want.into()),
                "{spec}"
            );
        }
        let Placement::Refused { message, .. } = schedule(
            &object(json!({"spec": {"nodeSelector": {"x": "y"}}})),
            &nodes,
            &Storage::Ready,
        ) else {
            panic!("no node has the label")
        };
        assert!(
            message
                .starts_with("0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."),
            "{message}"
        );
    }

    #[test]
    fn a_missing_claim_or_a_gate_holds_the_pod() {
        let node = object(json!({"metadata": {"name": "a"}}));
        let nodes = [NodeLoad {
            node: &node,
            pods: 0,
        }];
        assert!(matches!(
            schedule(
                &object(json!({"spec": {}})),
                &nodes,
                &Storage::Lacking("x".into())
            ),
            Placement::Refused {
                reason: "Unschedulable",
                ..
            }
        ));
        let gated = object(json!({"spec": {"schedulingGates": [{"name": "x"}]}}));
        assert!(matches!(
            schedule(&gated, &nodes, &Storage::Ready),
            Placement::Refused {
                reason: "SchedulingGated",
                ..
            }
        ));
    }
}
