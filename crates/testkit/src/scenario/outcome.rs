//! The result of a scenario: every object in its namespace, without what differs from run to run,
//! one line per object.
//!
//! Main type: [`Outcome`]. Times, addresses, uids and generated names are replaced by placeholders;
//! equal lines are then counted.

use super::{KINDS, is_cluster_scoped, path};
use crate::Api;
use regex::Regex;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt::Write as _, sync::LazyLock};

/// The recorded states, and the steps that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    lines: Vec<String>,
}

impl Outcome {
    pub(super) fn note(&mut self, name: &str, state: Vec<String>) {
        self.lines.push(format!("# {name}"));
        self.lines.extend(state);
    }

    pub(super) fn trouble(&mut self, text: &str) {
        self.lines.push(format!("! {text}"));
    }

    /// One line an object.
    pub fn text(&self) -> String {
        self.lines.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        })
    }
}

/// The lines that only one of two outcomes has: `-` for the first, `+` for the second. Empty if
/// they agree.
pub fn difference(first: &str, second: &str) -> Vec<String> {
    let parts = |text: &str| {
        let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("# ") {
                title.clone_into(&mut name);
            } else {
                parts.entry(name.clone()).or_default().push(line.to_owned());
            }
        }
        parts
    };
    let (a, b) = (parts(first), parts(second));
    let mut out = Vec::new();
    for name in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
        let empty = Vec::new();
        let (a, b) = (a.get(name).unwrap_or(&empty), b.get(name).unwrap_or(&empty));
        out.extend(
            a.iter()
                .filter(|l| !b.contains(l))
                .map(|l| format!("- [{name}] {l}")),
        );
        out.extend(
            b.iter()
                .filter(|l| !a.contains(l))
                .map(|l| format!("+ [{name}] {l}")),
        );
    }
    out
}

/// The current state of a scenario's objects.
pub(super) fn state(api: &Api, namespace: &str) -> Vec<String> {
    let mut objects = Vec::new();
    for (plural, _) in KINDS {
        let mut list = api.list(&path(namespace, plural));
        if is_cluster_scoped(plural) {
            list.retain(|o| {
                o["metadata"]["name"]
                    .as_str()
                    .is_some_and(|n| n.starts_with(namespace))
                    || o["spec"]["claimRef"]["namespace"] == namespace
            });
        }
        objects.extend(list.into_iter().map(|o| (*plural, o)));
    }
    let names = names(&objects, namespace);
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (plural, object) in &objects {
        let Some((line, counts)) = line(plural, object, &names) else {
            continue;
        };
        let count = lines.entry(line).or_default();
        *count = if counts { *count + 1 } else { 1 };
    }
    lines
        .into_iter()
        .map(|(line, count)| {
            if count == 1 {
                line
            } else {
                format!("{line} (×{count})")
            }
        })
        .collect()
}

fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// Generated names and hashes, with their placeholders; long ones first.
fn names(objects: &[(&str, Value)], namespace: &str) -> Vec<(String, String)> {
    let mut names = vec![(namespace.to_owned(), "$NS".to_owned())];
    for (plural, object) in objects {
        let (name, prefix) = (
            word(object, "/metadata/name"),
            word(object, "/metadata/generateName"),
        );
        let random = |s: &str| {
            s.len() == 5
                && s.bytes()
                    .all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b))
        };
        if !prefix.is_empty() && name.strip_prefix(prefix).is_some_and(random) {
            names.push((name.to_owned(), format!("{prefix}*")));
        }
        match *plural {
            "replicasets" => {
                let hash = word(object, "/metadata/labels/pod-template-hash");
                let revision =
                    object["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
                        .as_str()
                        .unwrap_or("?");
                names.push((hash.to_owned(), format!("{{rs {revision}}}")));
            }
            "controllerrevisions" => {
                let hash = name.rsplit('-').next().unwrap_or(name);
                names.push((hash.to_owned(), format!("{{rev {}}}", object["revision"])));
            }
            _ => {}
        }
    }
    names.retain(|(from, _)| !from.is_empty());
    names.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    names.dedup();
    names
}

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a valid expression")
}

/// Values that differ from run to run, wherever they occur.
static VOLATILE: LazyLock<[(Regex, &'static str); 9]> = LazyLock::new(|| {
    [
        (regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
        (
            regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            "<uid>",
        ),
        (regex(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"), "<ip>"),
        (regex(r"-2\d{7}\b"), "-<minute>"),
        (regex(r"\bnode-[12]\b"), "<node>"),
        (regex(r"\(combined from similar events\): "), ""),
        // How many steps a rollout takes depends on which pods become ready together.
        (
            regex(r"(Scaled (?:up|down) replica set .+?) from \d+ to \d+"),
            "$1",
        ),
        // Hashes and generated names of deleted objects.
        (
            regex(r"\bw-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b"),
            "w-{rs gone}",
        ),
        (
            regex(r"(\bw(?:-\d+|-\{rs [^}]+\}|-<minute>)?)-[bcdfghjklmnpqrstvwxz2456789]{5}\b"),
            "$1-*",
        ),
    ]
});

fn plain(text: &str, names: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in names {
        text = text.replace(from.as_str(), to);
    }
    for (pattern, to) in VOLATILE.iter() {
        text = pattern.replace_all(&text, *to).into_owned();
    }
    text
}

/// Fields that depend on the timing of writes.
const UNTIMED: &[&str] = &[
    "endpoints.kubernetes.io/last-change-trigger-time",
    "resourceVersion",
];

/// A value with sorted keys, without nulls and empty maps and lists; lists whose order is
/// irrelevant are sorted.
fn tidy(value: &Value, names: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => Value::String(plain(text, names)),
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(|v| tidy(v, names)).collect();
            if list.iter().all(Value::is_object) {
                list.sort_by_key(Value::to_string);
            }
            Value::Array(list)
        }
        Value::Object(map) => {
            let entries: BTreeMap<String, Value> = map
                .iter()
                .filter(|(k, _)| !UNTIMED.contains(&k.as_str()))
                .map(|(k, v)| (plain(k, names), tidy(v, names)))
                .collect();
            let says = |v: &Value| {
                !(v.is_null()
                    || v.as_object().is_some_and(Map::is_empty)
                    || v.as_array().is_some_and(Vec::is_empty))
            };
            Value::Object(entries.into_iter().filter(|(_, v)| says(v)).collect())
        }
        other => other.clone(),
    }
}

/// An object as a line, and whether equal ones are counted.
fn line(plural: &str, object: &Value, names: &[(String, String)]) -> Option<(String, bool)> {
    if plural == "events" {
        return event(object, names).map(|e| (e, false));
    }
    let name = plain(word(object, "/metadata/name"), names);
    let mut kept = Map::new();
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ] {
        metadata.remove(field);
    }
    if plural == "nodes" {
        metadata.remove("labels");
        metadata.remove("annotations");
    }
    kept.insert("metadata".into(), Value::Object(metadata));
    for field in SPEC
        .iter()
        .filter(|(p, _)| *p == plural)
        .flat_map(|(_, fields)| *fields)
    {
        if let Some(mut value) = object.pointer(field).cloned() {
            if let Some(reference) = value.as_object_mut() {
                reference.remove("resourceVersion");
            }
            kept.insert((*field).to_owned(), value);
        }
    }
    for field in [
        "status",
        "subsets",
        "endpoints",
        "ports",
        "addressType",
        "revision",
    ] {
        if let Some(value) = object.get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    if matches!(plural, "replicasets" | "endpointslices") {
        without_generation(&mut kept);
    }
    if plural == "pods" {
        without_kubelet(&mut kept);
    } else if plural == "nodes" {
        kept.retain(|k, _| k != "status");
        let conditions = object
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let short =
            conditions.map(|c| (word(c, "/type").to_owned(), Value::from(word(c, "/status"))));
        kept.insert("conditions".into(), Value::Object(short.collect()));
    }
    Some((
        format!("{plural} {name} {}", tidy(&Value::Object(kept), names)),
        true,
    ))
}

/// The spec fields that controllers write.
const SPEC: &[(&str, &[&str])] = &[
    ("namespaces", &["/spec"]),
    ("nodes", &["/spec/taints", "/spec/unschedulable"]),
    (
        "pods",
        &[
            "/spec/nodeName",
            "/spec/hostname",
            "/spec/subdomain",
            "/spec/restartPolicy",
        ],
    ),
    (
        "replicasets",
        &[
            "/spec/replicas",
            "/spec/selector",
            "/spec/template/metadata",
        ],
    ),
    ("replicationcontrollers", &["/spec/replicas"]),
    ("deployments", &["/spec/replicas"]),
    ("statefulsets", &["/spec/replicas"]),
    (
        "jobs",
        &[
            "/spec/parallelism",
            "/spec/completions",
            "/spec/suspend",
            "/spec/selector",
            "/spec/template/metadata",
        ],
    ),
    ("persistentvolumeclaims", &["/spec"]),
    (
        "persistentvolumes",
        &[
            "/spec/claimRef",
            "/spec/persistentVolumeReclaimPolicy",
            "/spec/storageClassName",
            "/spec/accessModes",
        ],
    ),
];

/// A ReplicaSet is resized for every step of a rollout, a slice is written whenever pods change: it
/// only matters that the last change was observed.
fn without_generation(kept: &mut Map<String, Value>) {
    let generation = kept
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .and_then(|m| m.remove("generation"));
    if let Some(Value::Object(status)) = kept.get_mut("status")
        && status.get("observedGeneration") == generation.as_ref()
    {
        status.remove("observedGeneration");
    }
}

/// One side has no kubelets: what only they write is ignored.
fn without_kubelet(kept: &mut Map<String, Value>) {
    let Some(Value::Object(status)) = kept.get_mut("status") else {
        return;
    };
    status.remove("observedGeneration");
    for field in ["hostIPs", "podIPs", "startTime", "hostIP", "podIP"] {
        status.remove(field);
    }
    if let Some(Value::Array(list)) = status.get_mut("conditions") {
        list.retain(|c| c["type"] != "PodReadyToStartContainers");
        for condition in list.iter_mut().filter_map(Value::as_object_mut) {
            condition.remove("observedGeneration");
            condition.remove("lastProbeTime");
            if condition
                .get("reason")
                .is_some_and(|r| r == "ContainersNotReady")
            {
                condition.remove("message");
            }
        }
    }
    for field in ["containerStatuses", "initContainerStatuses"] {
        let Some(Value::Array(list)) = status.get_mut(field) else {
            continue;
        };
        for container in list.iter_mut().filter_map(Value::as_object_mut) {
            let ended = container
                .get("state")
                .is_some_and(|s| s.get("terminated").is_some());
            if ended {
                container.remove("started");
            }
            for field in [
                "containerID",
                "imageID",
                "resources",
                "allocatedResources",
                "user",
                "volumeMounts",
            ] {
                container.remove(field);
            }
            for state in ["/state/terminated", "/lastState/terminated"] {
                let mut at = Some(&mut *container);
                for part in state[1..].split('/') {
                    at = at
                        .and_then(|m| m.get_mut(part))
                        .and_then(Value::as_object_mut);
                }
                if let Some(ended) = at {
                    ended.remove("containerID");
                }
            }
        }
    }
}

/// An event: who reports what about which object. The count is ignored, and so are events of
/// kubelets.
fn event(event: &Value, names: &[(String, String)]) -> Option<String> {
    let who = [
        word(event, "/source/component"),
        word(event, "/reportingComponent"),
    ]
    .into_iter()
    .find(|w| !w.is_empty())
    .unwrap_or("");
    // The allocator's repair loop runs every three minutes, whatever happens.
    if matches!(who, "kubelet" | "kwok" | "ipallocator-repair-controller") {
        return None;
    }
    let message = word(event, "/message");
    // Reported or not, depending on how a pod's deletion and the scheduler, or two controllers
    // writing the same object, interleave: the one that lost writes again, and the result is in the
    // objects.
    let lost_a_race = message.contains("Operation cannot be fulfilled on ")
        && message.contains("the object has been modified; please apply");
    if message.starts_with("skip schedule deleting pod") || lost_a_race {
        return None;
    }
    let about = format!(
        "{} {}",
        word(event, "/involvedObject/kind"),
        word(event, "/involvedObject/name")
    );
    let text = format!(
        "{about} {} {} {who}: {}",
        word(event, "/type"),
        word(event, "/reason"),
        message
    );
    Some(format!("event {}", plain(&text, names)))
}
