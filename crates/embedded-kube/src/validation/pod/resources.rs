//! Requests and limits of containers and pods.

use super::super::rules::{At, Check};
use crate::status::Cause;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::formats::{dns_label, qualified_name};

/// Resource names without a domain that Kubernetes knows.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// Those with integer quantities.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether the resource is one of Kubernetes' own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether the resource can be overcommitted.
pub fn allows_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

pub fn is_supported_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

pub fn standard_name(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    causes.extend(qualified_name(name).iter().map(|p| at.invalid_as(name, p)));
    let known =
        STANDARD.contains(&name) || is_huge_pages(name) || name.starts_with("requests.hugepages-");
    if causes.len() == before && !name.contains('/') && !known {
        causes.push(at.invalid_as(name, "must be a standard resource type or fully qualified"));
    }
}

pub fn container_name(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    standard_name(at, name, causes);
    let ours = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_pages(name);
    if !name.contains('/') && !ours {
        causes.push(at.invalid_as(name, "must be a standard resource for containers"));
    } else if name.contains('/') && !is_native(name) && !is_extended(name) {
        causes.push(at.invalid_as(name, "doesn't follow extended resource name standard"));
    }
}

fn pod_name(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    standard_name(at, name, causes);
    if causes.len() == before && !is_supported_of_pods(name) {
        causes.push(Cause::not_supported(
            &at.path,
            &name.into(),
            &["cpu", "hugepages-", "memory"],
        ));
    }
}

/// An amount of a resource.
pub fn amount(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let Ok(quantity) = at.text().parse::<Quantity>() else {
        return;
    };
    if quantity < Quantity::ZERO {
        causes.push(at.invalid("must be greater than or equal to 0"));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && quantity.milli_value() % 1000 != 0 {
        causes.push(at.invalid("must be an integer"));
    }
}

fn pages(at: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let Some(size) = name.strip_prefix("hugepages-") else {
        return;
    };
    let whole = |size: &Quantity| *size > Quantity::ZERO && size.milli_value() % 1000 == 0;
    let quantity = at.text().parse::<Quantity>().unwrap_or(Quantity::ZERO);
    let divides = size
        .parse::<Quantity>()
        .is_ok_and(|size| whole(&size) && quantity.value() % size.value() == 0);
    if !divides {
        causes.push(at.invalid(&format!(
            "{quantity} is not positive integer multiple of {name}"
        )));
    }
}

/// `resources` of a container.
pub fn container(at: &At<'_>, claims: &BTreeSet<&str>, causes: &mut Vec<Cause>) {
    requirements(at, container_name, claims, causes);
}

/// The overhead of a runtime.
pub fn overhead(at: &At<'_>, causes: &mut Vec<Cause>) {
    let limits = At::new(at.value, format!("{}.limits", at.path));
    for (name, limit) in limits.entries() {
        container_name(&limit, name, causes);
        amount(&limit, name, causes);
        pages(&limit, name, causes);
    }
    let has = |test: fn(&str) -> bool| at.entries().iter().any(|(name, _)| test(name));
    if has(is_huge_pages) && !has(|n| matches!(n, "cpu" | "memory")) {
        causes.push(at.forbidden("HugePages require cpu or memory"));
    }
}

fn requirements(
    at: &At<'_>,
    name_check: fn(&At<'_>, &str, &mut Vec<Cause>),
    claims: &BTreeSet<&str>,
    causes: &mut Vec<Cause>,
) {
    let (limits, requests) = (at.get("limits"), at.get("requests"));
    for (name, limit) in limits.entries() {
        name_check(&limit, name, causes);
        amount(&limit, name, causes);
        pages(&limit, name, causes);
    }
    for (name, request) in requests.entries() {
        name_check(&request, name, causes);
        amount(&request, name, causes);
        let limit = limits.key(name);
        if !limit.is_null() {
            let (wanted, most) = (
                request.text().parse::<Quantity>(),
                limit.text().parse::<Quantity>(),
            );
            let detail = match (wanted, most) {
                (Ok(wanted), Ok(most)) if wanted != most && !allows_overcommit(name) => {
                    Some("must be equal to")
                }
                (Ok(wanted), Ok(most)) if wanted > most => Some("must be less than or equal to"),
                _ => None,
            };
            let most = limit.text();
            causes.extend(detail.map(|d| {
                requests.invalid_as(request.text(), &format!("{d} {name} limit of {most}"))
            }));
        } else if !allows_overcommit(name) {
            causes.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        pages(&request, name, causes);
    }
    let has = |test: fn(&str) -> bool| {
        limits
            .entries()
            .iter()
            .chain(&requests.entries())
            .any(|(name, _)| test(name))
    };
    if has(is_huge_pages) && !has(|n| matches!(n, "cpu" | "memory")) {
        causes.push(at.forbidden("HugePages require cpu or memory"));
    }
    claim_names(&at.get("claims"), claims, causes);
}

fn claim_names(all: &At<'_>, known: &BTreeSet<&str>, causes: &mut Vec<Cause>) {
    let mut seen: HashSet<String> = HashSet::new();
    for claim in all.items() {
        let (name, request) = (claim.get("name").text(), claim.get("request"));
        if name.is_empty() {
            causes.push(claim.required(""));
            continue;
        }
        if seen.contains(name) {
            causes.push(Cause::duplicate(&claim.path, &name.into()));
        } else {
            request.check(&[Check::Form(dns_label)], causes);
            let key = if request.is_empty() {
                name.to_owned()
            } else {
                format!("{name}/{}", request.text())
            };
            if seen.contains(&key) {
                causes.push(Cause::duplicate(&claim.path, &key.as_str().into()));
            } else if request.is_empty() {
                let parts = seen
                    .iter()
                    .filter(|k| k.split_once('/').is_some_and(|(of, _)| of == name))
                    .count();
                causes.extend((0..parts).map(|_| Cause::duplicate(&claim.path, &name.into())));
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().copied().collect();
            let rest = if names.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", names.join(", "))
            };
            let message = format!(
                "Not found: \"{name}\": must be one of the names in pod.spec.resourceClaims{rest}"
            );
            causes.push(Cause {
                reason: "FieldValueNotFound",
                message,
                field: claim.path.clone(),
            });
        }
    }
}

/// Requests or limits of all containers together, as the scheduler counts them: sidecars run beside
/// the containers, other init containers one after the other before them.
pub fn aggregate(spec: &Value, kind: &str) -> Amounts {
    let of = |container: &Value| -> Amounts {
        let list = container
            .pointer(&format!("/resources/{kind}"))
            .and_then(Value::as_object);
        let parsed = |(name, amount): (&String, &Value)| {
            Some((name.clone(), amount.as_str()?.parse().ok()?))
        };
        list.into_iter().flatten().filter_map(parsed).collect()
    };
    let list = |name: &str| {
        spec.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (mut total, mut sidecars, mut initial) = (Amounts::new(), Amounts::new(), Amounts::new());
    list("containers")
        .iter()
        .for_each(|c| add(&mut total, &of(c)));
    for container in list("initContainers") {
        let mut needs = of(&container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &needs);
            add(&mut sidecars, &needs);
            needs = sidecars.clone();
        } else {
            add(&mut needs, &sidecars);
        }
        raise(&mut initial, &needs);
    }
    raise(&mut total, &initial);
    total
}

pub fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or(*amount, |held| held.plus(amount));
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|held| held < amount) {
            to.insert(name.clone(), *amount);
        }
    }
}

/// `resources` of a pod against those of its containers.
pub fn pod(spec: &At<'_>, claims: &BTreeSet<&str>, causes: &mut Vec<Cause>) {
    let at = spec.get("resources");
    if at.is_null() {
        return;
    }
    if spec.get("os.name").text() == "windows" {
        causes.push(at.forbidden("may not be set for a windows pod"));
        return;
    }
    if !at.get("claims").is_null() {
        causes.push(
            at.get("claims")
                .forbidden("claims may not be set for Resources at pod-level"),
        );
    }
    requirements(&at, pod_name, claims, causes);
    let (requests, limits) = (at.get("requests"), at.get("limits"));
    let parsed = |at: &At<'_>| at.text().parse::<Quantity>().ok();
    for (name, sum) in aggregate(spec.value, "requests") {
        let own = requests.key(&name);
        if parsed(&own).is_some_and(|own| sum > own) {
            causes.push(own.invalid(&format!(
                "must be greater than or equal to aggregate container requests of {sum}"
            )));
        }
    }
    for (name, sum) in aggregate(spec.value, "limits")
        .into_iter()
        .filter(|(name, _)| is_huge_pages(name))
    {
        let own = limits.key(&name);
        if parsed(&own).is_some_and(|own| sum > own) {
            causes.push(own.invalid(&format!(
                "must be greater than or equal to aggregate container limits of {sum}"
            )));
        }
    }
    for (i, container) in spec.get("containers").items().iter().enumerate() {
        for (name, limit) in container.get("resources.limits").entries() {
            let own = limits.key(name);
            if let (Some(most), Some(wanted)) = (parsed(&own), parsed(&limit))
                && wanted > most
            {
                let at = At::new(
                    limit.value,
                    format!("{}.containers[{i}][{name}].limits", at.path),
                );
                causes.push(at.invalid(&format!(
                    "must be less than or equal to pod limits of {most}"
                )));
            }
        }
    }
}
