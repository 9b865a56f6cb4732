//! Scenarios of the simulated cluster on an in-memory store, in virtual time: no test sleeps.

mod fake;
mod pods;
mod registry;
mod services;
mod workloads;

use super::{
    SimOptions,
    engine::Engine,
    fields,
    kind::{Key, Kind},
    store::{DeleteRequest, Propagation, SimStore},
};
use fake::FakeStore;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_apimachinery::Object;

/// A cluster whose time jumps from one due action to the next.
struct Cluster {
    engine: Engine<FakeStore>,
    store: FakeStore,
}

impl Cluster {
    fn new() -> Self {
        let store = FakeStore::new("2026-03-01T10:00:00Z".parse().expect("a time"));
        let mut engine = Engine::new(
            store.clone(),
            SimOptions {
                heartbeat: Duration::ZERO,
                programs: vec!["elsewhere".to_owned()],
                ..SimOptions::default()
            },
        );
        engine.start(store.now());
        let mut cluster = Self { engine, store };
        cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "d"}}));
        cluster.settle();
        cluster
    }

    /// Creates an object, in namespace `d` unless it has another.
    fn apply(&mut self, value: Value) -> Arc<Object> {
        let mut object = Object::from_value(value).expect("a map");
        let cluster_wide = matches!(object.kind(), "Namespace" | "Node" | "PersistentVolume");
        if object.namespace().is_empty() && !cluster_wide {
            object.set_namespace("d");
        }
        self.store.create(object).expect("valid")
    }

    /// Changes an object as a user would.
    fn edit(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Object)) {
        let mut object = Object::clone(&self.get(kind, name));
        change(&mut object);
        self.store.update(object).expect("valid");
    }

    fn delete(&mut self, kind: Kind, name: &str) {
        let request = DeleteRequest {
            uid: None,
            grace_seconds: None,
            propagation: Propagation::Background,
        };
        self.store
            .delete(kind, "d", name, request)
            .expect("it exists");
    }

    /// Runs everything that happens without time passing.
    fn settle(&mut self) {
        let mut left = 10_000;
        while self.engine.step(self.store.now(), 1) {
            left -= 1;
            assert!(left > 0, "the controllers never come to rest");
        }
    }

    /// Lets some seconds pass.
    fn pass(&mut self, seconds: f64) {
        let end = self.store.now() + SignedDuration::from_secs_f64(seconds);
        self.settle();
        while let Some(at) = self.engine.next_wake().filter(|at| *at <= end) {
            self.store.set_time(at);
            self.settle();
        }
        self.store.set_time(end);
        self.settle();
    }

    fn find(&self, kind: Kind, name: &str) -> Option<Arc<Object>> {
        let namespace = if matches!(kind, Kind::Node | Kind::PersistentVolume | Kind::Namespace) {
            ""
        } else {
            "d"
        };
        self.store.get(kind, namespace, name).expect("readable")
    }

    fn get(&self, kind: Kind, name: &str) -> Arc<Object> {
        self.find(kind, name)
            .unwrap_or_else(|| panic!("{} {name} is missing", kind.name()))
    }

    fn all(&self, kind: Kind) -> Vec<Arc<Object>> {
        let mut list = self.store.list(kind).expect("readable");
        list.sort_by_key(|o| Key::of(o));
        list
    }

    /// `status` of a condition and its reason.
    fn condition(&self, kind: Kind, name: &str, condition: &str) -> (String, String) {
        let object = self.get(kind, name);
        let found = fields::condition(&object, condition).unwrap_or(&Value::Null);
        (
            fields::text(found, "status").to_owned(),
            fields::text(found, "reason").to_owned(),
        )
    }

    /// The reasons of the events about an object, in the order they were written.
    fn events(&self, name: &str) -> Vec<String> {
        let about = |e: &&Arc<Object>| e.str_at("/involvedObject/name") == name;
        let mut list = self.store.list(Kind::Event).expect("readable");
        list.sort_by_key(|e| e.resource_version().parse::<u64>().unwrap_or(0));
        list.iter()
            .filter(about)
            .map(|e| e.str_at("/reason").to_owned())
            .collect()
    }
}

fn counts(object: &Object, names: &[&str]) -> Vec<i64> {
    names
        .iter()
        .map(|n| fields::status_i64(object, n))
        .collect()
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "web", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}]},
    })
}

fn workload(kind: &str, replicas: i64, more: Value) -> Value {
    let mut spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("nginx:1")});
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
}

#[test]
fn a_cluster_starts_with_ready_nodes_and_rests() {
    let mut cluster = Cluster::new();
    cluster.pass(1.0);
    for name in ["node-1", "node-2"] {
        assert_eq!(cluster.condition(Kind::Node, name, "Ready").0, "True");
    }
    assert!(cluster.find(Kind::ServiceAccount, "default").is_some());
    assert!(cluster.find(Kind::ConfigMap, "kube-root-ca.crt").is_some());
    assert_eq!(
        cluster.engine.next_wake(),
        None,
        "an idle cluster waits for nothing"
    );
    let writes = cluster.store.writes();
    for i in 0..100 {
        cluster.apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")}}),
        );
    }
    cluster.pass(3600.0);
    assert_eq!(
        cluster.store.writes(),
        writes + 100,
        "ConfigMaps cause no work"
    );
    assert_eq!(
        cluster.engine.known(),
        8,
        "and are not kept: two nodes with leases, a class, a namespace and its two objects are known"
    );
}
