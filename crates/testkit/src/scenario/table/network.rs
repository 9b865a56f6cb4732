//! Services with their endpoints, Ingresses.

use super::*;

fn slice_of(steps: Vec<Step>) -> Vec<Step> {
    [steps, vec![rest()]].concat()
}

pub fn all() -> Vec<Scenario> {
    [
        services_of_a_deployment(),
        services_without_pods(),
        services_of_other_pods(),
        services_that_change(),
        ingresses(),
    ]
    .concat()
}

fn web(container: Value) -> Vec<Step> {
    vec![
        create(workload(
            "Deployment",
            template(IMAGE, container),
            json!({"replicas": 2}),
        )),
        until("deployments/w", "/status/replicas", 2),
        Step::Pass(2),
    ]
}

fn services_of_a_deployment() -> Vec<Scenario> {
    let ported = json!({"ports": [{"name": "web", "containerPort": 8080}, {"name": "admin", "containerPort": 9090}]});
    let both = json!({"ports": [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "admin", "port": 81, "targetPort": "admin", "protocol": "TCP", "appProtocol": "http"}]});
    vec![
        scenario(
            "service-ready",
            slice_of([web(json!({})), vec![create(service("w", json!({})))]].concat()),
        ),
        scenario(
            "service-not-ready",
            slice_of([web(never_ready()), vec![create(service("w", json!({})))]].concat()),
        ),
        scenario(
            "service-publishes-not-ready",
            slice_of(
                [
                    web(never_ready()),
                    vec![create(service(
                        "w",
                        json!({"publishNotReadyAddresses": true}),
                    ))],
                ]
                .concat(),
            ),
        ),
        scenario(
            "service-headless",
            slice_of(
                [
                    web(json!({})),
                    vec![create(service("w", json!({"clusterIP": "None"})))],
                ]
                .concat(),
            ),
        ),
        scenario(
            "service-named-ports",
            slice_of([web(ported), vec![create(service("w", both))]].concat()),
        ),
    ]
}

fn services_without_pods() -> Vec<Scenario> {
    let manual = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "w"}, "subsets": [{"addresses": [{"ip": "203.0.113.9"}], "ports": [{"port": 80, "name": "http"}]}]});
    vec![
        scenario(
            "service-nothing-selected",
            slice_of(vec![create(service("w", json!({})))]),
        ),
        scenario(
            "service-without-selector",
            slice_of(vec![
                create(
                    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": {"ports": [{"name": "http", "port": 80}]}}),
                ),
                create(manual),
            ]),
        ),
        scenario(
            "service-external-name",
            slice_of(vec![create(
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": {"type": "ExternalName", "externalName": "example.com"}}),
            )]),
        ),
    ]
}

fn services_of_other_pods() -> Vec<Scenario> {
    vec![
        scenario(
            "service-of-a-statefulset",
            slice_of(vec![
                create(service("w", json!({"clusterIP": "None"}))),
                create(workload(
                    "StatefulSet",
                    template(IMAGE, json!({})),
                    json!({"replicas": 2, "serviceName": "w"}),
                )),
                until("statefulsets/w", "/status/availableReplicas", 2),
            ]),
        ),
        scenario(
            "service-of-an-ended-pod",
            slice_of(vec![
                create(service("w", json!({}))),
                create(pod(
                    "p",
                    json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE, "command": ["true"]}]}),
                )),
                until("pods/p", "/status/phase", "Succeeded"),
            ]),
        ),
        scenario(
            "service-of-a-stopping-pod",
            slice_of(vec![
                create(service("w", json!({}))),
                create(with(
                    pod("p", json!({})),
                    json!({"metadata": {"finalizers": ["example.com/hold"]}}),
                )),
                until("pods/p", "/status/phase", "Running"),
                Step::Pass(2),
                delete("pods/p", "Background"),
                Step::Pass(4),
            ]),
        ),
        scenario(
            "service-of-pods-with-different-ports",
            slice_of(vec![
                create(service(
                    "w",
                    json!({"ports": [{"name": "http", "port": 80, "targetPort": "web"}]}),
                )),
                create(pod(
                    "p",
                    json!({"containers": [{"name": "c", "image": IMAGE, "ports": [{"name": "web", "containerPort": 8080}]}]}),
                )),
                create(pod(
                    "q",
                    json!({"containers": [{"name": "c", "image": IMAGE, "ports": [{"name": "web", "containerPort": 9090}]}]}),
                )),
                until("pods/p", "/status/phase", "Running"),
                until("pods/q", "/status/phase", "Running"),
            ]),
        ),
    ]
}

fn services_that_change() -> Vec<Scenario> {
    vec![
        scenario(
            "service-selector-changes",
            slice_of(
                [
                    web(json!({})),
                    vec![
                        create(service("w", json!({}))),
                        Step::Pass(2),
                        patch(
                            "services/w",
                            json!({"spec": {"selector": {"app": "other"}}}),
                        ),
                    ],
                ]
                .concat(),
            ),
        ),
        scenario(
            "service-deleted",
            slice_of(
                [
                    web(json!({})),
                    vec![
                        create(service("w", json!({}))),
                        Step::Pass(2),
                        delete("services/w", "Background"),
                        gone("endpoints/w"),
                    ],
                ]
                .concat(),
            ),
        ),
    ]
}

fn ingresses() -> Vec<Scenario> {
    let rule = json!({"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "w", "port": {"number": 80}}}}]}});
    vec![scenario(
        "ingress",
        slice_of(vec![
            create(service("w", json!({}))),
            create(
                json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "w"}, "spec": {"ingressClassName": "none", "rules": [rule]}}),
            ),
        ]),
    )]
}
