//! What a cluster has before anybody deploys: nodes, and in each namespace a service account and the cluster's CA.

use super::{
    fields::rfc3339,
    kind::{Kind, ROOT_CA},
    plan::Plan,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

/// The names of the simulated nodes.
pub const NODES: [&str; 2] = ["node-1", "node-2"];

/// A node of the cluster, to be created; its status is written by [`reconcile_node`].
pub fn node(name: &str) -> Object {
    let mut node = Object::skeleton(&Kind::Node.gvk(), "", name);
    for (key, value) in [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")] {
        node.set_label(key, value);
    }
    node.set_annotation("sim.tiphys.dev/node", "simulated");
    let number = name.rsplit('-').next().unwrap_or("0");
    node.0.insert("spec".into(), json!({"podCIDR": format!("10.{number}.0.0/16"), "podCIDRs": [format!("10.{number}.0.0/16")]}));
    node
}

/// Writes the status of a simulated node once.
pub fn reconcile_node(node: &Object, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if node.annotation("sim.tiphys.dev/node").is_none()
        || node.pointer("/status/conditions").is_some()
        || node.deletion_timestamp().is_some()
    {
        return plan;
    }
    let time = rfc3339(now);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": time, "lastTransitionTime": time});
    let number: u8 = node.name().rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let resources = json!({"cpu": "32", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"});
    let status = json!({
        "capacity": resources, "allocatable": resources,
        "addresses": [{"type": "InternalIP", "address": format!("10.0.0.{}", 10 + u32::from(number))}, {"type": "Hostname", "address": node.name()}],
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "osImage": "simulated", "kernelVersion": "simulated", "machineID": "",
            "systemUUID": "", "bootID": "", "containerRuntimeVersion": "sim://1", "kubeletVersion": "v1.36.0-sim", "kubeProxyVersion": "",
        },
    });
    plan.status(node, status, Vec::new());
    plan
}

/// What a namespace always has.
pub fn reconcile_namespace(namespace: &Object, account: Option<&Object>, root_ca: Option<&Object>, ca: &str) -> Plan {
    let mut plan = Plan::default();
    if namespace.deletion_timestamp().is_some() || namespace.str_at("/status/phase") == "Terminating" {
        return plan;
    }
    let name = namespace.name();
    if account.is_none() {
        plan.create(Object::skeleton(&Kind::ServiceAccount.gvk(), name, "default"), None);
    }
    if root_ca.is_none() {
        let mut map = Object::skeleton(&Kind::ConfigMap.gvk(), name, ROOT_CA);
        map.set_annotation(
            "kubernetes.io/description",
            "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc.",
        );
        map.0.insert("data".into(), json!({"ca.crt": ca}));
        plan.create(map, None);
    }
    plan
}

/// A HorizontalPodAutoscaler whose metrics never ask for a change: its target is only kept within the limits.
pub fn reconcile_autoscaler(scaler: &Object, target: Option<&Object>, now: Timestamp) -> Plan {
    use super::fields::{Cond, conditions, set_condition, set_spec, spec_i64};
    let mut plan = Plan::default();
    if scaler.deletion_timestamp().is_some() {
        return plan;
    }
    let mut list = conditions(scaler);
    let mut set = |kind, status, reason: &str, message: &str| set_condition(&mut list, Cond { kind, status, reason, message }, now);
    let mut status = scaler.pointer("/status").and_then(Value::as_object).cloned().unwrap_or_default();
    let (min, max) = (spec_i64(scaler, "minReplicas", 1), spec_i64(scaler, "maxReplicas", 1));
    match target {
        None => {
            let name = scaler.str_at("/spec/scaleTargetRef/name");
            let message = format!("the HPA controller was unable to get the target's current scale: \"{name}\" not found");
            set("AbleToScale", false, "FailedGetScale", &message);
            status.insert("currentReplicas".into(), 0.into());
            status.insert("desiredReplicas".into(), 0.into());
        }
        Some(target) => {
            let current = spec_i64(target, "replicas", 1);
            // A target of size 0 is switched off.
            let desired = if current == 0 { 0 } else { current.clamp(min, max.max(min)) };
            if desired != current && target.deletion_timestamp().is_none() {
                let mut sized = target.clone();
                set_spec(&mut sized, "replicas", desired.into());
                plan.update(sized, None);
            }
            set("AbleToScale", true, "ReadyForNewScale", "recommended size matches current size");
            if current == 0 {
                set("ScalingActive", false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero");
            } else {
                set(
                    "ScalingActive",
                    true,
                    "ValidMetricFound",
                    "the HPA was able to successfully calculate a replica count from simulated metrics",
                );
            }
            set("ScalingLimited", false, "DesiredWithinRange", "the desired count is within the acceptable range");
            status.insert("currentReplicas".into(), current.into());
            status.insert("desiredReplicas".into(), desired.into());
        }
    }
    if scaler.generation() > 0 {
        status.insert("observedGeneration".into(), scaler.generation().into());
    }
    status.insert("conditions".into(), Value::Array(list));

    plan.status(scaler, Value::Object(status), Vec::new());
    plan
}
