//! The controllers on the API server's own registry, in virtual time: pruning, defaulting and
//! validation must not stop them.

use super::super::{
    Clock, RegistryStore, SimOptions, VirtualClock,
    engine::Engine,
    fields,
    kind::Kind,
    store::{DeleteRequest, Propagation, SimStore},
};
use super::{counts, workload};
use crate::{registry::Registry, store::Memory};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_apimachinery::Object;

struct Server {
    clock: VirtualClock,
    store: RegistryStore,
    engine: Engine<RegistryStore>,
}

impl Server {
    fn new() -> Self {
        let clock = VirtualClock::starting_at("2026-03-01T10:00:00Z".parse().expect("a time"));
        let shown = clock.clone();
        let registry =
            Registry::open(Arc::new(Memory), Arc::new(move || shown.now())).expect("memory opens");
        let mut engine = Engine::new(
            RegistryStore::new(registry.clone()),
            SimOptions {
                heartbeat: Duration::ZERO,
                ..SimOptions::default()
            },
        );
        engine.start(clock.now());
        let mut server = Self {
            clock,
            store: RegistryStore::new(registry),
            engine,
        };
        server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "d"}}));
        server
    }

    fn create(&mut self, value: Value) {
        let mut object = Object::from_value(value).expect("a map");
        if object.kind() != "Namespace" {
            object.set_namespace("d");
        }
        self.store.create(object).expect("valid");
    }

    fn pass(&mut self, seconds: u64) {
        let end = self.clock.now() + Duration::from_secs(seconds);
        loop {
            let mut left = 20_000;
            while self.engine.step(self.clock.now(), 1) {
                left -= 1;
                assert!(left > 0, "the controllers never come to rest");
            }
            match self.engine.next_wake().filter(|at| *at <= end) {
                Some(at) => self.clock.advance_to(at),
                None => return self.clock.advance_to(end),
            }
        }
    }

    fn get(&self, kind: Kind, name: &str) -> Arc<Object> {
        self.store
            .get(kind, "d", name)
            .expect("readable")
            .unwrap_or_else(|| panic!("{} {name} is missing", kind.name()))
    }

    fn count(&self, kind: Kind) -> usize {
        self.store
            .list(kind)
            .expect("readable")
            .iter()
            .filter(|o| o.namespace() == "d")
            .count()
    }
}

#[test]
fn everything_becomes_ready_on_the_registry() {
    let mut server = Server::new();
    for kind in Kind::ALL {
        assert!(
            server.store.list(*kind).is_ok(),
            "{} is not served under its names",
            kind.name()
        );
    }
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let mut value = workload(kind, 2, json!({}));
        let name = kind.to_lowercase();
        value["metadata"]["name"] = name.clone().into();
        value["spec"]["selector"]["matchLabels"] = json!({"app": name});
        value["spec"]["template"]["metadata"]["labels"] = json!({"app": name});
        if kind == "DaemonSet" {
            value["spec"]
                .as_object_mut()
                .expect("a map")
                .remove("replicas");
        }
        if kind == "StatefulSet" {
            value["spec"]["serviceName"] = "deployment".into();
        }
        server.create(value);
    }
    server.create(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1", "command": ["true"]}]}}},
    }));
    server.create(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "deployment"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "deployment"}, "ports": [{"port": 80, "targetPort": "http"}]},
    }));
    server.pass(10);
    let deployment = server.get(Kind::Deployment, "deployment");
    let names = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    assert_eq!(
        counts(&deployment, &names),
        [deployment.generation(), 2, 2, 2, 2]
    );
    assert!(fields::condition_is_true(&deployment, "Available"));
    let set = server.get(Kind::StatefulSet, "statefulset");
    assert_eq!(
        counts(
            &set,
            &["observedGeneration", "readyReplicas", "updatedReplicas"]
        ),
        [set.generation(), 2, 2]
    );
    let daemons = server.get(Kind::DaemonSet, "daemonset");
    assert_eq!(
        counts(
            &daemons,
            &["numberReady", "updatedNumberScheduled", "numberAvailable"]
        ),
        [2, 2, 2]
    );
    assert!(fields::condition_is_true(
        &server.get(Kind::Job, "job"),
        "Complete"
    ));
    assert_eq!(
        server
            .get(Kind::Service, "deployment")
            .str_at("/status/loadBalancer/ingress/0/ip"),
        "203.0.113.1"
    );
    let endpoints = server.get(Kind::Endpoints, "deployment");
    assert_eq!(
        endpoints
            .pointer("/subsets/0/addresses")
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(server.count(Kind::Pod), 7);
    assert!(server.count(Kind::Event) > 20);
    let writes = server.store.revision();
    server.pass(3600);
    assert_eq!(
        server.store.revision(),
        writes,
        "at rest nothing is written"
    );
}

#[test]
fn a_pod_of_the_registry_stops_gracefully() {
    let mut server = Server::new();
    server.create(workload("ReplicaSet", 1, json!({})));
    server.pass(2);
    let pods = server.store.list(Kind::Pod).expect("readable");
    let request = DeleteRequest {
        uid: Some(pods[0].uid().to_owned()),
        grace_seconds: None,
        propagation: Propagation::Background,
    };
    let left = server
        .store
        .delete(Kind::Pod, "d", pods[0].name(), request)
        .expect("it exists");
    assert!(
        left.is_some_and(|p| p.deletion_timestamp().is_some()),
        "a running pod is given time"
    );
    server.pass(2);
    let now = server.store.list(Kind::Pod).expect("readable");
    assert_eq!(now.len(), 1);
    assert_ne!(now[0].uid(), pods[0].uid());
    assert_eq!(now[0].str_at("/status/phase"), "Running");
}

#[tokio::test]
async fn the_task_waits_for_changes_and_for_the_clock_and_stops_when_told() {
    let clock = VirtualClock::starting_at("2026-03-01T10:00:00Z".parse().expect("a time"));
    let shown = clock.clone();
    let registry =
        Registry::open(Arc::new(Memory), Arc::new(move || shown.now())).expect("memory opens");
    let stop = tokio_util::sync::CancellationToken::new();
    let task = tokio::spawn(super::super::run(
        RegistryStore::new(registry.clone()),
        SimOptions::default(),
        Arc::new(clock.clone()),
        crate::quiet::channel().1,
        stop.clone(),
    ));
    let store = RegistryStore::new(registry);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    });
    for value in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "d"}}),
        pod,
    ] {
        store
            .create(Object::from_value(value).expect("a map"))
            .expect("valid");
    }
    let phase = || {
        store
            .get(Kind::Pod, "d", "p")
            .expect("readable")
            .map(|p| p.str_at("/status/phase").to_owned())
    };
    let bound = || {
        store
            .get(Kind::Pod, "d", "p")
            .expect("readable")
            .is_some_and(|p| !p.str_at("/spec/nodeName").is_empty())
    };
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(
        bound() && phase().as_deref() != Some("Running"),
        "the clock stands still"
    );
    clock.advance(Duration::from_secs(1));
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(phase().as_deref(), Some("Running"));
    stop.cancel();
    task.await.expect("it ends without a panic");
}

#[test]
fn the_work_is_proportional_to_what_is_deployed() {
    let mut server = Server::new();
    server.pass(1);
    let writes = |server: &mut Server, from: usize, to: usize| {
        let before = server.store.revision();
        for i in from..to {
            let name = format!("w{i}");
            let mut value = workload("Deployment", 1, json!({}));
            value["metadata"]["name"] = name.clone().into();
            value["spec"]["selector"]["matchLabels"] = json!({"app": name});
            value["spec"]["template"]["metadata"]["labels"] = json!({"app": name});
            server.create(value);
            let spec =
                json!({"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]});
            server.create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}));
        }
        server.pass(5);
        server.store.revision() - before
    };
    let few = writes(&mut server, 0, 5);
    assert!(few <= 5 * 26, "{few} writes for 5 Deployments and Services");
    assert!(
        writes(&mut server, 5, 10) <= few,
        "the next ones cost no more than the first"
    );
}
