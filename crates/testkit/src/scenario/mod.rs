//! Scenarios for a cluster: operations, and the states in which it comes to rest, so that two
//! clusters can be compared.
//!
//! Main types: [`Scenario`] (steps, in a namespace of their own), [`Cluster`] (where they are
//! performed) and [`Outcome`]. Uses only the Kubernetes API. The cluster decides how time passes:
//! on a real one a step waits, on a simulated one its clock is advanced.

mod outcome;
mod table;

pub use outcome::{Outcome, difference};
pub use table::all;

use crate::Api;
use serde_json::{Value, json};
use std::time::Duration;

/// A cluster with its clock.
pub trait Cluster {
    fn api(&self) -> &Api;

    /// Returns when this much time has passed in the cluster.
    fn pass(&self, time: Duration);
}

/// One operation. A target is `plural/name`; `$NS` in a text stands for the scenario's namespace.
#[derive(Clone, Debug)]
pub enum Step {
    /// Creates an object.
    Create(Value),
    /// Applies a JSON merge patch.
    Patch(String, Value),
    /// Deletes, with this propagation policy and grace.
    Delete(String, Value),
    /// Evicts a pod, whatever the response; the response's status is part of the outcome.
    Evict(String),
    /// Waits until a field (a JSON pointer) has a value; `null` stands for a missing field or
    /// object.
    Until(String, &'static str, Value),
    /// Lets seconds pass.
    Pass(u64),
    /// Waits until nothing changes any more, and records the state under this name.
    Note(&'static str),
}

/// A name and its steps.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub steps: Vec<Step>,
}

impl Scenario {
    /// Whether it changes the nodes, which affects others.
    pub fn is_alone(&self) -> bool {
        self.name.starts_with("node-")
    }
}

/// How long a step may take, in the cluster's time.
const LIMIT: Duration = Duration::from_secs(100);
const PAUSE: Duration = Duration::from_millis(200);
/// A state counts as settled if nothing changes for this long.
const QUIET: Duration = Duration::from_millis(4_400);

/// The kinds that are recorded: plural name, group and version.
pub(crate) const KINDS: &[(&str, &str)] = &[
    ("namespaces", "v1"),
    ("nodes", "v1"),
    ("persistentvolumes", "v1"),
    ("storageclasses", "storage.k8s.io/v1"),
    ("serviceaccounts", "v1"),
    ("configmaps", "v1"),
    ("pods", "v1"),
    ("replicationcontrollers", "v1"),
    ("replicasets", "apps/v1"),
    ("deployments", "apps/v1"),
    ("statefulsets", "apps/v1"),
    ("daemonsets", "apps/v1"),
    ("controllerrevisions", "apps/v1"),
    ("jobs", "batch/v1"),
    ("cronjobs", "batch/v1"),
    ("services", "v1"),
    ("endpoints", "v1"),
    ("endpointslices", "discovery.k8s.io/v1"),
    ("ingresses", "networking.k8s.io/v1"),
    ("persistentvolumeclaims", "v1"),
    ("resourcequotas", "v1"),
    ("limitranges", "v1"),
    ("horizontalpodautoscalers", "autoscaling/v2"),
    ("poddisruptionbudgets", "policy/v1"),
    ("events", "v1"),
];

fn is_cluster_scoped(plural: &str) -> bool {
    matches!(
        plural,
        "namespaces" | "nodes" | "persistentvolumes" | "storageclasses"
    )
}

/// The path of `plural/name`, or of a collection `plural`.
pub(crate) fn path(namespace: &str, target: &str) -> String {
    let (plural, rest) = target
        .split_once('/')
        .map_or((target, String::new()), |(p, n)| (p, format!("/{n}")));
    let version = KINDS
        .iter()
        .find(|(p, _)| *p == plural)
        .unwrap_or_else(|| panic!("no scenario knows {plural}"))
        .1;
    let root = if version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let scope = if is_cluster_scoped(plural) {
        String::new()
    } else {
        format!("/namespaces/{namespace}")
    };
    format!("{root}/{version}{scope}/{plural}{rest}")
}

fn plural_of(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    match kind.as_str() {
        "endpoints" => kind,
        "ingress" => "ingresses".into(),
        "storageclass" => "storageclasses".into(),
        _ => format!("{kind}s"),
    }
}

/// The value with `$NS` replaced everywhere.
fn filled(value: &Value, namespace: &str) -> Value {
    serde_json::from_str(&value.to_string().replace("$NS", namespace))
        .expect("a name does not break JSON")
}

/// Runs a scenario in a new namespace and returns the recorded states. The namespace stays.
pub fn run(cluster: &dyn Cluster, scenario: &Scenario, namespace: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let api = cluster.api();
    api.namespace(namespace);
    // Its service account is created a moment later, and no pod can be created before.
    until(
        cluster,
        namespace,
        "serviceaccounts/default",
        "/metadata/name",
        &json!("default"),
    );
    for (number, step) in scenario.steps.iter().enumerate() {
        if let Err(why) = take(cluster, step, namespace, &mut outcome) {
            outcome.trouble(&format!(
                "step {}: {}",
                number + 1,
                why.replace(namespace, "$NS")
            ));
        }
    }
    outcome
}

fn take(
    cluster: &dyn Cluster,
    step: &Step,
    namespace: &str,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let api = cluster.api();
    let send = |method: &str, path: &str, media: &str, body: &Value| {
        let answer = api
            .send(method, path, media, Some(&filled(body, namespace)))
            .map_err(|e| format!("{method} {path}: {}", e.0))?;
        if answer.is_success() {
            Ok(())
        } else {
            Err(format!(
                "{method}: {} {}",
                answer.status,
                answer.body["message"].as_str().unwrap_or("")
            ))
        }
    };
    let named = |target: &str| path(namespace, &target.replace("$NS", namespace));
    match step {
        Step::Create(object) => send(
            "POST",
            &named(&plural_of(object)),
            "application/json",
            object,
        ),
        Step::Patch(target, patch) => send(
            "PATCH",
            &named(target),
            "application/merge-patch+json",
            patch,
        ),
        Step::Delete(target, options) => {
            send("DELETE", &named(target), "application/json", options)
        }
        Step::Evict(target) => {
            let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": target.rsplit('/').next(), "namespace": "$NS"}});
            send(
                "POST",
                &format!("{}/eviction", named(target)),
                "application/json",
                &body,
            )
        }
        Step::Until(target, field, want) => {
            let target = target.replace("$NS", namespace);
            if until(cluster, namespace, &target, field, want) {
                Ok(())
            } else {
                Err(format!("{target} {field} did not become {want}"))
            }
        }
        Step::Pass(seconds) => {
            cluster.pass(Duration::from_secs(*seconds));
            Ok(())
        }
        Step::Note(name) => {
            outcome.note(name, settled(cluster, namespace));
            Ok(())
        }
    }
}

fn until(cluster: &dyn Cluster, namespace: &str, target: &str, field: &str, want: &Value) -> bool {
    let path = path(namespace, target);
    let mut waited = Duration::ZERO;
    loop {
        let found = cluster.api().find(&path).unwrap_or(Value::Null);
        if found.pointer(field).unwrap_or(&Value::Null) == want {
            return true;
        }
        if waited >= LIMIT {
            return false;
        }
        cluster.pass(PAUSE);
        waited += PAUSE;
    }
}

/// The state once nothing has changed for a while.
fn settled(cluster: &dyn Cluster, namespace: &str) -> Vec<String> {
    let mut waited = Duration::ZERO;
    let mut state = outcome::state(cluster.api(), namespace);
    loop {
        cluster.pass(QUIET);
        waited += QUIET;
        let next = outcome::state(cluster.api(), namespace);
        if next == state || waited >= LIMIT {
            return next;
        }
        state = next;
    }
}
