//! Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets: starting,
//! updating, scaling, failing.

use super::*;

pub fn all() -> Vec<Scenario> {
    [
        deployments(),
        rollouts(),
        revisions(),
        scaling(),
        sets(),
        stateful(),
        daemons(),
        pods(),
    ]
    .concat()
}

const W: &str = "deployments/w";

fn deployment(image: &str, container: Value, spec: Value) -> Step {
    create(workload("Deployment", template(image, container), spec))
}

fn deployments() -> Vec<Scenario> {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}});
    vec![
        scenario(
            "deployment-runs",
            vec![
                deployment(IMAGE, json!({}), json!({"replicas": 3})),
                until(W, "/status/availableReplicas", 3),
                rest(),
            ],
        ),
        scenario(
            "deployment-bad-image",
            vec![
                deployment(BAD, json!({}), json!({"replicas": 2})),
                until(W, "/status/unavailableReplicas", 2),
                rest(),
            ],
        ),
        scenario(
            "deployment-never-ready",
            vec![
                deployment(
                    IMAGE,
                    never_ready(),
                    json!({"replicas": 2, "progressDeadlineSeconds": 4}),
                ),
                until(W, "/status/conditions/1/reason", "ProgressDeadlineExceeded"),
                rest(),
            ],
        ),
        scenario(
            "deployment-failing-command-is-always-restarted",
            vec![
                deployment(IMAGE, command(&["false"]), json!({"replicas": 1})),
                until(W, "/status/availableReplicas", 1),
                rest(),
            ],
        ),
        scenario(
            "deployment-zero",
            vec![
                deployment(IMAGE, json!({}), json!({"replicas": 0})),
                until(W, "/status/observedGeneration", 1),
                rest(),
            ],
        ),
        scenario(
            "deployment-min-ready-seconds",
            vec![
                deployment(
                    IMAGE,
                    json!({}),
                    json!({"replicas": 2, "minReadySeconds": 3}),
                ),
                until(W, "/status/readyReplicas", 2),
                until(W, "/status/availableReplicas", 2),
                rest(),
            ],
        ),
        scenario(
            "deployment-quota",
            vec![
                create(quota),
                until("resourcequotas/q", "/status/hard/pods", "2"),
                deployment(IMAGE, json!({}), json!({"replicas": 3})),
                until(W, "/status/availableReplicas", 2),
                rest(),
            ],
        ),
        scenario(
            "deployment-no-node",
            vec![
                create(workload(
                    "Deployment",
                    with(
                        template(IMAGE, json!({})),
                        json!({"spec": {"nodeSelector": {"disk": "none"}}}),
                    ),
                    json!({"replicas": 1}),
                )),
                until(W, "/status/unavailableReplicas", 1),
                rest(),
            ],
        ),
    ]
}

/// A Deployment that becomes available, the steps after that, and a recorded state at the end.
fn once_available(spec: Value, steps: Vec<Step>) -> Vec<Step> {
    let start = vec![
        deployment(IMAGE, json!({}), spec.clone()),
        until(W, "/status/availableReplicas", spec["replicas"].clone()),
    ];
    [start, steps, vec![rest()]].concat()
}

fn update() -> Vec<Step> {
    vec![patch(W, images(OTHER))]
}

fn updated(n: i64) -> Vec<Step> {
    vec![
        until(W, "/status/updatedReplicas", n),
        until(W, "/status/availableReplicas", n),
        until(W, "/status/replicas", n),
    ]
}

fn rollouts() -> Vec<Scenario> {
    let rolling = |surge: Value, unavailable: Value| json!({"replicas": 4, "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}});
    vec![
        scenario(
            "rollout",
            once_available(json!({"replicas": 3}), [update(), updated(3)].concat()),
        ),
        scenario(
            "rollout-surge",
            once_available(rolling(json!(2), json!(0)), [update(), updated(4)].concat()),
        ),
        scenario(
            "rollout-unavailable",
            once_available(
                rolling(json!(0), json!("50%")),
                [update(), updated(4)].concat(),
            ),
        ),
        scenario(
            "rollout-recreate",
            once_available(
                json!({"replicas": 2, "strategy": {"type": "Recreate"}}),
                [update(), updated(2)].concat(),
            ),
        ),
        scenario(
            "rollout-bad-image",
            once_available(
                json!({"replicas": 4, "progressDeadlineSeconds": 5}),
                vec![
                    patch(W, images(BAD)),
                    until(W, "/status/conditions/1/reason", "ProgressDeadlineExceeded"),
                ],
            ),
        ),
    ]
}

/// Rollbacks, the history limit, and a rollout while it is paused.
fn revisions() -> Vec<Scenario> {
    vec![
        scenario(
            "rollback",
            once_available(
                json!({"replicas": 2}),
                [
                    update(),
                    updated(2),
                    vec![Step::Note("updated"), patch(W, images(IMAGE))],
                    updated(2),
                ]
                .concat(),
            ),
        ),
        scenario(
            "rollback-of-a-stuck-rollout",
            once_available(
                json!({"replicas": 4}),
                [
                    vec![
                        patch(W, images(BAD)),
                        until(W, "/status/updatedReplicas", 2),
                        Step::Note("stuck"),
                        patch(W, images(IMAGE)),
                    ],
                    updated(4),
                ]
                .concat(),
            ),
        ),
        scenario(
            "rollout-history-limit",
            once_available(
                json!({"replicas": 1, "revisionHistoryLimit": 1}),
                [
                    update(),
                    updated(1),
                    vec![
                        Step::Note("second"),
                        patch(W, images("registry.example/app:3")),
                    ],
                    updated(1),
                ]
                .concat(),
            ),
        ),
        scenario(
            "deployment-paused",
            once_available(
                json!({"replicas": 2}),
                [
                    vec![
                        patch(W, json!({"spec": {"paused": true}})),
                        patch(W, images(OTHER)),
                        Step::Note("paused"),
                        patch(W, json!({"spec": {"paused": false}})),
                    ],
                    updated(2),
                ]
                .concat(),
            ),
        ),
    ]
}

fn scaling() -> Vec<Scenario> {
    vec![
        scenario(
            "deployment-scale-up",
            once_available(
                json!({"replicas": 1}),
                vec![
                    patch(W, json!({"spec": {"replicas": 4}})),
                    until(W, "/status/availableReplicas", 4),
                ],
            ),
        ),
        scenario(
            "deployment-scale-down",
            once_available(
                json!({"replicas": 4}),
                vec![
                    patch(W, json!({"spec": {"replicas": 1}})),
                    until(W, "/status/replicas", 1),
                ],
            ),
        ),
        scenario(
            "deployment-scale-to-zero",
            once_available(
                json!({"replicas": 2}),
                vec![
                    patch(W, json!({"spec": {"replicas": 0}})),
                    until(W, "/status/replicas", Value::Null),
                ],
            ),
        ),
    ]
}

fn sets() -> Vec<Scenario> {
    let controller = |image: &str, replicas: i64| json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "w"}, "spec": {"replicas": replicas, "selector": {"app": "w"}, "template": template(image, json!({}))}});
    let set = |replicas: i64| {
        create(workload(
            "ReplicaSet",
            template(IMAGE, json!({})),
            json!({"replicas": replicas}),
        ))
    };
    vec![
        scenario(
            "replicaset-runs",
            vec![
                set(3),
                until("replicasets/w", "/status/availableReplicas", 3),
                rest(),
            ],
        ),
        scenario(
            "replicaset-adopts-and-releases",
            vec![
                create(pod("loose", json!({}))),
                until("pods/loose", "/status/phase", "Running"),
                set(2),
                until("replicasets/w", "/status/availableReplicas", 2),
                Step::Note("adopted"),
                patch(
                    "pods/loose",
                    json!({"metadata": {"labels": {"app": "free"}}}),
                ),
                until("pods/loose", "/metadata/ownerReferences", Value::Null),
                until("replicasets/w", "/status/availableReplicas", 2),
                rest(),
            ],
        ),
        scenario(
            "replicationcontroller-runs",
            vec![
                create(controller(IMAGE, 2)),
                until("replicationcontrollers/w", "/status/availableReplicas", 2),
                rest(),
            ],
        ),
        scenario(
            "replicationcontroller-scales",
            vec![
                create(controller(IMAGE, 3)),
                until("replicationcontrollers/w", "/status/availableReplicas", 3),
                patch("replicationcontrollers/w", json!({"spec": {"replicas": 1}})),
                until("replicationcontrollers/w", "/status/replicas", 1),
                rest(),
            ],
        ),
        scenario(
            "replicationcontroller-bad-image",
            vec![
                create(controller(BAD, 1)),
                until("replicationcontrollers/w", "/status/replicas", 1),
                rest(),
            ],
        ),
    ]
}

fn stateful() -> Vec<Scenario> {
    const S: &str = "statefulsets/w";
    let set = |image: &str, container: Value, spec: Value| {
        create(workload(
            "StatefulSet",
            template(image, container),
            with(json!({"serviceName": "w"}), spec),
        ))
    };
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "$NS-none", "resources": {"requests": {"storage": "1Gi"}}}}]);
    let started = |spec: Value| {
        vec![
            set(IMAGE, json!({}), spec.clone()),
            until(S, "/status/availableReplicas", spec["replicas"].clone()),
        ]
    };
    vec![
        scenario("statefulset-runs", [started(json!({"replicas": 3})), vec![rest()]].concat()),
        scenario(
            "statefulset-parallel",
            [started(json!({"replicas": 3, "podManagementPolicy": "Parallel", "ordinals": {"start": 5}})), vec![rest()]].concat(),
        ),
        scenario(
            "statefulset-never-ready-waits-at-the-first",
            vec![set(IMAGE, never_ready(), json!({"replicas": 3})), until(S, "/status/replicas", 1), rest()],
        ),
        scenario("statefulset-bad-image", vec![set(BAD, json!({}), json!({"replicas": 2})), until(S, "/status/replicas", 1), rest()]),
        scenario(
            "statefulset-scale-down",
            [started(json!({"replicas": 3})), vec![patch(S, json!({"spec": {"replicas": 1}})), until(S, "/status/replicas", 1), rest()]]
                .concat(),
        ),
        scenario(
            "statefulset-update",
            [
                started(json!({"replicas": 2})),
                vec![patch(S, images(OTHER)), until(S, "/status/updatedReplicas", 2), until(S, "/status/availableReplicas", 2), rest()],
            ]
            .concat(),
        ),
        scenario(
            "statefulset-partition",
            [
                started(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}})),
                vec![patch(S, images(OTHER)), until(S, "/status/updatedReplicas", 1), until(S, "/status/availableReplicas", 3), rest()],
            ]
            .concat(),
        ),
        scenario(
            "statefulset-on-delete",
            [
                started(json!({"replicas": 1, "updateStrategy": {"type": "OnDelete"}})),
                vec![patch(S, images(OTHER)), until(S, "/status/observedGeneration", 2), rest()],
            ]
            .concat(),
        ),
        scenario(
            "statefulset-claims-go-with-it",
            vec![
                set(
                    IMAGE,
                    json!({}),
                    json!({"replicas": 2, "podManagementPolicy": "Parallel", "volumeClaimTemplates": claims.clone(), "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}}),
                ),
                until(S, "/status/replicas", 2),
                Step::Note("claimed"),
                patch(S, json!({"spec": {"replicas": 1}})),
                gone("persistentvolumeclaims/data-w-1"),
                Step::Note("scaled"),
                delete(S, "Background"),
                gone("persistentvolumeclaims/data-w-0"),
                rest(),
            ],
        ),
        scenario(
            "statefulset-claims-wait",
            vec![set(IMAGE, json!({}), json!({"replicas": 2, "volumeClaimTemplates": claims})), until(S, "/status/replicas", 1), rest()],
        ),
    ]
}

fn daemons() -> Vec<Scenario> {
    const D: &str = "daemonsets/w";
    let set = |image: &str, container: Value, spec: Value| {
        create(workload("DaemonSet", template(image, container), spec))
    };
    vec![
        scenario(
            "daemonset-runs",
            vec![
                set(IMAGE, json!({}), json!({})),
                until(D, "/status/numberAvailable", 2),
                rest(),
            ],
        ),
        scenario(
            "daemonset-never-ready",
            vec![
                set(IMAGE, never_ready(), json!({})),
                until(D, "/status/numberUnavailable", 2),
                rest(),
            ],
        ),
        scenario(
            "daemonset-bad-image",
            vec![
                set(BAD, json!({}), json!({})),
                until(D, "/status/numberUnavailable", 2),
                rest(),
            ],
        ),
        scenario(
            "daemonset-update",
            vec![
                set(IMAGE, json!({}), json!({})),
                until(D, "/status/numberAvailable", 2),
                patch(D, images(OTHER)),
                until(D, "/status/updatedNumberScheduled", 2),
                until(D, "/status/numberAvailable", 2),
                rest(),
            ],
        ),
        scenario(
            "daemonset-surge",
            vec![
                set(
                    IMAGE,
                    json!({}),
                    json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
                ),
                until(D, "/status/numberAvailable", 2),
                patch(D, images(OTHER)),
                until(D, "/status/updatedNumberScheduled", 2),
                until(D, "/status/numberAvailable", 2),
                rest(),
            ],
        ),
        scenario(
            "daemonset-no-node",
            vec![
                create(workload(
                    "DaemonSet",
                    with(
                        template(IMAGE, json!({})),
                        json!({"spec": {"nodeSelector": {"disk": "none"}}}),
                    ),
                    json!({}),
                )),
                until(D, "/status/observedGeneration", 1),
                rest(),
            ],
        ),
    ]
}

fn pods() -> Vec<Scenario> {
    let end = |phase: &str| vec![until("pods/p", "/status/phase", phase), rest()];
    let one = |words: &[&str], policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "c", "image": IMAGE, "command": words}]});
    vec![
        scenario("pod-runs", [vec![create(pod("p", json!({})))], end("Running")].concat()),
        scenario("pod-succeeds", [vec![create(pod("p", one(&["sh", "-c", "sleep 2"], "Never")))], end("Succeeded")].concat()),
        scenario("pod-fails", [vec![create(pod("p", one(&["sh", "-c", "exit 3"], "Never")))], end("Failed")].concat()),
        scenario(
            "pod-with-init-containers",
            [
                vec![create(pod("p", json!({"initContainers": [{"name": "first", "image": IMAGE, "command": ["true"]}, {"name": "side", "image": IMAGE, "restartPolicy": "Always"}]})))],
                end("Running"),
            ]
            .concat(),
        ),
        scenario("pod-gated", vec![create(pod("p", json!({"schedulingGates": [{"name": "example.com/wait"}]}))), until("pods/p", "/status/conditions/0/reason", "SchedulingGated"), rest()]),
        scenario("pod-readiness-gate", [vec![create(pod("p", json!({"readinessGates": [{"conditionType": "example.com/ready"}]})))], end("Running")].concat()),
        scenario("pod-claim-missing", vec![create(pod("p", json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}))), until("pods/p", "/status/conditions/0/reason", "Unschedulable"), rest()]),
        scenario("pod-that-removes-its-finalizer", vec![
            create(with(pod("p", json!({"containers": [{"name": "c", "image": IMAGE, "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "patch /metadata/finalizers"]}}}}]})), json!({"metadata": {"finalizers": ["example.com/hold"]}}))),
            until("pods/p", "/status/phase", "Running"),
            delete("pods/p", "Background"),
            gone("pods/p"),
            rest(),
        ]),
        scenario("pod-deleted", vec![create(pod("p", json!({}))), until("pods/p", "/status/phase", "Running"), delete("pods/p", "Background"), gone("pods/p"), rest()]),
    ]
}
