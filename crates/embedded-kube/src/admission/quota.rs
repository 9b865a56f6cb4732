//! ResourceQuotas: a write that exceeds what is left of a quota is rejected; any other is counted
//! in the quota's status.
//!
//! Main function: [`charge`]. It counts only the resources that the quota controller has put into
//! the status.

use super::usage::{Amounts, add, amounts, compute, in_scope, is_of_kind, is_terminating, of};
use super::{Cluster, Request, forbidden};
use crate::base::WriteOptions;
use crate::catalog::Resource;
use crate::status::Status;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_apimachinery::{Gvr, Object};

/// How often charging is retried after a concurrent change of the same quota.
const ATTEMPTS: usize = 20;
/// The resources that a quota can require every container to set.
const DEMANDED: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

fn gvr() -> Gvr {
    Gvr::new("", "v1", "resourcequotas")
}

/// The scopes of a quota, as selectors.
fn scopes(quota: &Object) -> Vec<Value> {
    let plain = quota
        .pointer("/spec/scopes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let selectors = quota
        .pointer("/spec/scopeSelector/matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    plain
        .map(|name| json!({"scopeName": name, "operator": "Exists"}))
        .chain(selectors.cloned())
        .collect()
}

fn covers(quota: &Object, resource: &Resource, object: &Object) -> bool {
    scopes(quota)
        .iter()
        .all(|scope| in_scope(resource, object, scope))
}

fn hard(quota: &Object, part: &str) -> Amounts {
    amounts(
        quota
            .pointer(&format!("/{part}/hard"))
            .unwrap_or(&Value::Null),
    )
}

/// The usage that the object adds; nothing for updates that only reduce it.
fn added(resource: &Resource, object: &Object, old: Option<&Object>) -> Amounts {
    let mut used = of(resource, object);
    if let Some(old) = old {
        let before = of(resource, old);
        for (name, amount) in &mut used {
            *amount = amount.minus(before.get(name).unwrap_or(&Quantity::ZERO));
        }
    }
    used.retain(|_, amount| *amount > Quantity::ZERO);
    used
}

/// Whether an update can change the usage, or which quotas count it.
fn counts_update(request: &Request<'_>, object: &Object, old: &Object) -> bool {
    match request.resource.table.as_str() {
        "/services" | "/persistentvolumeclaims" => true,
        "/pods" => !request.subresource.is_empty() || is_terminating(object) != is_terminating(old),
        _ => false,
    }
}

/// Charges a write to the quotas of its namespace.
pub fn charge(request: &Request<'_>, object: &Object, old: Option<&Object>) -> Result<(), Status> {
    let (cluster, resource) = (request.cluster, &**request.resource);
    if old.is_some_and(|old| !counts_update(request, object, old)) || resource.table == "/events" {
        return Ok(());
    }
    let mut due = Vec::new();
    for quota in cluster.list(&gvr(), Some(object.namespace()))? {
        let limits = hard(&quota, "status");
        if !covers(&quota, resource, object) {
            continue;
        }
        let counted = old.filter(|old| covers(&quota, resource, old));
        let delta: Amounts = added(resource, object, counted)
            .into_iter()
            .filter(|(name, _)| limits.contains_key(name))
            .collect();
        if resource.table == "/pods"
            && let Some(missing) = not_said(&limits, object)
        {
            return Err(forbidden(
                resource,
                object,
                &format!("failed quota: {}: must specify {missing}", quota.name()),
            ));
        }
        if let Some(bounded) = not_counted(resource, &quota, &limits, &of(resource, object)) {
            let why = format!(
                "status unknown for quota: {}, resources: {bounded}",
                quota.name()
            );
            return Err(forbidden(resource, object, &why));
        }
        due.extend((!delta.is_empty()).then_some((quota, delta)));
    }
    // A write that one quota rejects is charged to none.
    for (quota, delta) in &due {
        fits(request, object, quota, delta)?;
    }
    due.into_iter()
        .filter(|_| !request.dry_run)
        .try_for_each(|due| take(request, object, due))
}

/// The resources of such objects that the quota limits, if any of them has not been counted yet.
fn not_counted(
    resource: &Resource,
    quota: &Object,
    limits: &Amounts,
    uses: &Amounts,
) -> Option<String> {
    let used = amounts(quota.pointer("/status/used").unwrap_or(&Value::Null));
    let concerns = |name: &&String| uses.contains_key(*name) || is_of_kind(resource, name);
    let bounded: Vec<&str> = limits.keys().filter(concerns).map(String::as_str).collect();
    bounded
        .iter()
        .any(|name| !used.contains_key(*name))
        .then(|| bounded.join(","))
}

/// Requests and limits that the quota counts and a container does not set.
fn not_said(limits: &Amounts, pod: &Object) -> Option<String> {
    let demanded: Vec<&str> = DEMANDED
        .into_iter()
        .filter(|name| limits.contains_key(*name))
        .collect();
    let own = pod.pointer("/spec/resources").and_then(Value::as_object);
    if demanded.is_empty()
        || own.is_some_and(|r| r.contains_key("requests") || r.contains_key("limits"))
    {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for list in ["/spec/containers", "/spec/initContainers"] {
        for container in pod
            .pointer(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let said = compute(
                &amounts(&container["resources"]["requests"]),
                &amounts(&container["resources"]["limits"]),
            );
            for name in demanded.iter().filter(|name| !said.contains_key(**name)) {
                missing
                    .entry(name)
                    .or_default()
                    .insert(container["name"].as_str().unwrap_or("").to_owned());
            }
        }
    }
    let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(",");
    let parts: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| format!("{name} for: {}", list(containers)))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn print(all: &Amounts, names: &[&String]) -> String {
    let held = names
        .iter()
        .map(|name| (name, all.get(*name).copied().unwrap_or(Quantity::ZERO)));
    held.map(|(name, amount)| format!("{name}={amount}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// The usage of a quota including this write, unless it exceeds the limit. The usage in the status
/// already counts.
fn fits(
    request: &Request<'_>,
    object: &Object,
    quota: &Object,
    delta: &Amounts,
) -> Result<Amounts, Status> {
    let (limits, used) = (
        hard(quota, "status"),
        amounts(quota.pointer("/status/used").unwrap_or(&Value::Null)),
    );
    let mut next = used.clone();
    add(&mut next, delta);
    let exceeded: Vec<&String> = delta
        .keys()
        .filter(|name| next.get(*name) > limits.get(*name))
        .collect();
    if exceeded.is_empty() || request.subresource == "status" {
        return Ok(next);
    }
    let (requested, used, limited) = (
        print(delta, &exceeded),
        print(&used, &exceeded),
        print(&limits, &exceeded),
    );
    let why = format!(
        "exceeded quota: {}, requested: {requested}, used: {used}, limited: {limited}",
        quota.name()
    );
    Err(forbidden(request.resource, object, &why))
}

/// Adds to a quota's status, or rejects the write.
fn take(
    request: &Request<'_>,
    object: &Object,
    (mut quota, delta): (Arc<Object>, Amounts),
) -> Result<(), Status> {
    let cluster = request.cluster;
    for _ in 0..ATTEMPTS {
        let next = fits(request, object, &quota, &delta)?;
        if set_used(cluster, &quota, &hard(&quota, "status"), &next)? {
            return Ok(());
        }
        quota = match cluster.get(&gvr(), object.namespace(), quota.name()) {
            Ok(found) => found,
            Err(status) if status.is_not_found() => return Ok(()),
            Err(status) => return Err(status),
        };
    }
    Err(Status::conflict(
        "",
        "resourcequotas",
        quota.name(),
        "the object has been modified; please apply your changes to the latest version and try again",
    ))
}

/// Whether the status was written; false if the quota has changed concurrently.
fn set_used(
    cluster: &dyn Cluster,
    quota: &Object,
    limits: &Amounts,
    used: &Amounts,
) -> Result<bool, Status> {
    let print = |all: &Amounts| -> Map<String, Value> {
        all.iter()
            .map(|(name, amount)| (name.clone(), amount.to_string().into()))
            .collect()
    };
    let mut next = quota.clone();
    let status = map_entry(&mut next.0, "status");
    status.insert("hard".into(), print(limits).into());
    status.insert("used".into(), print(used).into());
    let options = WriteOptions::manager("kube-apiserver");
    match cluster.write_quota(&gvr(), quota.namespace(), next, &options) {
        Ok(()) => Ok(true),
        Err(status) if status.is_conflict() => Ok(false),
        Err(status) if status.is_not_found() => Ok(true),
        Err(status) => Err(status),
    }
}
