//! Defaults of pods and pod templates.

use super::{each, map_at, set, set_text};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// A pod: what a template gets, and a little more.
pub fn pod(object: &mut Object) {
    let spec = map_entry(&mut object.0, "spec");
    pod_spec(spec);
    set(spec, "enableServiceLinks", true);
    for list in ["containers", "initContainers"] {
        each(spec, list).for_each(requests_from_limits);
    }
}

/// What admission adds to a new pod: its service account with a token, priority and tolerations.
pub fn admit_pod(object: &mut Object) {
    let spec = map_entry(&mut object.0, "spec");
    set_text(spec, "serviceAccountName", "default");
    mount_token(spec);
    let account = spec["serviceAccountName"].clone();
    set(spec, "serviceAccount", account);
    set(spec, "priority", 0);
    set_text(spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerate_node_problems(spec);
}

/// The volume through which a pod would reach the API.
fn mount_token(spec: &mut Map<String, Value>) {
    const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    if spec.get("automountServiceAccountToken") == Some(&Value::Bool(false)) {
        return;
    }
    let name = format!("kube-api-access-{}", crate::registry::meta::random_suffix());
    let mut mounted = false;
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if !mounts.iter().any(|m| m["mountPath"] == PATH) {
                mounts.push(json!({"name": name, "mountPath": PATH, "readOnly": true}));
                mounted = true;
            }
        }
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let (true, Some(volumes)) = (mounted, volumes.as_array_mut()) {
        let field = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
        let sources = json!([
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ]);
        volumes.push(json!({"name": name, "projected": {"defaultMode": 0o644, "sources": sources}}));
    }
}

/// Five minutes on a node that is not ready or unreachable.
fn tolerate_node_problems(spec: &mut Map<String, Value>) {
    let slot = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(list) = slot.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |t: &Value| {
            let (of, effect) = (t["key"].as_str().unwrap_or(""), t["effect"].as_str().unwrap_or(""));
            (of == key || of.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        };
        if !list.iter().any(covers) {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(resources) = map_at(container, "resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = map_entry(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// `metadata` and `spec` of a template.
pub fn template(template: &mut Map<String, Value>) {
    pod_spec(map_entry(template, "spec"));
}

pub fn pod_spec(spec: &mut Map<String, Value>) {
    set_text(spec, "restartPolicy", "Always");
    set_text(spec, "dnsPolicy", "ClusterFirst");
    set_text(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "securityContext", json!({}));
    // Two names of one field; the newer one wins.
    let account = ["serviceAccountName", "serviceAccount"].into_iter().find_map(|key| spec.get(key).filter(|v| v.as_str() != Some("")));
    if let Some(account) = account.filter(|a| a.is_string()).cloned() {
        spec.insert("serviceAccountName".into(), account.clone());
        spec.insert("serviceAccount".into(), account);
    }
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(|c| container(c, host_network));
    }
    each(spec, "volumes").for_each(volume);
    for spread in each(spec, "topologySpreadConstraints") {
        set_text(spread, "nodeAffinityPolicy", "Honor");
        set_text(spread, "nodeTaintsPolicy", "Ignore");
    }
}

fn container(c: &mut Map<String, Value>, host_network: bool) {
    set_text(c, "terminationMessagePath", "/dev/termination-log");
    set_text(c, "terminationMessagePolicy", "File");
    let image = c.get("image").and_then(Value::as_str).unwrap_or("");
    let policy = if pulls_always(image) { "Always" } else { "IfNotPresent" };
    set_text(c, "imagePullPolicy", policy);
    for port in each(c, "ports") {
        set_text(port, "protocol", "TCP");
        if let (true, Some(number)) = (host_network, port.get("containerPort").cloned()) {
            set(port, "hostPort", number);
        }
    }
    for variable in each(c, "env") {
        if let Some(field) = map_at(variable, "valueFrom").and_then(|v| map_at(v, "fieldRef")) {
            set_text(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = map_at(c, probe) {
            for (key, value) in [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)] {
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

/// Without a tag, or with the tag `latest`, an image is pulled every time.
fn pulls_always(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
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
        each(downward, "items").filter_map(|i| map_at(i, "fieldRef")).for_each(|f| set_text(f, "apiVersion", "v1"));
    }
    if let Some(projected) = map_at(v, "projected") {
        for source in each(projected, "sources") {
            if let Some(token) = map_at(source, "serviceAccountToken") {
                set(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = map_at(source, "downwardAPI") {
                each(downward, "items").filter_map(|i| map_at(i, "fieldRef")).for_each(|f| set_text(f, "apiVersion", "v1"));
            }
        }
    }
    if let Some(host) = map_at(v, "hostPath") {
        set(host, "type", "");
    }
}

/// How a pod is treated when its node runs out of memory.
pub fn quality_of_service(pod: &Object) -> &'static str {
    let containers = ["/spec/containers", "/spec/initContainers"];
    let all: Vec<&Value> = containers.iter().filter_map(|p| pod.pointer(p)?.as_array()).flatten().collect();
    let amounts = |c: &Value, kind: &str| c.pointer(&format!("/resources/{kind}")).and_then(Value::as_object).cloned().unwrap_or_default();
    let wanted = |m: &Map<String, Value>| m.keys().any(|k| k == "cpu" || k == "memory");
    if !all.iter().any(|c| wanted(&amounts(c, "limits")) || wanted(&amounts(c, "requests"))) {
        return "BestEffort";
    }
    let guaranteed = all.iter().all(|c| {
        let (limits, requests) = (amounts(c, "limits"), amounts(c, "requests"));
        ["cpu", "memory"].iter().all(|k| limits.contains_key(*k) && limits.get(*k) == requests.get(*k))
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}
