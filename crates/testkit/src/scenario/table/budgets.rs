//! Disruption budgets, quotas, autoscalers and nodes.

use super::*;

fn budget(spec: Value) -> Value {
    let base = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "w"}}}});
    with(base, json!({"spec": spec}))
}

fn running(replicas: i64) -> Vec<Step> {
    vec![
        create(workload(
            "Deployment",
            template(IMAGE, json!({})),
            json!({"replicas": replicas}),
        )),
        until("deployments/w", "/status/availableReplicas", replicas),
    ]
}

fn scaler(kind: &str, spec: Value) -> Value {
    let base = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "w"}, "minReplicas": 2, "maxReplicas": 4, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]}});
    with(base, json!({"spec": spec}))
}

/// A node for pods of this scenario only.
fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "$NS-a", "labels": {"only": "$NS", "kubernetes.io/hostname": "$NS-a"}}, "spec": {"taints": [{"key": "only", "value": "$NS", "effect": "NoSchedule"}]}})
}

fn on_node() -> Value {
    with(
        template(IMAGE, json!({})),
        json!({"spec": {"nodeSelector": {"only": "$NS"}, "tolerations": [{"key": "only", "operator": "Exists", "effect": "NoSchedule"}]}}),
    )
}

pub fn all() -> Vec<Scenario> {
    [
        budgets(),
        quotas(),
        scalers(),
        nodes_running_a_stateful_set(),
        nodes(),
    ]
    .concat()
}

fn budgets() -> Vec<Scenario> {
    let with_budget = |spec: Value| {
        [
            running(3),
            vec![
                create(budget(spec)),
                until("poddisruptionbudgets/b", "/status/currentHealthy", 3),
                rest(),
            ],
        ]
        .concat()
    };
    vec![
        scenario("budget-minimum", with_budget(json!({"minAvailable": 2}))),
        scenario(
            "budget-minimum-percent",
            with_budget(json!({"minAvailable": "50%"})),
        ),
        scenario("budget-maximum", with_budget(json!({"maxUnavailable": 1}))),
        scenario("budget-too-strict", with_budget(json!({"minAvailable": 3}))),
        scenario(
            "budget-of-nothing",
            vec![
                create(budget(json!({"maxUnavailable": 1}))),
                until("poddisruptionbudgets/b", "/status/observedGeneration", 1),
                rest(),
            ],
        ),
        scenario(
            "budget-of-a-loose-pod",
            vec![
                create(pod("p", json!({}))),
                until("pods/p", "/status/phase", "Running"),
                create(budget(json!({"maxUnavailable": 1}))),
                until("poddisruptionbudgets/b", "/status/observedGeneration", 1),
                rest(),
            ],
        ),
        scenario(
            "eviction-refused",
            vec![
                create(budget(json!({"minAvailable": 1}))),
                // Or its Event that there are no pods depends on who is faster.
                until("poddisruptionbudgets/b", "/status/observedGeneration", 1),
                create(pod("p", json!({}))),
                until("poddisruptionbudgets/b", "/status/currentHealthy", 1),
                Step::Evict("pods/p".into()),
                rest(),
            ],
        ),
        scenario(
            "eviction-allowed",
            vec![
                create(pod("p", json!({}))),
                until("pods/p", "/status/phase", "Running"),
                Step::Evict("pods/p".into()),
                gone("pods/p"),
                rest(),
            ],
        ),
    ]
}

fn quotas() -> Vec<Scenario> {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "5", "services": "2", "configmaps": "9", "count/deployments.apps": "3", "requests.cpu": "2", "limits.memory": "4Gi", "persistentvolumeclaims": "1", "requests.storage": "5Gi"}}});
    let sized = json!({"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}});
    let web = create(workload(
        "Deployment",
        template(IMAGE, sized),
        json!({"replicas": 2}),
    ));
    vec![scenario(
        "quota-counts",
        vec![
            create(quota),
            until("resourcequotas/q", "/status/hard/pods", "5"),
            web,
            until("deployments/w", "/status/availableReplicas", 2),
            create(service("w", json!({}))),
            until("resourcequotas/q", "/status/used/services", "1"),
            until("resourcequotas/q", "/status/used/pods", "2"),
            delete("services/w", "Background"),
            until("resourcequotas/q", "/status/used/services", "0"),
            rest(),
        ],
    )]
}

fn scalers() -> Vec<Scenario> {
    let h = "horizontalpodautoscalers/h";
    let active = || {
        until(
            "horizontalpodautoscalers/h",
            "/status/conditions/0/type",
            "AbleToScale",
        )
    };
    vec![
        scenario(
            "scaler-without-metrics",
            [
                running(3),
                vec![create(scaler("Deployment", json!({}))), active(), rest()],
            ]
            .concat(),
        ),
        scenario(
            "scaler-raises-to-the-minimum",
            [
                running(1),
                vec![
                    create(scaler("Deployment", json!({}))),
                    until(h, "/status/desiredReplicas", 2),
                    until("deployments/w", "/status/availableReplicas", 2),
                    rest(),
                ],
            ]
            .concat(),
        ),
        scenario(
            "scaler-lowers-to-the-maximum",
            [
                running(6),
                vec![
                    create(scaler("Deployment", json!({}))),
                    until(h, "/status/desiredReplicas", 4),
                    until("deployments/w", "/status/replicas", 4),
                    rest(),
                ],
            ]
            .concat(),
        ),
        scenario(
            "scaler-of-nothing",
            vec![
                create(workload(
                    "Deployment",
                    template(IMAGE, json!({})),
                    json!({"replicas": 0}),
                )),
                create(scaler("Deployment", json!({}))),
                active(),
                rest(),
            ],
        ),
        scenario(
            "scaler-without-target",
            vec![create(scaler("Deployment", json!({}))), active(), rest()],
        ),
    ]
}

/// Enough time for a node to become ready.
fn node_becomes_ready() -> Step {
    Step::Pass(3)
}

fn delete_node() -> Step {
    Step::Delete("nodes/$NS-a".into(), json!({}))
}

/// A taint that evicts Pods, in addition to the one that keeps others away.
fn evicting_taints() -> Value {
    json!({"spec": {"taints": [{"key": "only", "value": "$NS", "effect": "NoSchedule"}, {"key": "away", "effect": "NoExecute"}]}})
}

fn nodes_running_a_stateful_set() -> Vec<Scenario> {
    let stateful = |replicas: i64| {
        create(workload(
            "StatefulSet",
            on_node(),
            json!({"replicas": replicas, "serviceName": "w", "podManagementPolicy": "Parallel"}),
        ))
    };
    let held = |replicas: i64| until("statefulsets/w", "/status/availableReplicas", replicas);
    let patient = json!([{"key": "only", "operator": "Exists"}, {"key": "away", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6}]);
    vec![
        scenario(
            "node-drained",
            vec![
                create(node()),
                node_becomes_ready(),
                stateful(2),
                held(2),
                create(budget(json!({"minAvailable": 1}))),
                until("poddisruptionbudgets/b", "/status/disruptionsAllowed", 1),
                patch("nodes/$NS-a", json!({"spec": {"unschedulable": true}})),
                Step::Pass(1),
                Step::Evict("pods/w-0".into()),
                Step::Evict("pods/w-1".into()),
                until("pods/w-0", "/status/phase", "Pending"),
                rest(),
                delete_node(),
            ],
        ),
        scenario(
            "node-deleted",
            vec![
                create(node()),
                node_becomes_ready(),
                stateful(1),
                held(1),
                delete_node(),
                until("pods/w-0", "/status/phase", "Pending"),
                rest(),
            ],
        ),
        scenario(
            "node-taint-is-tolerated-for-a-while",
            vec![
                create(node()),
                node_becomes_ready(),
                create(workload(
                    "StatefulSet",
                    with(on_node(), json!({"spec": {"tolerations": patient}})),
                    json!({"replicas": 1, "serviceName": "w"}),
                )),
                held(1),
                patch("nodes/$NS-a", evicting_taints()),
                Step::Pass(2),
                until("pods/w-0", "/status/phase", "Running"),
                until("pods/w-0", "/status/phase", "Pending"),
                rest(),
                delete_node(),
            ],
        ),
    ]
}

fn nodes() -> Vec<Scenario> {
    let on = |replicas: i64| {
        create(workload(
            "Deployment",
            on_node(),
            json!({"replicas": replicas}),
        ))
    };
    let available = |n: i64| until("deployments/w", "/status/availableReplicas", n);
    let waiting = || until("deployments/w", "/status/unavailableReplicas", 2);
    vec![
        scenario(
            "node-gets-a-daemon",
            vec![
                create(workload("DaemonSet", on_node(), json!({}))),
                until("daemonsets/w", "/status/observedGeneration", 1),
                create(node()),
                until("daemonsets/w", "/status/numberAvailable", 1),
                rest(),
                delete_node(),
            ],
        ),
        scenario(
            "node-joins",
            vec![create(node()), node_becomes_ready(), rest(), delete_node()],
        ),
        scenario(
            "node-cordoned",
            vec![
                create(node()),
                node_becomes_ready(),
                patch("nodes/$NS-a", json!({"spec": {"unschedulable": true}})),
                on(2),
                waiting(),
                rest(),
                delete_node(),
            ],
        ),
        scenario(
            "node-tainted-evicts",
            vec![
                create(node()),
                node_becomes_ready(),
                on(2),
                available(2),
                patch("nodes/$NS-a", evicting_taints()),
                waiting(),
                rest(),
                delete_node(),
            ],
        ),
    ]
}
