//! Computes how much of the resources counted by quotas and limits an object uses. Each function
//! sees a single object and has no access to the registry.

use super::classes::of_claim;
use crate::catalog::Resource;
use crate::validation::aggregate;
pub use crate::validation::{Amounts, add};
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::quantity::Quantity;

/// Kinds that have a quota name without `count/`.
const NAMED: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// The infix between a storage class and the resource that is counted for its claims.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

fn number(n: usize) -> Quantity {
    n.to_string().parse().unwrap_or(Quantity::ZERO)
}

/// Parses a map of quantities.
pub fn amounts(value: &Value) -> Amounts {
    let parsed =
        |(name, amount): (&String, &Value)| Some((name.clone(), amount.as_str()?.parse().ok()?));
    value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(parsed)
        .collect()
}

/// Requests or limits of a pod: the sum of its containers, or the pod-level values if they are set.
pub fn of_pod(pod: &Object, kind: &str) -> Amounts {
    let Some(spec) = pod.pointer("/spec") else {
        return Amounts::new();
    };
    let mut sum = aggregate(spec, kind);
    let own = amounts(
        spec.pointer(&format!("/resources/{kind}"))
            .unwrap_or(&Value::Null),
    );
    sum.extend(
        own.into_iter()
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")),
    );
    sum
}

/// The resources that a pod needs on its node, including huge pages and the overhead of its
/// runtime.
pub fn needs(pod: &Object, kind: &str) -> Amounts {
    let mut sum = of_pod(pod, kind);
    let part = |pointer: &str| amounts(pod.pointer(pointer).unwrap_or(&Value::Null));
    sum.extend(
        part(&format!("/spec/resources/{kind}"))
            .into_iter()
            .filter(|(name, _)| name.starts_with("hugepages-")),
    );
    let mut overhead = part("/spec/overhead");
    if kind == "limits" {
        overhead.retain(|name, _| sum.get(name).is_some_and(|limit| !limit.is_zero()));
    }
    add(&mut sum, &overhead);
    sum
}

/// Whether a pod has a deadline.
pub fn is_terminating(pod: &Object) -> bool {
    pod.i64_at("/spec/activeDeadlineSeconds")
        .is_some_and(|n| n >= 0)
}

/// The usage of an object.
pub fn of(resource: &Resource, object: &Object) -> Amounts {
    let count = if resource.group.is_empty() {
        resource.resource.clone()
    } else {
        format!("{}.{}", resource.resource, resource.group)
    };
    let mut used = Amounts::from([(format!("count/{count}"), number(1))]);
    if resource.group.is_empty() && NAMED.contains(&resource.resource.as_str()) {
        used.insert(resource.resource.clone(), number(1));
    }
    match resource.table.as_str() {
        // Pods that have ended use nothing but their place in the store.
        "/pods" if matches!(object.str_at("/status/phase"), "Succeeded" | "Failed") => {
            used.remove("pods");
        }
        "/pods" => used.extend(compute(
            &needs(object, "requests"),
            &needs(object, "limits"),
        )),
        "/services" => used.extend(service(object)),
        "/persistentvolumeclaims" => used.extend(claim(object)),
        _ => {}
    }
    used
}

/// The quota names of requests and limits.
pub fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::new();
    for (name, amount) in requests {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || name.starts_with("hugepages-")
        {
            used.insert(name.clone(), *amount);
            used.insert(format!("requests.{name}"), *amount);
        } else if name.contains('/') {
            used.insert(format!("requests.{name}"), *amount);
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = limits.get(name) {
            used.insert(format!("limits.{name}"), *amount);
        }
    }
    used
}

/// Whether a quota name applies to objects of the kind, even if this object uses none of it.
pub fn is_of_kind(resource: &Resource, name: &str) -> bool {
    match resource.table.as_str() {
        "/pods" => is_of_pods(name),
        "/persistentvolumeclaims" => is_of_claims(name),
        _ => false,
    }
}

fn is_of_claims(name: &str) -> bool {
    let plain = name.split_once(OF_CLASS).map_or(name, |(_, plain)| plain);
    matches!(plain, "persistentvolumeclaims" | "requests.storage")
}

fn is_of_pods(name: &str) -> bool {
    let plain = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    let huge = !name.starts_with("limits.") && plain.starts_with("hugepages-");
    let extended = name.starts_with("requests.") && plain.contains('/');
    matches!(plain, "cpu" | "memory" | "ephemeral-storage") || name == "pods" || huge || extended
}

fn service(object: &Object) -> Amounts {
    let ports = object
        .pointer("/spec/ports")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let (nodes, balancers) = match object.str_at("/spec/type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer"
            if object.pointer("/spec/allocateLoadBalancerNodePorts")
                == Some(&Value::Bool(false)) =>
        {
            (
                ports
                    .iter()
                    .filter(|p| p["nodePort"].as_i64().unwrap_or(0) != 0)
                    .count(),
                1,
            )
        }
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    Amounts::from([
        ("services.nodeports".into(), number(nodes)),
        ("services.loadbalancers".into(), number(balancers)),
    ])
}

fn claim(object: &Object) -> Amounts {
    let mut used = Amounts::new();
    let class = of_claim(object).unwrap_or("");
    let of_class = |word: &str| format!("{class}{OF_CLASS}{word}");
    if !class.is_empty() {
        used.insert(of_class("persistentvolumeclaims"), number(1));
    }
    let size = |path: &str| object.str_at(path).parse::<Quantity>().ok();
    // The allocated size may be larger than the requested one.
    let asked = size("/spec/resources/requests/storage");
    if let Some(size) = asked.map(|asked| {
        size("/status/allocatedResources/storage")
            .filter(|more| *more > asked)
            .unwrap_or(asked)
    }) {
        let size = size.in_units();
        used.insert("requests.storage".into(), size);
        if !class.is_empty() {
            used.insert(of_class("requests.storage"), size);
        }
    }
    used
}

/// Whether a scope of a quota includes an object. Only pods and claims have scopes.
pub fn in_scope(resource: &Resource, object: &Object, scope: &Value) -> bool {
    let name = scope["scopeName"].as_str().unwrap_or("");
    match resource.table.as_str() {
        "/pods" => pod_in_scope(object, name, scope),
        "/persistentvolumeclaims" if name == "VolumeAttributesClass" => {
            selects(scope, &attribute_classes(object))
        }
        _ => false,
    }
}

/// The attribute classes that a claim has, is getting and requests.
fn attribute_classes(claim: &Object) -> Vec<&str> {
    const NAMED: [&str; 3] = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    NAMED
        .iter()
        .map(|path| claim.str_at(path))
        .filter(|name| !name.is_empty())
        .collect()
}

/// Whether a scope selects one of the names, or an object without any.
fn selects(scope: &Value, names: &[&str]) -> bool {
    let listed = |name: &str| {
        scope["values"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|value| value == name)
    };
    match scope["operator"].as_str().unwrap_or("") {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(|name| listed(name)),
        _ => names.is_empty() || names.iter().any(|name| !listed(name)),
    }
}

fn pod_in_scope(object: &Object, name: &str, scope: &Value) -> bool {
    let best_effort = || crate::validation::qos::quality_of_service(object) == "BestEffort";
    let classes: Vec<&str> = Some(object.str_at("/spec/priorityClassName"))
        .into_iter()
        .filter(|class| !class.is_empty())
        .collect();
    match name {
        "Terminating" => is_terminating(object),
        "NotTerminating" => !is_terminating(object),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => selects(scope, &classes),
        "CrossNamespacePodAffinity" => crosses_namespaces(object),
        _ => false,
    }
}

fn crosses_namespaces(pod: &Object) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|l| !l.is_empty())
            || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |list: &str| {
            pod.pointer(&format!("/spec/affinity/{kind}/{list}"))
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|t| crosses(&t["podAffinityTerm"]))
    })
}
