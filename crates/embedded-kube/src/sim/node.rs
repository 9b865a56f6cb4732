//! Nodes as maintained by kubelets and the node controllers: status, heartbeats, a lease, the taint
//! of a cordoned node.
//!
//! Every node is simulated, whoever created it. This module does not deal with pods.

use super::{
    fields::{find_condition, parse_time, rfc3339, text},
    kind::Kind,
    plan::Plan,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_apimachinery::{Object, object::map_entry};

/// The names of the nodes that the cluster starts with.
pub const NODES: [&str; 2] = ["node-1", "node-2"];
/// The namespace of the nodes' leases.
pub const LEASES: &str = "kube-node-lease";
/// The taint that the API server adds to new nodes.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A node of the cluster, to be created; its status is written by [`reconcile`].
pub fn node(name: &str) -> Object {
    let mut node = Object::skeleton(&Kind::Node.gvk(), "", name);
    for (key, value) in [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ] {
        node.set_label(key, value);
    }
    node.set_annotation("sim.tiphys.dev/node", "simulated");
    let number = name.rsplit('-').next().unwrap_or("0");
    node.0.insert("spec".into(), json!({"podCIDR": format!("10.{number}.0.0/16"), "podCIDRs": [format!("10.{number}.0.0/16")]}));
    node
}

/// The next step of a node, which sends a heartbeat every `heartbeat` (only one if that is zero).
pub fn reconcile(
    node: &Object,
    lease: Option<&Object>,
    heartbeat: Duration,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    if node.deletion_timestamp().is_some() {
        return plan;
    }
    if let Some(tainted) = taint_if_cordoned(node, now) {
        plan.update(tainted, None);
        return plan;
    }
    let conditions = node
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let ready = find_condition(&conditions, "Ready");
    let beat = ready.and_then(|r| parse_time(text(r, "lastHeartbeatTime")));
    let next = |from: Timestamp| from.saturating_add(heartbeat).unwrap_or(Timestamp::MAX);
    if ready.is_some() && heartbeat.is_zero() {
        return plan;
    }
    if let Some(due) = beat.map(next).filter(|due| *due > now) {
        plan.wake_at(due);
        return plan;
    }
    plan.status(node, status(node, ready.is_some(), now), Vec::new());
    renew(&mut plan, node, lease, heartbeat, now);
    if !heartbeat.is_zero() {
        plan.wake_at(next(now));
    }
    plan
}

/// The node with its taints updated, if they have to change: adds the taint of a cordoned node or
/// removes it, and removes that of a new node.
fn taint_if_cordoned(node: &Object, now: Timestamp) -> Option<Object> {
    let cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    let taints = node
        .pointer("/spec/taints")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let tainted = taints.iter().any(|t| text(t, "key") == UNSCHEDULABLE);
    let conditions = node
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let known = find_condition(&conditions, "Ready").is_some();
    let stale = |taint: &Value| known && text(taint, "key") == NOT_READY;
    if cordoned == tainted && !taints.iter().any(stale) {
        return None;
    }
    let keeps = |taint: &Value| !stale(taint) && (cordoned || text(taint, "key") != UNSCHEDULABLE);
    let mut taints: Vec<Value> = taints.into_iter().filter(keeps).collect();
    if cordoned && !tainted {
        taints
            .push(json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": rfc3339(now)}));
    }
    let mut node = node.clone();
    map_entry(&mut node.0, "spec").insert("taints".into(), Value::Array(taints));
    Some(node)
}

fn status(node: &Object, known: bool, now: Timestamp) -> Value {
    let time = rfc3339(now);
    let mut status = node
        .pointer("/status")
        .cloned()
        .unwrap_or_else(|| json!({}));
    if known {
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = time.clone().into();
        }
        return status;
    }
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": time, "lastTransitionTime": time});
    status["conditions"] = json!([
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure"
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available"
        ),
        condition(
            "NetworkUnavailable",
            "False",
            "RouteCreated",
            "RouteController created a route"
        ),
        condition(
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status"
        ),
    ]);
    let number: u8 = node
        .name()
        .rsplit('-')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let features = json!([
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers"
    ]);
    let resources =
        json!({"cpu": "32", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"});
    let address = format!("10.0.0.{}", 10 + u32::from(number.min(240)));
    for (field, value) in [
        ("capacity", resources.clone()),
        ("allocatable", resources),
        (
            "addresses",
            json!([{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": node.name()}]),
        ),
        ("daemonEndpoints", json!({"kubeletEndpoint": {"Port": 0}})),
        ("declaredFeatures", features),
    ] {
        if status
            .get(field)
            .is_none_or(|v| v.as_object().is_some_and(|m| m.is_empty()))
        {
            status[field] = value;
        }
    }
    status["nodeInfo"] = json!({
        "architecture": "amd64", "operatingSystem": "linux", "osImage": "simulated", "kernelVersion": "simulated", "machineID": "",
        "systemUUID": "", "bootID": "", "containerRuntimeVersion": "sim://1", "kubeletVersion": "v1.36.0-sim", "kubeProxyVersion": "",
    });
    status
}

fn renew(
    plan: &mut Plan,
    node: &Object,
    lease: Option<&Object>,
    heartbeat: Duration,
    now: Timestamp,
) {
    let renewed = format!("{:.6}", now);
    match lease {
        Some(lease) => {
            let mut lease = lease.clone();
            map_entry(&mut lease.0, "spec").insert("renewTime".into(), renewed.into());
            plan.update(lease, None);
        }
        None => {
            let mut lease = Object::skeleton(&Kind::Lease.gvk(), LEASES, node.name());
            let owner =
                json!({"apiVersion": "v1", "kind": "Node", "name": node.name(), "uid": node.uid()});
            lease
                .metadata_mut()
                .insert("ownerReferences".into(), json!([owner]));
            let spec = json!({"holderIdentity": node.name(), "leaseDurationSeconds": (2 * heartbeat.as_secs()).max(40), "renewTime": renewed});
            lease.0.insert("spec".into(), spec);
            plan.create(lease, None);
        }
    }
}
