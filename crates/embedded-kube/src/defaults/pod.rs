//! Defaults of pods and pod templates.

use super::{each, image, map_at, set, set_text, volumes};
use crate::validation::{
    Amounts, aggregate, allows_overcommit, is_huge_pages, is_supported_of_pods,
};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// The annotations in which older clients put other containers of a pod.
const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

fn forget_annotations(of: &mut Map<String, Value>) {
    let annotations = map_at(of, "metadata").and_then(|metadata| map_at(metadata, "annotations"));
    annotations.into_iter().for_each(|map| {
        OLD_ANNOTATIONS
            .iter()
            .for_each(|key| drop(map.remove(*key)))
    });
}

/// Defaults of a pod: those of a template, and a few more.
pub fn pod(object: &mut Object) {
    forget_annotations(&mut object.0);
    let spec = map_entry(&mut object.0, "spec");
    pod_spec(spec);
    set(spec, "enableServiceLinks", true);
    if spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|n| n < 0)
    {
        spec.insert("terminationGracePeriodSeconds".into(), 1.into());
    }
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            requests_from_limits(container);
            for port in each(container, "ports").filter(|_| host_network) {
                if let Some(number) = port.get("containerPort").cloned() {
                    set(port, "hostPort", number);
                }
            }
        }
    }
    own_resources(spec);
    map_at(&mut object.0, "status")
        .into_iter()
        .for_each(addresses);
}

/// Completes pod-level resources that are partly set: huge pages and requests from the containers,
/// or requests from the limits.
fn own_resources(spec: &mut Map<String, Value>) {
    if !spec.contains_key("resources") {
        return;
    }
    let whole = Value::Object(spec.clone());
    let Some(own) = map_at(spec, "resources") else {
        return;
    };
    let said = |own: &Map<String, Value>, kind: &str| {
        own.get(kind)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (mut limits, mut requests) = (said(own, "limits"), said(own, "requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let of_containers = |kind: &str, counts: fn(&str) -> bool| {
        let all: Amounts = aggregate(&whole, kind);
        all.into_iter()
            .filter(move |(name, _)| is_supported_of_pods(name) && counts(name))
    };
    for (name, amount) in
        of_containers("limits", is_huge_pages).filter(|(name, _)| !requests.contains_key(name))
    {
        limits.entry(name).or_insert(amount.to_string().into());
    }
    if limits.is_empty() {
        return;
    }
    for (name, amount) in of_containers("requests", allows_overcommit) {
        requests.entry(name).or_insert(amount.to_string().into());
    }
    for (name, limit) in limits.iter().filter(|(name, _)| is_supported_of_pods(name)) {
        requests.entry(name.clone()).or_insert(limit.clone());
    }
    for (kind, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            own.insert(kind.into(), amounts.into());
        }
    }
}

/// The single address that older clients know is the first of the list.
fn addresses(status: &mut Map<String, Value>) {
    let first = status
        .get("podIPs")
        .and_then(|list| list.get(0))
        .and_then(|first| first.get("ip"))
        .cloned();
    let one = status.get("podIP").filter(|ip| **ip != "").cloned();
    match (one, first) {
        (Some(one), first) if first.as_ref() != Some(&one) => {
            drop(status.insert("podIPs".into(), json!([{"ip": one}])))
        }
        (None, Some(first)) => drop(status.insert("podIP".into(), first)),
        _ => {}
    }
}

fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(resources) = map_at(container, "resources") else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = map_entry(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// `metadata` and `spec` of a template.
pub fn template(template: &mut Map<String, Value>) {
    forget_annotations(template);
    pod_spec(map_entry(template, "spec"));
}

pub fn pod_spec(spec: &mut Map<String, Value>) {
    set_text(spec, "restartPolicy", "Always");
    set_text(spec, "dnsPolicy", "ClusterFirst");
    set_text(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "securityContext", json!({}));
    // Two names of one field; the newer one wins.
    let account = ["serviceAccountName", "serviceAccount"]
        .into_iter()
        .find_map(|key| spec.get(key).filter(|v| v.as_str() != Some("")));
    if let Some(account) = account.filter(|a| a.is_string()).cloned() {
        spec.insert("serviceAccountName".into(), account.clone());
        spec.insert("serviceAccount".into(), account);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

fn container(c: &mut Map<String, Value>) {
    set_text(c, "terminationMessagePath", "/dev/termination-log");
    set_text(c, "terminationMessagePolicy", "File");
    let image = c.get("image").and_then(Value::as_str).unwrap_or("");
    let policy = image::pull_policy(image);
    set_text(c, "imagePullPolicy", policy);
    each(c, "ports").for_each(|port| set_text(port, "protocol", "TCP"));
    for variable in each(c, "env") {
        let Some(from) = map_at(variable, "valueFrom") else {
            continue;
        };
        map_at(from, "fieldRef")
            .into_iter()
            .for_each(|field| set_text(field, "apiVersion", "v1"));
        map_at(from, "fileKeyRef")
            .into_iter()
            .for_each(|key| set(key, "optional", false));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = map_at(c, probe) {
            for (key, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                if probe.get(key) == Some(&0.into()) {
                    probe.remove(key);
                }
                set(probe, key, value);
            }
            handler(probe);
        }
    }
    if let Some(lifecycle) = map_at(c, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = map_at(lifecycle, hook) {
                handler(hook);
            }
        }
    }
}

fn handler(of: &mut Map<String, Value>) {
    if let Some(get) = map_at(of, "httpGet") {
        set_text(get, "path", "/");
        set_text(get, "scheme", "HTTP");
    }
    if let Some(grpc) = map_at(of, "grpc") {
        set(grpc, "service", "");
    }
}

fn volume(v: &mut Map<String, Value>) {
    if v.len() == 1 && v.contains_key("name") {
        v.insert("emptyDir".into(), json!({}));
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = map_at(v, source) {
            set(source, "defaultMode", 0o644);
        }
    }
    if let Some(downward) = map_at(v, "downwardAPI") {
        each(downward, "items")
            .filter_map(|i| map_at(i, "fieldRef"))
            .for_each(|f| set_text(f, "apiVersion", "v1"));
    }
    if let Some(projected) = map_at(v, "projected") {
        for source in each(projected, "sources") {
            if let Some(token) = map_at(source, "serviceAccountToken") {
                set(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = map_at(source, "downwardAPI") {
                each(downward, "items")
                    .filter_map(|i| map_at(i, "fieldRef"))
                    .for_each(|f| set_text(f, "apiVersion", "v1"));
            }
        }
    }
    volumes::source(v);
    if let Some(source) = map_at(v, "image") {
        let policy = image::pull_policy(
            source
                .get("reference")
                .and_then(Value::as_str)
                .unwrap_or(""),
        );
        set_text(source, "pullPolicy", policy);
    }
    let claim = map_at(v, "ephemeral")
        .and_then(|e| map_at(e, "volumeClaimTemplate"))
        .map(|t| map_entry(t, "spec"));
    if let Some(claim) = claim {
        set(claim, "volumeMode", "Filesystem");
    }
}
