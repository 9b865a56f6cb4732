//! Defaults that the API server sets in built-in kinds. Main function: [`apply`]. It never
//! overwrites an existing value.

mod image;
mod pod;
mod volumes;
mod workloads;

pub use workloads::job_selector;

use crate::convert::autoscaler;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// The map under `key` if it is one.
fn map_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_object_mut)
}

/// The maps in the list under `key`.
fn each<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(key)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

fn set(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    match map.get_mut(key) {
        None => {
            map.insert(key.to_owned(), value.into());
        }
        Some(Value::Null) => {
            map.insert(key.to_owned(), value.into());
        }
        Some(_) => {}
    }
}

/// Like [`set`], also over an empty string.
fn set_text(map: &mut Map<String, Value>, key: &str, value: &str) {
    if map.get(key).and_then(Value::as_str) == Some("") {
        map.remove(key);
    }
    set(map, key, value);
}

/// Like [`set`], also over an empty list or map.
fn set_content(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let nothing = |v: &Value| {
        v.as_array().is_some_and(Vec::is_empty) || v.as_object().is_some_and(Map::is_empty)
    };
    if map.get(key).is_some_and(nothing) {
        map.remove(key);
    }
    set(map, key, value);
}

fn is(map: &Map<String, Value>, key: &str, word: &str) -> bool {
    map.get(key).and_then(Value::as_str) == Some(word)
}

/// Fills in an object of a built-in resource, named by its table.
pub fn apply(table: &str, object: &mut Object) {
    match table {
        "/pods" => pod::pod(object),
        "/podtemplates" => {
            if let Some(template) = map_at(&mut object.0, "template") {
                pod::template(template);
            }
        }
        "apps/deployments" => workloads::deployment(spec(object)),
        "apps/replicasets" => workloads::replica_set(spec(object)),
        "/replicationcontrollers" => workloads::replication_controller(object),
        "apps/statefulsets" => workloads::stateful_set(spec(object)),
        "apps/daemonsets" => workloads::daemon_set(object),
        "batch/jobs" => workloads::job(object),
        "batch/cronjobs" => workloads::cron_job(spec(object)),
        "/services" => {
            service(spec(object));
            service_status(object);
        }
        "/secrets" => secret(object),
        "/namespaces" if !object.name().is_empty() => {
            let name = object.name().to_owned();
            object.set_label("kubernetes.io/metadata.name", &name);
        }
        "/persistentvolumes" => persistent_volume(spec(object)),
        "/persistentvolumeclaims" => set(spec(object), "volumeMode", "Filesystem"),
        "apiregistration.k8s.io/apiservices" => {
            if let Some(service) = map_at(spec(object), "service") {
                set(service, "port", 443);
            }
        }
        "/endpoints" => {
            for subset in each(&mut object.0, "subsets") {
                each(subset, "ports").for_each(|port| set_text(port, "protocol", "TCP"));
            }
        }
        "discovery.k8s.io/endpointslices" => {
            for port in each(&mut object.0, "ports") {
                set(port, "name", "");
                set(port, "protocol", "TCP");
            }
        }
        "autoscaling/horizontalpodautoscalers" => autoscaler_spec(spec(object)),
        "networking.k8s.io/ingressclasses" => {
            if let Some(parameters) = map_at(spec(object), "parameters") {
                set(parameters, "scope", "Cluster");
            }
        }
        "networking.k8s.io/networkpolicies" => network_policy(spec(object)),
        "rbac.authorization.k8s.io/rolebindings"
        | "rbac.authorization.k8s.io/clusterrolebindings" => binding(object),
        "scheduling.k8s.io/priorityclasses" => {
            set(&mut object.0, "preemptionPolicy", "PreemptLowerPriority")
        }
        "/limitranges" => each(spec(object), "limits")
            .filter(|l| is(l, "type", "Container"))
            .for_each(limit),
        "storage.k8s.io/csidrivers" => csi_driver(spec(object)),
        "storage.k8s.io/storageclasses" => {
            set(&mut object.0, "reclaimPolicy", "Delete");
            set(&mut object.0, "volumeBindingMode", "Immediate");
        }
        "admissionregistration.k8s.io/validatingadmissionpolicies"
        | "admissionregistration.k8s.io/mutatingadmissionpolicies" => {
            let spec = spec(object);
            set(spec, "failurePolicy", "Fail");
            map_at(spec, "matchConstraints")
                .into_iter()
                .for_each(match_resources);
        }
        "admissionregistration.k8s.io/validatingadmissionpolicybindings"
        | "admissionregistration.k8s.io/mutatingadmissionpolicybindings" => {
            map_at(spec(object), "matchResources")
                .into_iter()
                .for_each(match_resources);
        }
        "resource.k8s.io/resourceclaims" => resource_claim(object),
        "resource.k8s.io/resourceclaimtemplates" => {
            if let Some(inner) = map_at(spec(object), "spec") {
                device_requests(inner);
            }
        }
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations" => priority_level(spec(object)),
        "flowcontrol.apiserver.k8s.io/flowschemas" => flow_schema(spec(object)),
        "/nodes" => {
            allocatable(object);
            pod_networks(spec(object));
        }
        "admissionregistration.k8s.io/validatingwebhookconfigurations" => webhooks(object, false),
        "admissionregistration.k8s.io/mutatingwebhookconfigurations" => webhooks(object, true),
        _ => {}
    }
}

/// Sets the time of device taints.
pub fn taint_times(slice: &mut Object, now: &str) {
    for device in each(spec(slice), "devices") {
        each(device, "taints").for_each(|taint| set(taint, "timeAdded", now));
    }
}

/// Defaults of a v1 autoscaler, which supports only the CPU metric.
pub fn old_autoscaler(object: &mut Object) {
    let others = autoscaler::has_other_metrics(object);
    let spec = spec(object);
    set(spec, "minReplicas", 1);
    if !others {
        set(spec, "targetCPUUtilizationPercentage", 80);
    }
}

fn spec(object: &mut Object) -> &mut Map<String, Value> {
    map_entry(&mut object.0, "spec")
}

/// The default of a node's allocatable resources is its capacity.
fn allocatable(node: &mut Object) {
    if let Some(Value::Object(status)) = node.0.get_mut("status")
        && let Some(capacity) = status
            .get("capacity")
            .filter(|amounts| amounts.is_object())
            .cloned()
    {
        let slot = status.entry("allocatable").or_insert(Value::Null);
        if slot.is_null() {
            *slot = capacity;
        }
    }
}

/// The default request is the default limit, which defaults to the maximum.
fn limit(limit: &mut Map<String, Value>) {
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let Some(Value::Object(amounts)) = limit.get(from).cloned() else {
            continue;
        };
        let target = map_entry(limit, to);
        for (name, amount) in amounts {
            target.entry(name).or_insert(amount);
        }
    }
}

fn service(spec: &mut Map<String, Value>) {
    set_text(spec, "sessionAffinity", "None");
    set_text(spec, "type", "ClusterIP");
    let timeout = spec
        .get("sessionAffinityConfig")
        .and_then(|c| c.pointer("/clientIP/timeoutSeconds"))
        .is_some_and(Value::is_number);
    if is(spec, "sessionAffinity", "None") {
        spec.remove("sessionAffinityConfig");
    } else if is(spec, "sessionAffinity", "ClientIP") && !timeout {
        spec.insert(
            "sessionAffinityConfig".into(),
            json!({"clientIP": {"timeoutSeconds": 10_800}}),
        );
    }
    for port in each(spec, "ports") {
        set_text(port, "protocol", "TCP");
        let missing = matches!(port.get("targetPort"), None | Some(Value::Null))
            || port["targetPort"] == 0
            || port["targetPort"] == "";
        if let (true, Some(number)) = (missing, port.get("port").cloned()) {
            port.insert("targetPort".into(), number);
        }
    }
    let external = is(spec, "type", "NodePort") || is(spec, "type", "LoadBalancer");
    let has_ips = spec
        .get("externalIPs")
        .and_then(Value::as_array)
        .is_some_and(|l| !l.is_empty());
    if external || (has_ips && is(spec, "type", "ClusterIP")) {
        set_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if external || is(spec, "type", "ClusterIP") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if is(spec, "type", "LoadBalancer") {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// The IP mode of load balancer addresses is virtual by default.
fn service_status(object: &mut Object) {
    if object.str_at("/spec/type") != "LoadBalancer" {
        return;
    }
    let Some(balancer) = map_at(&mut object.0, "status").and_then(|s| map_at(s, "loadBalancer"))
    else {
        return;
    };
    each(balancer, "ingress")
        .filter(|i| i.get("ip").is_some_and(|ip| ip != ""))
        .for_each(|i| set(i, "ipMode", "VIP"));
}

/// `stringData` is write-only: it is moved to `data`.
fn secret(object: &mut Object) {
    use base64::Engine;
    set_text(&mut object.0, "type", "Opaque");
    if let Some(Value::Object(plain)) = object.0.remove("stringData") {
        let data = map_entry(&mut object.0, "data");
        for (key, value) in plain {
            let text = value.as_str().unwrap_or("");
            data.insert(
                key,
                base64::engine::general_purpose::STANDARD
                    .encode(text)
                    .into(),
            );
        }
    }
}

fn autoscaler_spec(spec: &mut Map<String, Value>) {
    set(spec, "minReplicas", 1);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    set_content(
        spec,
        "metrics",
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
    );
    if let Some(behavior) = map_at(spec, "behavior") {
        scaling_rules(behavior);
    }
}

/// Defaults of the scaling rules of an autoscaler that has any.
fn scaling_rules(behavior: &mut Map<String, Value>) {
    let policy =
        |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = map_entry(behavior, "scaleUp");
    set(up, "stabilizationWindowSeconds", 0);
    set(up, "selectPolicy", "Max");
    set(
        up,
        "policies",
        json!([policy("Pods", 4), policy("Percent", 100)]),
    );
    let down = map_entry(behavior, "scaleDown");
    set(down, "selectPolicy", "Max");
    set(down, "policies", json!([policy("Percent", 100)]));
}

fn persistent_volume(spec: &mut Map<String, Value>) {
    set_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    set(spec, "volumeMode", "Filesystem");
    volumes::source(spec);
}

fn csi_driver(spec: &mut Map<String, Value>) {
    set(spec, "attachRequired", true);
    for field in [
        "podInfoOnMount",
        "requiresRepublish",
        "seLinuxMount",
        "storageCapacity",
    ] {
        set(spec, field, false);
    }
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_content(spec, "volumeLifecycleModes", json!(["Persistent"]));
}

fn network_policy(spec: &mut Map<String, Value>) {
    for key in ["ingress", "egress"] {
        for rule in each(spec, key) {
            each(rule, "ports").for_each(|port| set(port, "protocol", "TCP"));
        }
    }
    let has_egress = spec
        .get("egress")
        .and_then(Value::as_array)
        .is_some_and(|l| !l.is_empty());
    set_content(
        spec,
        "policyTypes",
        if has_egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        },
    );
}

fn binding(object: &mut Object) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if let Some(role) = map_at(&mut object.0, "roleRef") {
        set_text(role, "apiGroup", GROUP);
    }
    for subject in each(&mut object.0, "subjects") {
        if is(subject, "kind", "User") || is(subject, "kind", "Group") {
            set_text(subject, "apiGroup", GROUP);
        }
    }
}

/// A node's `podCIDR` and the first of its `podCIDRs` are the same.
fn pod_networks(spec: &mut Map<String, Value>) {
    let first = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned();
    match (first, spec.get("podCIDR").filter(|n| *n != "").cloned()) {
        (Some(first), None) => drop(spec.insert("podCIDR".into(), first)),
        // Older clients know only the single network.
        (first, Some(network)) if first.as_ref() != Some(&network) => {
            drop(spec.insert("podCIDRs".into(), json!([network])))
        }
        _ => {}
    }
}

/// Defaults of an admission policy's match resources.
fn match_resources(to: &mut Map<String, Value>) {
    set(to, "matchPolicy", "Equivalent");
    set(to, "namespaceSelector", json!({}));
    set(to, "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        each(to, list).for_each(|rule| set(rule, "scope", "*"));
    }
}

fn resource_claim(object: &mut Object) {
    device_requests(spec(object));
    let devices = map_at(&mut object.0, "status")
        .and_then(|status| map_at(status, "allocation"))
        .and_then(|a| map_at(a, "devices"));
    devices
        .into_iter()
        .for_each(|devices| each(devices, "results").for_each(tolerations));
}

/// Defaults of device requests: the count, and tolerations.
fn device_requests(spec: &mut Map<String, Value>) {
    fn wanted(request: &mut Map<String, Value>) {
        set_text(request, "allocationMode", "ExactCount");
        if is(request, "allocationMode", "ExactCount") {
            set(request, "count", 1);
        }
        tolerations(request);
    }
    let Some(devices) = map_at(spec, "devices") else {
        return;
    };
    for request in each(devices, "requests") {
        map_at(request, "exactly").into_iter().for_each(wanted);
        each(request, "firstAvailable").for_each(wanted);
    }
}

fn tolerations(of: &mut Map<String, Value>) {
    each(of, "tolerations").for_each(|toleration| set_text(toleration, "operator", "Equal"));
}

fn flow_schema(spec: &mut Map<String, Value>) {
    if spec
        .get("matchingPrecedence")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        == 0
    {
        spec.insert("matchingPrecedence".into(), 1000.into());
    }
}

fn priority_level(spec: &mut Map<String, Value>) {
    for (kind, shares) in [("limited", 30), ("exempt", 0)] {
        if let Some(part) = map_at(spec, kind) {
            set(part, "nominalConcurrencyShares", shares);
            set(part, "lendablePercent", 0);
            if let Some(queuing) = map_at(part, "limitResponse").and_then(|r| map_at(r, "queuing"))
            {
                for (field, value) in [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)] {
                    if queuing.get(field).and_then(Value::as_i64).unwrap_or(0) == 0 {
                        queuing.insert(field.into(), value.into());
                    }
                }
            }
        }
    }
    if is(spec, "type", "Exempt") && !spec.contains_key("exempt") {
        spec.insert(
            "exempt".into(),
            json!({"nominalConcurrencyShares": 0, "lendablePercent": 0}),
        );
    }
}

fn webhooks(object: &mut Object, mutating: bool) {
    for hook in each(&mut object.0, "webhooks") {
        set(hook, "failurePolicy", "Fail");
        set(hook, "matchPolicy", "Equivalent");
        set(hook, "namespaceSelector", json!({}));
        set(hook, "objectSelector", json!({}));
        set(hook, "timeoutSeconds", 10);
        if mutating {
            set(hook, "reinvocationPolicy", "Never");
        }
        each(hook, "rules").for_each(|rule| set(rule, "scope", "*"));
        if let Some(service) = map_at(hook, "clientConfig").and_then(|c| map_at(c, "service")) {
            set(service, "port", 443);
        }
    }
}
