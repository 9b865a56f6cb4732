//! Defaults of networking, scaling, access, storage and admission kinds.

use super::{
    Fields, Rule,
    fields::{existing, map, set, set_list, set_text, text},
};
use serde_json::{Map, Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn rule_for(name: &str) -> Option<Rule> {
    Some(match name {
        "networking.v1.NetworkPolicy" => network_policy,
        "networking.v1.NetworkPolicyPort" => |m| set(m, "protocol", "TCP"),
        "networking.v1.IngressClassParametersReference" => |m| set(m, "scope", "Cluster"),
        "autoscaling.v1.HorizontalPodAutoscalerSpec" => |m| set(m, "minReplicas", 1),
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => autoscaler,
        "rbac.v1.RoleRef" => |m| set_text(m, "apiGroup", RBAC),
        "rbac.v1.Subject" => |m| {
            if matches!(text(m, "kind"), "User" | "Group") {
                set_text(m, "apiGroup", RBAC);
            }
        },
        "storage.v1.StorageClass" => storage_class,
        "storage.v1.CSIDriverSpec" => csi_driver,
        "scheduling.v1.PriorityClass" => |m| set(m, "preemptionPolicy", "PreemptLowerPriority"),
        "discovery.v1.EndpointPort" => |m| {
            set(m, "name", "");
            set(m, "protocol", "TCP");
        },
        "admissionregistration.v1.ValidatingWebhook" => webhook,
        "admissionregistration.v1.MutatingWebhook" => |m| {
            webhook(m);
            set(m, "reinvocationPolicy", "Never");
        },
        "admissionregistration.v1.RuleWithOperations"
        | "admissionregistration.v1.NamedRuleWithOperations" => |m| set(m, "scope", "*"),
        "admissionregistration.v1.ServiceReference" => |m| set(m, "port", 443),
        "admissionregistration.v1.ValidatingAdmissionPolicySpec"
        | "admissionregistration.v1.MutatingAdmissionPolicySpec" => {
            |m| set(m, "failurePolicy", "Fail")
        }
        "admissionregistration.v1.MatchResources" => match_resources,
        _ => return None,
    })
}

fn network_policy(policy: &mut Fields) {
    let Some(spec) = map(policy, "spec") else {
        return;
    };
    let egress = spec
        .get("egress")
        .and_then(Value::as_array)
        .is_some_and(|rules| !rules.is_empty());
    set_list(
        spec,
        "policyTypes",
        if egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        },
    );
}

fn autoscaler(spec: &mut Fields) {
    set(spec, "minReplicas", 1);
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    set_list(
        spec,
        "metrics",
        json!([{"type": "Resource", "resource": cpu}]),
    );
    let Some(behavior) = existing(spec, "behavior") else {
        return;
    };
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    if let Some(up) = map(behavior, "scaleUp") {
        set(up, "stabilizationWindowSeconds", 0);
        set(up, "selectPolicy", "Max");
        set(up, "policies", json!([pods, percent]));
    }
    if let Some(down) = map(behavior, "scaleDown") {
        set(down, "selectPolicy", "Max");
        set(down, "policies", json!([percent]));
    }
}

fn storage_class(class: &mut Fields) {
    set(class, "reclaimPolicy", "Delete");
    set(class, "volumeBindingMode", "Immediate");
}

fn csi_driver(spec: &mut Fields) {
    set(spec, "attachRequired", true);
    for field in [
        "podInfoOnMount",
        "storageCapacity",
        "requiresRepublish",
        "seLinuxMount",
    ] {
        set(spec, field, false);
    }
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_list(spec, "volumeLifecycleModes", json!(["Persistent"]));
}

fn webhook(webhook: &mut Fields) {
    set(webhook, "failurePolicy", "Fail");
    match_resources(webhook);
    set(webhook, "timeoutSeconds", 10);
}

fn match_resources(m: &mut Fields) {
    set(m, "matchPolicy", "Equivalent");
    set(m, "namespaceSelector", Map::new());
    set(m, "objectSelector", Map::new());
}
