//! LimitRanges: the defaults for containers without requests or limits, and the allowed minimum and
//! maximum.

use super::usage::{Amounts, amounts, of_pod};
use super::{containers, forbidden, spec};
use crate::catalog::Resource;
use crate::reader::Reader;
use crate::status::Status;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_apimachinery::{Gvr, Object};

const SET_BY: &str = "kubernetes.io/limit-ranger";

fn ranges(cluster: &dyn Reader, namespace: &str) -> Vec<Arc<Object>> {
    cluster
        .list(&Gvr::new("", "v1", "limitranges"), Some(namespace))
        .unwrap_or_default()
}

/// The entries of a range for a given type.
fn entries<'a>(range: &'a Object, of: &'a str) -> impl Iterator<Item = &'a Value> {
    range
        .pointer("/spec/limits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(move |limit| limit["type"] == of)
}

/// Gives containers the default values of the ranges.
pub fn fill_in(cluster: &dyn Reader, pod: &mut Object) {
    for range in ranges(cluster, pod.namespace()) {
        let mut defaults: [BTreeMap<String, Value>; 2] = Default::default();
        for entry in entries(&range, "Container") {
            for (to, field) in defaults.iter_mut().zip(["default", "defaultRequest"]) {
                to.extend(
                    entry[field]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(name, amount)| (name.clone(), amount.clone())),
                );
            }
        }
        let mut notes = Vec::new();
        for (list, word) in [
            ("containers", "container"),
            ("initContainers", "init container"),
        ] {
            for container in containers(spec(pod), list) {
                let name = container
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned();
                let resources = map_entry(container, "resources");
                let mut set = |kind: &str, defaults: &BTreeMap<String, Value>| -> Vec<String> {
                    let missing = defaults.iter().filter(|(name, _)| {
                        resources
                            .get(kind)
                            .is_none_or(|r| r.get(name.as_str()).is_none())
                    });
                    let missing: Vec<(String, Value)> =
                        missing.map(|(n, a)| (n.clone(), a.clone())).collect();
                    if !missing.is_empty() {
                        map_entry(resources, kind).extend(missing.iter().cloned());
                    }
                    missing.into_iter().map(|(name, _)| name).collect()
                };
                let (limits, requests) =
                    (set("limits", &defaults[0]), set("requests", &defaults[1]));
                for (kind, names) in [("request", requests), ("limit", limits)] {
                    if !names.is_empty() {
                        notes.push(format!("{} {kind} for {word} {name}", names.join(", ")));
                    }
                }
            }
        }
        if !notes.is_empty() {
            pod.set_annotation(
                SET_BY,
                &format!("LimitRanger plugin set: {}", notes.join("; ")),
            );
        }
    }
}

/// Rejects values outside a range.
pub fn check(cluster: &dyn Reader, resource: &Resource, object: &Object) -> Result<(), Status> {
    let judge: fn(&Object, &Object) -> Vec<String> = match resource.table.as_str() {
        "/pods" => of_a_pod,
        "/persistentvolumeclaims" => of_a_claim,
        _ => return Ok(()),
    };
    for range in ranges(cluster, object.namespace()) {
        let mut problems: Vec<String> = Vec::new();
        for problem in judge(&range, object) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        if !problems.is_empty() {
            let text = if problems.len() == 1 {
                problems.remove(0)
            } else {
                format!("[{}]", problems.join(", "))
            };
            return Err(forbidden(resource, object, &text));
        }
    }
    Ok(())
}

fn of_a_pod(range: &Object, pod: &Object) -> Vec<String> {
    let mut problems = Vec::new();
    for entry in entries(range, "Container") {
        for list in ["/spec/containers", "/spec/initContainers"] {
            for container in pod
                .pointer(list)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let resources = &container["resources"];
                problems.extend(judge(
                    "Container",
                    entry,
                    &amounts(&resources["requests"]),
                    &amounts(&resources["limits"]),
                ));
            }
        }
    }
    for entry in entries(range, "Pod") {
        problems.extend(judge(
            "Pod",
            entry,
            &of_pod(pod, "requests"),
            &of_pod(pod, "limits"),
        ));
    }
    problems
}

fn of_a_claim(range: &Object, claim: &Object) -> Vec<String> {
    const KIND: &str = "PersistentVolumeClaim";
    let requests = amounts(
        claim
            .pointer("/spec/resources/requests")
            .unwrap_or(&Value::Null),
    );
    let mut problems = Vec::new();
    for entry in entries(range, KIND) {
        problems.extend(
            amounts(&entry["min"])
                .iter()
                .filter_map(|(name, min)| least(KIND, name, min, &requests, &Amounts::new())),
        );
        for (name, max) in amounts(&entry["max"]) {
            let what = format!("maximum {name} usage per {KIND} is {max}");
            problems.extend(match requests.get(&name) {
                None => Some(format!("{what}.  No request is specified")),
                Some(wanted) if *wanted > max => Some(format!("{what}, but request is {wanted}")),
                Some(_) => None,
            });
        }
    }
    problems
}

fn judge(of: &str, entry: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(
        amounts(&entry["min"])
            .iter()
            .filter_map(|(name, min)| least(of, name, min, requests, limits)),
    );
    problems.extend(
        amounts(&entry["max"])
            .iter()
            .filter_map(|(name, max)| most(of, name, max, requests, limits)),
    );
    let ratios = amounts(&entry["maxLimitRequestRatio"]);
    problems.extend(
        ratios
            .iter()
            .filter_map(|(name, max)| ratio(of, name, max, requests.get(name), limits.get(name))),
    );
    problems
}

fn least(
    of: &str,
    name: &str,
    min: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let what = format!("minimum {name} usage per {of} is {min}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{what}.  No request is specified")),
        (Some(request), _) if request < min => Some(format!("{what}, but request is {request}")),
        (_, Some(limit)) if limit < min => Some(format!("{what}, but limit is {limit}")),
        _ => None,
    }
}

fn most(
    of: &str,
    name: &str,
    max: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let what = format!("maximum {name} usage per {of} is {max}");
    match (requests.get(name), limits.get(name)) {
        (_, None) => Some(format!("{what}.  No limit is specified")),
        (_, Some(limit)) if limit > max => Some(format!("{what}, but limit is {limit}")),
        (Some(request), _) if request > max => Some(format!("{what}, but request is {request}")),
        _ => None,
    }
}

fn ratio(
    of: &str,
    name: &str,
    max: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let what = format!("{name} max limit to request ratio per {of} is {max}");
    let given = |q: Option<&Quantity>| q.map(Quantity::as_f64).filter(|n| *n != 0.0);
    match (given(request), given(limit)) {
        (None, _) => Some(format!(
            "{what}, but no request is specified or request is 0"
        )),
        (_, None) => Some(format!("{what}, but no limit is specified or limit is 0")),
        (Some(request), Some(limit)) if limit / request > max.as_f64() => Some(format!(
            "{what}, but provided ratio is {:.6}",
            limit / request
        )),
        _ => None,
    }
}
