//! The status of a ResourceQuota: the usage of its namespace, recounted after every change.

use super::{fields::text, plan::Plan, pod::qos_class, workload::pods};
use serde_json::{Map, Value};
use std::sync::Arc;
use tiphys_apimachinery::{Object, quantity::Quantity};

/// The contents of a namespace.
pub struct Usage<'a> {
    pub pods: &'a [Arc<Object>],
    pub services: &'a [Arc<Object>],
    pub claims: &'a [Arc<Object>],
    /// The number of objects of a group and resource.
    pub count: &'a dyn Fn(&str, &str) -> usize,
}

/// The next step of a quota.
pub fn reconcile(quota: &Object, usage: &Usage<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(hard) = quota.pointer("/spec/hard").and_then(Value::as_object) else {
        return plan;
    };
    let scoped: Vec<&Arc<Object>> = usage.pods.iter().filter(|p| in_scopes(quota, p)).collect();
    let mut used = Map::new();
    for name in hard.keys() {
        if let Some(amount) = amount(name, &scoped, usage) {
            used.insert(name.clone(), amount.to_string().into());
        }
    }
    let mut status = Map::new();
    status.insert("hard".into(), Value::Object(hard.clone()));
    status.insert("used".into(), Value::Object(used));
    plan.status(quota, Value::Object(status), Vec::new());
    plan
}

fn number(n: usize) -> Quantity {
    n.to_string().parse().unwrap_or_else(|_| zero())
}

fn zero() -> Quantity {
    // A digit is a valid quantity.
    "0".parse()
        .unwrap_or_else(|_| unreachable!("0 is a quantity"))
}

fn sum(amounts: impl Iterator<Item = Quantity>) -> Quantity {
    amounts.fold(zero(), |a, b| a.plus(&b))
}

/// The usage of a resource; `None` if it is not counted.
fn amount(name: &str, pods: &[&Arc<Object>], usage: &Usage<'_>) -> Option<Quantity> {
    if let Some(counted) = name.strip_prefix("count/") {
        let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
        return Some(number((usage.count)(group, resource)));
    }
    if let Some((class, what)) = name.split_once(".storageclass.storage.k8s.io/") {
        let of_class = |c: &&Arc<Object>| c.str_at("/spec/storageClassName") == class;
        return claims(what, usage.claims.iter().filter(of_class));
    }
    let typed = |kind: &str| {
        usage
            .services
            .iter()
            .filter(|s| s.str_at("/spec/type") == kind)
            .count()
    };
    let running = || pods.iter().filter(|p| !pods::is_ended(p));
    match name {
        "pods" => Some(number(running().count())),
        "services" => Some(number(usage.services.len())),
        "services.loadbalancers" => Some(number(typed("LoadBalancer"))),
        "services.nodeports" => Some(number(usage.services.iter().map(|s| node_ports(s)).sum())),
        "persistentvolumeclaims" | "requests.storage" => claims(name, usage.claims.iter()),
        "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas" => {
            Some(number((usage.count)("", name)))
        }
        _ => {
            let (list, resource) = match name.split_once('.') {
                Some(("limits", resource)) => ("limits", resource),
                Some(("requests", resource)) => ("requests", resource),
                _ => ("requests", name),
            };
            Some(sum(running().map(|p| asked(p, list, resource))))
        }
    }
}

fn claims<'a>(what: &str, of: impl Iterator<Item = &'a Arc<Object>>) -> Option<Quantity> {
    match what {
        "persistentvolumeclaims" => Some(number(of.count())),
        "requests.storage" => {
            Some(sum(of.filter_map(|c| {
                c.str_at("/spec/resources/requests/storage").parse().ok()
            })))
        }
        _ => None,
    }
}

fn node_ports(service: &Object) -> usize {
    let ports = service
        .pointer("/spec/ports")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    match service.str_at("/spec/type") {
        "NodePort" => ports,
        "LoadBalancer"
            if service.pointer("/spec/allocateLoadBalancerNodePorts")
                != Some(&Value::Bool(false)) =>
        {
            ports
        }
        _ => 0,
    }
}

/// The requests of a pod: the sum of its containers, or an init container alone if that is more;
/// sidecars always count.
fn asked(pod: &Object, list: &str, resource: &str) -> Quantity {
    let of = |c: &Value| -> Option<Quantity> {
        c.pointer("/resources")?
            .get(list)?
            .get(resource)?
            .as_str()?
            .parse()
            .ok()
    };
    let all = |field: &str| {
        pod.pointer("/spec")
            .and_then(|s| s.get(field))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let is_sidecar = |c: &&Value| text(c, "restartPolicy") == "Always";
    let sidecars = sum(all("initContainers").filter(is_sidecar).filter_map(of));
    let together = sum(all("containers").filter_map(of)).plus(&sidecars);
    let alone = all("initContainers")
        .filter(|c| !is_sidecar(c))
        .filter_map(of)
        .map(|q| q.plus(&sidecars));
    let most = alone.fold(together, |a, b| if b > a { b } else { a });
    match pod
        .pointer("/spec/overhead")
        .and_then(|o| o.get(resource)?.as_str()?.parse::<Quantity>().ok())
    {
        Some(overhead) => most.plus(&overhead),
        None => most,
    }
}

/// Whether all scopes of a quota include a pod.
fn in_scopes(quota: &Object, pod: &Object) -> bool {
    let named = quota
        .pointer("/spec/scopes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let selected = quota
        .pointer("/spec/scopeSelector/matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    named.into_iter().all(|scope| has_scope(scope, pod))
        && selected.into_iter().all(|e| expression_holds(e, pod))
}

fn has_scope(scope: &str, pod: &Object) -> bool {
    let ends = pod.i64_at("/spec/activeDeadlineSeconds").is_some();
    let best_effort = qos_class(pod.pointer("/spec").unwrap_or(&Value::Null)) == "BestEffort";
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => !pod.str_at("/spec/priorityClassName").is_empty(),
        _ => false,
    }
}

fn expression_holds(expression: &Value, pod: &Object) -> bool {
    let scope = text(expression, "scopeName");
    let class = pod.str_at("/spec/priorityClassName");
    let listed = expression
        .get("values")
        .and_then(Value::as_array)
        .is_some_and(|l| l.iter().any(|v| v.as_str() == Some(class)));
    match (scope, text(expression, "operator")) {
        ("PriorityClass", "In") => listed,
        ("PriorityClass", "NotIn") => !listed,
        (_, "DoesNotExist") => !has_scope(scope, pod),
        _ => has_scope(scope, pod),
    }
}
