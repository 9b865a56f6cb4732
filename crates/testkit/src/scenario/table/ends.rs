//! Deletion: cascading deletes, owners, finalizers, namespaces.

use super::*;

fn map(name: &str, owners: Value, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}})
}

pub fn all() -> Vec<Scenario> {
    [cascades(), owners(), namespaces()].concat()
}

fn running() -> Vec<Step> {
    vec![
        create(workload(
            "Deployment",
            template(IMAGE, json!({})),
            json!({"replicas": 2}),
        )),
        until("deployments/w", "/status/availableReplicas", 2),
    ]
}

fn cascades() -> Vec<Scenario> {
    let w = "deployments/w";
    let unfinish = |target: &str| patch(target, json!({"metadata": {"finalizers": null}}));
    let held = patch(w, json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    vec![
        scenario(
            "delete-background",
            [running(), vec![delete(w, "Background"), gone(w), rest()]].concat(),
        ),
        scenario(
            "delete-foreground",
            [running(), vec![delete(w, "Foreground"), gone(w), rest()]].concat(),
        ),
        scenario(
            "delete-orphan",
            [running(), vec![delete(w, "Orphan"), gone(w), rest()]].concat(),
        ),
        scenario(
            "delete-held-by-a-finalizer",
            [
                running(),
                vec![
                    held,
                    delete(w, "Background"),
                    Step::Note("held"),
                    unfinish(w),
                    gone(w),
                    rest(),
                ],
            ]
            .concat(),
        ),
        scenario(
            "delete-foreground-blocked",
            vec![
                create(workload(
                    "ReplicaSet",
                    with(
                        template(IMAGE, json!({})),
                        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
                    ),
                    json!({"replicas": 1}),
                )),
                until("replicasets/w", "/status/availableReplicas", 1),
                delete("replicasets/w", "Foreground"),
                Step::Pass(3),
                rest(),
            ],
        ),
        scenario(
            "delete-statefulset",
            vec![
                create(workload(
                    "StatefulSet",
                    template(IMAGE, json!({})),
                    json!({"replicas": 2, "serviceName": "w"}),
                )),
                until("statefulsets/w", "/status/availableReplicas", 2),
                delete("statefulsets/w", "Foreground"),
                gone("statefulsets/w"),
                rest(),
            ],
        ),
        scenario(
            "delete-daemonset",
            vec![
                create(workload("DaemonSet", template(IMAGE, json!({})), json!({}))),
                until("daemonsets/w", "/status/numberAvailable", 2),
                delete("daemonsets/w", "Background"),
                gone("daemonsets/w"),
                rest(),
            ],
        ),
    ]
}

fn owners() -> Vec<Scenario> {
    let owner = |kind: &str, api: &str, name: &str, uid: &str| json!([{"apiVersion": api, "kind": kind, "name": name, "uid": uid}]);
    let nobody = "00000000-0000-4000-8000-000000000000";
    vec![
        scenario(
            "owner-absent",
            vec![
                create(map("child", owner("ConfigMap", "v1", "none", nobody), &[])),
                gone("configmaps/child"),
                rest(),
            ],
        ),
        scenario(
            "owner-cluster-scoped-and-absent",
            vec![
                create(map("child", owner("Node", "v1", "none", nobody), &[])),
                gone("configmaps/child"),
                rest(),
            ],
        ),
        scenario(
            "owner-of-an-unknown-kind",
            vec![
                create(map(
                    "child",
                    owner("Widget", "none.example/v1", "none", nobody),
                    &[],
                )),
                Step::Pass(2),
                rest(),
            ],
        ),
    ]
}

fn namespaces() -> Vec<Scenario> {
    let n = "namespaces/$NS";
    let remaining = || {
        until(
            "namespaces/$NS",
            "/status/conditions/4/type",
            "NamespaceFinalizersRemaining",
        )
    };
    vec![
        scenario(
            "namespace-deleted",
            [
                running(),
                vec![
                    create(service("w", json!({}))),
                    Step::Pass(1),
                    delete(n, "Background"),
                    gone(n),
                    rest(),
                ],
            ]
            .concat(),
        ),
        scenario(
            "namespace-held-by-a-finalizer",
            vec![
                create(map("held", json!([]), &["example.com/hold"])),
                delete(n, "Background"),
                remaining(),
                Step::Pass(3),
                rest(),
            ],
        ),
        scenario(
            "namespace-refuses-new-objects",
            vec![
                create(map("held", json!([]), &["example.com/hold"])),
                delete(n, "Background"),
                remaining(),
                Step::Pass(1),
                create(map("late", json!([]), &[])),
                rest(),
            ],
        ),
    ]
}
