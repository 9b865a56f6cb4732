//! Services, ingresses, autoscalers and namespaces.

use super::super::kind::Kind;
use super::{Cluster, template, workload};
use serde_json::{Value, json};

fn service(kind: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]},
    })
}

fn ready(cluster: &Cluster) -> (usize, usize) {
    let slices = cluster.all(Kind::EndpointSlice);
    let list = slices
        .first()
        .and_then(|s| s.0.get("endpoints")?.as_array().cloned())
        .unwrap_or_default();
    (
        list.len(),
        list.iter()
            .filter(|e| e["conditions"]["ready"] == true)
            .count(),
    )
}

#[test]
fn endpoints_follow_the_pods() {
    let mut cluster = Cluster::new();
    cluster.apply(service("ClusterIP"));
    cluster.apply(workload("Deployment", 2, json!({})));
    cluster.pass(2.0);
    assert_eq!(ready(&cluster), (2, 2));
    let slices = cluster.all(Kind::EndpointSlice);
    assert_eq!(
        slices[0].0["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );
    assert_eq!(
        (
            slices[0].label("team"),
            slices[0].label("kubernetes.io/service-name")
        ),
        (Some("a"), Some("web"))
    );
    let classic = cluster.get(Kind::Endpoints, "web");
    assert_eq!(
        classic
            .pointer("/subsets/0/addresses")
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(2)
    );
    cluster.edit(Kind::Deployment, "web", |d| {
        super::fields::set_spec(d, "replicas", 0.into())
    });
    cluster.pass(0.1);
    assert_eq!(
        ready(&cluster),
        (2, 0),
        "stopping pods are listed, but not ready"
    );
    cluster.pass(2.0);
    assert_eq!(ready(&cluster), (0, 0));
    assert!(
        cluster
            .get(Kind::Endpoints, "web")
            .0
            .get("subsets")
            .is_none()
    );
    cluster.delete(Kind::Service, "web");
    cluster.pass(1.0);
    assert!(cluster.all(Kind::EndpointSlice).is_empty());
}

#[test]
fn load_balancers_and_ingresses_get_an_address_after_a_moment() {
    let mut cluster = Cluster::new();
    cluster.apply(service("LoadBalancer"));
    cluster.apply(json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}, "spec": {}}));
    cluster.pass(0.3);
    let address = |cluster: &Cluster, kind| {
        cluster
            .get(kind, "web")
            .str_at("/status/loadBalancer/ingress/0/ip")
            .to_owned()
    };
    assert_eq!(address(&cluster, Kind::Service), "");
    cluster.pass(1.0);
    assert_eq!(
        (
            address(&cluster, Kind::Service).as_str(),
            address(&cluster, Kind::Ingress).as_str()
        ),
        ("203.0.113.1", "192.0.2.254")
    );
    cluster.edit(Kind::Service, "web", |s| {
        super::fields::set_spec(s, "type", "ClusterIP".into())
    });
    cluster.pass(1.0);
    assert_eq!(address(&cluster, Kind::Service), "");
}

#[test]
fn an_autoscaler_keeps_its_target_within_the_limits() {
    let mut cluster = Cluster::new();
    cluster.apply(workload("Deployment", 1, json!({})));
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    cluster.apply(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4},
    }));
    cluster.pass(3.0);
    assert_eq!(cluster.all(Kind::Pod).len(), 2);
    assert_eq!(
        cluster
            .condition(Kind::HorizontalPodAutoscaler, "h", "AbleToScale")
            .1,
        "SucceededRescale"
    );
    cluster.pass(15.0);
    let scaler = cluster.get(Kind::HorizontalPodAutoscaler, "h");
    assert_eq!(
        (
            scaler.i64_at("/status/currentReplicas"),
            scaler.i64_at("/status/desiredReplicas")
        ),
        (Some(2), Some(2))
    );
    assert_eq!(
        cluster
            .condition(Kind::HorizontalPodAutoscaler, "h", "AbleToScale")
            .1,
        "SucceededGetScale"
    );
}

#[test]
fn a_disruption_budget_counts() {
    let mut cluster = Cluster::new();
    cluster.apply(workload("Deployment", 3, json!({})));
    for (name, limit) in [
        ("min", json!({"minAvailable": 2})),
        ("max", json!({"maxUnavailable": "50%"})),
    ] {
        let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
        spec.as_object_mut()
            .expect("a map")
            .extend(limit.as_object().expect("a map").clone());
        cluster.apply(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}));
    }
    cluster.pass(0.1);
    assert_eq!(
        cluster.condition(Kind::PodDisruptionBudget, "min", "DisruptionAllowed"),
        ("False".into(), "InsufficientPods".into())
    );
    cluster.pass(2.0);
    let names = [
        "expectedPods",
        "desiredHealthy",
        "currentHealthy",
        "disruptionsAllowed",
        "observedGeneration",
    ];
    assert_eq!(
        super::counts(&cluster.get(Kind::PodDisruptionBudget, "min"), &names),
        [3, 2, 3, 1, 1]
    );
    assert_eq!(
        super::counts(&cluster.get(Kind::PodDisruptionBudget, "max"), &names),
        [3, 1, 3, 2, 1]
    );
    assert_eq!(
        cluster.condition(Kind::PodDisruptionBudget, "min", "DisruptionAllowed"),
        ("True".into(), "SufficientPods".into())
    );
}

#[test]
fn what_a_namespace_always_has_comes_back() {
    let mut cluster = Cluster::new();
    cluster.delete(Kind::ServiceAccount, "default");
    cluster.delete(Kind::ConfigMap, "kube-root-ca.crt");
    cluster.pass(0.1);
    assert!(cluster.find(Kind::ServiceAccount, "default").is_some());
    assert!(cluster.find(Kind::ConfigMap, "kube-root-ca.crt").is_some());
}

#[test]
fn orphans_are_adopted_and_strangers_let_go() {
    let mut cluster = Cluster::new();
    let mut pod = template("nginx:1");
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "lonely".into();
    cluster.apply(pod);
    cluster.apply(workload("ReplicaSet", 2, json!({})));
    cluster.pass(2.0);
    assert_eq!(cluster.all(Kind::Pod).len(), 2);
    assert_eq!(
        cluster
            .get(Kind::Pod, "lonely")
            .controller_of()
            .map(|o| o.name),
        Some("web".to_owned())
    );
    cluster.edit(Kind::Pod, "lonely", |p| p.set_label("app", "other"));
    cluster.pass(2.0);
    assert_eq!(
        cluster.all(Kind::Pod).len(),
        3,
        "one was released, one made in its place"
    );
    assert_eq!(cluster.get(Kind::Pod, "lonely").controller_of(), None);
}
