//! The scenarios: each workload, healthy and failing, its networking and storage, and deletion.

mod budgets;
mod ends;
mod jobs;
mod network;
mod storage;
mod workloads;

use super::{Scenario, Step};
use serde_json::{Value, json};

/// Every scenario, in a fixed order.
pub fn all() -> Vec<Scenario> {
    [
        workloads::all(),
        jobs::all(),
        network::all(),
        storage::all(),
        budgets::all(),
        ends::all(),
    ]
    .concat()
}

const IMAGE: &str = "registry.example/app:1";
const OTHER: &str = "registry.example/app:2";
const BAD: &str = "registry.example/app!:1";

fn scenario(name: &'static str, steps: Vec<Step>) -> Scenario {
    Scenario { name, steps }
}

fn until(target: &str, field: &'static str, want: impl Into<Value>) -> Step {
    Step::Until(target.to_owned(), field, want.into())
}

fn gone(target: &str) -> Step {
    Step::Until(target.to_owned(), "/metadata/name", Value::Null)
}

fn patch(target: &str, patch: Value) -> Step {
    Step::Patch(target.to_owned(), patch)
}

fn create(object: Value) -> Step {
    Step::Create(object)
}

fn rest() -> Step {
    Step::Note("end")
}

fn delete(target: &str, policy: &str) -> Step {
    Step::Delete(
        target.to_owned(),
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}),
    )
}

/// `base` merged with `more`: maps are merged recursively, anything else is replaced.
fn with(mut base: Value, more: Value) -> Value {
    merge(&mut base, more);
    base
}

fn merge(base: &mut Value, more: Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more,
    }
}

/// A pod template with one container.
fn template(image: &str, container: Value) -> Value {
    json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [with(json!({"name": "c", "image": image}), container)]}})
}

fn never_ready() -> Value {
    json!({"readinessProbe": {"httpGet": {"path": "/does-not-exist", "port": 80}}})
}

fn command(words: &[&str]) -> Value {
    json!({"command": words})
}

/// A workload `w` of a kind of `apps/v1` that selects `app=w`.
fn workload(kind: &str, template: Value, spec: Value) -> Value {
    let base = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": template}});
    with(base, json!({"spec": spec}))
}

fn pod(name: &str, spec: Value) -> Value {
    let base = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}});
    with(base, json!({"spec": spec}))
}

fn service(name: &str, spec: Value) -> Value {
    let base = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"of": "w"}}, "spec": {"selector": {"app": "w"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
    with(base, json!({"spec": spec}))
}

fn images(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}
