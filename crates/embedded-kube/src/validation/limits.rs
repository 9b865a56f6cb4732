//! Limit ranges, quotas, and the names of resources.

use super::pod::resources;
use super::rules::At;
use crate::status::Cause;
use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::quantity::Quantity;

const COMPUTE: [&str; 6] = [
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];
const QUOTA: [&str; 19] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
const OPPOSITES: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["NotTerminating", "Terminating"],
];

/// The name of a container resource.
pub fn container_resource_name(name: &str, at: &At<'_>, causes: &mut Vec<Cause>) {
    resources::container_name(at, name, causes);
}

fn is_quota_name(name: &str) -> bool {
    QUOTA.contains(&name)
        || name.starts_with("requests.hugepages-")
        || resources::is_huge_pages(name)
}

pub fn limit_range(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let limits = At::of(object, old, "spec").get("limits").items();
    for (i, limit) in limits.iter().enumerate() {
        let kind = limit.get("type");
        let before = causes.len();
        kind.form(tiphys_kube_schema::formats::qualified_name, causes);
        let known = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if causes.len() == before && !kind.text().contains('/') && !known {
            causes.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        if limits[..i]
            .iter()
            .any(|other| other.get("type").text() == kind.text())
        {
            causes.push(kind.duplicate());
        }
        names(limit, kind.text(), causes);
        amounts(limit, causes);
    }
}

fn names(limit: &At<'_>, kind: &str, causes: &mut Vec<Cause>) {
    let check = |field: &str, causes: &mut Vec<Cause>| {
        for (name, at) in limit.get(field).entries() {
            match kind {
                "Pod" | "Container" => resources::container_name(&at, name, causes),
                _ => resources::standard_name(&at, name, causes),
            }
        }
    };
    check("max", causes);
    check("min", causes);
    for field in ["default", "defaultRequest"] {
        match kind {
            "Pod" if limit.get(field).is_empty() => {}
            "Pod" => causes.push(
                limit
                    .get(field)
                    .forbidden("may not be specified when `type` is 'Pod'"),
            ),
            _ => check(field, causes),
        }
    }
    let storage = |field: &str| limit.get(field).value.get("storage").is_some();
    if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        causes.push(limit.get("limits").required(detail));
    }
    check("maxLimitRequestRatio", causes);
}

/// Checks that the bounds of each resource are consistent.
fn amounts(limit: &At<'_>, causes: &mut Vec<Cause>) {
    let of = |field: &str| -> BTreeMap<String, Quantity> {
        let entries = limit.get(field).entries();
        entries
            .into_iter()
            .filter_map(|(name, at)| Some((name.to_owned(), at.text().parse().ok()?)))
            .collect()
    };
    let is_pod = limit.get("type").text() == "Pod";
    let given = |field: &str| if is_pod { BTreeMap::new() } else { of(field) };
    let (min, max, ratio) = (of("min"), of("max"), of("maxLimitRequestRatio"));
    let (default, request) = (given("default"), given("defaultRequest"));
    let mut all: Vec<&String> = [&min, &max, &default, &request, &ratio]
        .iter()
        .flat_map(|map| map.keys())
        .collect();
    all.sort();
    all.dedup();
    for name in all {
        let (min, max, ratio) = (min.get(name), max.get(name), ratio.get(name));
        let (default, request) = (default.get(name), request.get(name));
        let mut compare = |field: &str,
                           shown: &Quantity,
                           low: (&str, Option<&Quantity>),
                           high: (&str, Option<&Quantity>)| {
            if let (Some(a), Some(b)) = (low.1, high.1)
                && a > b
            {
                let detail = format!("{} value {a} is greater than {} value {b}", low.0, high.0);
                causes.push(
                    limit
                        .get(field)
                        .key(name)
                        .invalid_as(shown.to_string(), &detail),
                );
            }
        };
        let zero = Quantity::ZERO;
        compare("min", min.unwrap_or(&zero), ("min", min), ("max", max));
        compare(
            "defaultRequest",
            request.unwrap_or(&zero),
            ("min", min),
            ("default request", request),
        );
        compare(
            "defaultRequest",
            request.unwrap_or(&zero),
            ("default request", request),
            ("max", max),
        );
        compare(
            "defaultRequest",
            request.unwrap_or(&zero),
            ("default request", request),
            ("default limit", default),
        );
        compare(
            "default",
            min.unwrap_or(&zero),
            ("min", min),
            ("default", default),
        );
        compare(
            "default",
            max.unwrap_or(&zero),
            ("default", default),
            ("max", max),
        );
        if let Some(ratio) = ratio {
            ratios(
                &limit.get("maxLimitRequestRatio").key(name),
                ratio,
                min.zip(max),
                causes,
            );
        }
        if let (Some(default), Some(request), false) =
            (default, request, resources::allows_overcommit(name))
            && default != request
        {
            let detail = format!(
                "default value {default} must equal to defaultRequest value {request} in {name}"
            );
            causes.push(
                limit
                    .get("defaultRequest")
                    .key(name)
                    .invalid_as(request.to_string(), &detail),
            );
        }
    }
}

fn ratios(
    at: &At<'_>,
    ratio: &Quantity,
    bounds: Option<(&Quantity, &Quantity)>,
    causes: &mut Vec<Cause>,
) {
    if ratio.as_f64() < 1.0 {
        causes.push(at.invalid_as(ratio.to_string(), &format!("ratio {ratio} is less than 1")));
    }
    if let Some((min, max)) = bounds {
        let most = max.as_f64() / min.as_f64();
        if ratio.as_f64() > most {
            causes.push(at.invalid_as(
                ratio.to_string(),
                &format!("ratio {ratio} is greater than max/min = {most:.6}"),
            ));
        }
    }
}

/// The quantities of a quota, in its spec or status.
fn quota_amounts(all: &At<'_>, causes: &mut Vec<Cause>) {
    for (name, at) in all.entries() {
        resources::standard_name(&at, name, causes);
        if !name.contains('/') && !is_quota_name(name) {
            causes.push(at.invalid_as(name, "must be a standard resource for quota"));
        }
        resources::amount(&at, name, causes);
    }
}

pub fn quota(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (hard, scopes, selector) = (
        spec.get("hard"),
        spec.get("scopes"),
        spec.get("scopeSelector"),
    );
    quota_amounts(&hard, causes);
    let names: Vec<&str> = hard.entries().iter().map(|(name, _)| *name).collect();
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            causes.push(scopes.invalid("unsupported scope"));
        }
        let unfit = names
            .iter()
            .filter(|name| is_quota_name(name) && !fits(scope.text(), name));
        causes.extend(unfit.map(|_| scopes.invalid("unsupported scope applied to resource")));
    }
    let has = |list: &[&str], pair: &[&str; 2]| pair.iter().all(|scope| list.contains(scope));
    let given: Vec<&str> = scopes.items().iter().map(At::text).collect();
    causes.extend(
        OPPOSITES
            .iter()
            .filter(|pair| has(&given, pair))
            .map(|_| scopes.invalid("conflicting scopes")),
    );
    if !selector.is_null() {
        scope_selector(&selector, &scopes, &names, causes);
    }
    let sorted = |value: Option<&Value>| {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if old.is_some() && sorted(scopes.old) != sorted(Some(scopes.value)) {
        causes.push(scopes.invalid_as(scopes.value.clone(), "field is immutable"));
    }
}

/// Whether a scope applies to this resource.
fn fits(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        scope if SCOPES.contains(&scope) => resource == "pods" || COMPUTE.contains(&resource),
        _ => true,
    }
}

fn scope_selector(selector: &At<'_>, scopes: &At<'_>, names: &[&str], causes: &mut Vec<Cause>) {
    let all = selector.get("matchExpressions");
    let mut seen = Vec::new();
    for expression in all.items() {
        let part = |field: &str| At {
            path: format!("{}.{field}", all.path),
            ..expression.get(field)
        };
        let (scope, operator, values) = (part("scopeName"), part("operator"), part("values"));
        if !SCOPES.contains(&scope.text()) {
            causes.push(scope.invalid("unsupported scope"));
        }
        let unfit = names
            .iter()
            .filter(|name| is_quota_name(name) && !fits(scope.text(), name));
        for _ in unfit {
            let whole = At {
                path: all.path.clone(),
                ..selector.clone()
            };
            causes.push(whole.invalid_struct(
                "core/v1.ScopeSelector",
                "unsupported scope applied to resource",
            ));
        }
        let exists_only = !matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass")
            && SCOPES.contains(&scope.text());
        if exists_only && operator.text() != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                          ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            causes.push(operator.invalid(detail));
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                causes.push(values.required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                causes.push(values.invalid("must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => causes.push(operator.invalid("not a valid selector operator")),
        }
        seen.push(scope.text());
    }
    for _ in OPPOSITES
        .iter()
        .filter(|pair| pair.iter().all(|scope| seen.contains(scope)))
    {
        causes.push(Cause::invalid(
            &all.path,
            scopes.value,
            "conflicting scopes",
        ));
    }
}

pub fn quota_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    quota_amounts(&status.get("hard"), causes);
    quota_amounts(&status.get("used"), causes);
}
