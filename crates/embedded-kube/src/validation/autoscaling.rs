//! Horizontal pod autoscalers, in the v2 form.

use super::rules::{At, Check};
use super::volumes;
use crate::status::Cause;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const SOURCES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
const POLICIES: &[&str] = &["Percent", "Pods"];
const MAX_WINDOW: i64 = 3600;
const MAX_PERIOD: i64 = 1800;

pub fn autoscaler(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    min.check(&[Check::AtLeast(1)], causes);
    let limit = max.int().unwrap_or(0);
    match limit {
        0 => causes.push(max.required("must be set and greater than 0")),
        n if n < 0 => causes.push(max.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if min.int().is_some_and(|min| limit < min) {
        causes.push(max.invalid_as(limit, "must be greater than or equal to `minReplicas`"));
    }
    scaled(&spec.get("scaleTargetRef"), causes);
    let metrics = spec.get("metrics");
    metrics
        .items()
        .iter()
        .for_each(|metric| self::metric(metric, causes));
    let scales_to_zero = |m: &At<'_>| matches!(m.get("type").text(), "Object" | "External");
    if min.int() == Some(0) && !metrics.items().iter().any(scales_to_zero) {
        causes.push(metrics.forbidden("must specify at least one Object or External metric to support scaling to zero replicas"));
    }
    for direction in ["behavior.scaleUp", "behavior.scaleDown"].map(|f| spec.get(f)) {
        if !direction.is_null() {
            scaling(&direction, causes);
        }
    }
}

pub fn autoscaler_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    status
        .get("currentReplicas")
        .check(&[Check::AtLeast(0)], causes);
    status
        .get("desiredReplicas")
        .check(&[Check::AtLeast(0)], causes);
}

/// The scale target. Its version may only change together with its kind; in the core group, only
/// one kind can be scaled.
fn scaled(to: &At<'_>, causes: &mut Vec<Cause>) {
    reference(to, causes);
    let (kind, same) = (to.get("kind"), |field: &str| {
        to.old.is_some() && !to.get(field).is_changed()
    });
    if !(same("kind") && same("apiVersion")) {
        version(to, kind.text() == "ReplicationController", causes);
    }
}

fn reference(to: &At<'_>, causes: &mut Vec<Cause>) {
    for field in ["kind", "name"] {
        to.get(field).check(
            &[Check::Required(""), Check::Form(formats::path_segment)],
            causes,
        );
    }
}

fn version(to: &At<'_>, core_allowed: bool, causes: &mut Vec<Cause>) {
    let version = to.get("apiVersion");
    let (group, more) = version.text().split_once('/').unwrap_or_default();
    if more.contains('/') {
        causes.push(version.invalid(&format!(
            "unexpected GroupVersion string: {}",
            version.text()
        )));
    } else if group.is_empty() && !core_allowed {
        causes.push(version.invalid("apiVersion must specify API group"));
    }
}

fn scaling(rules: &At<'_>, causes: &mut Vec<Cause>) {
    let (window, select, policies) = (
        rules.get("stabilizationWindowSeconds"),
        rules.get("selectPolicy"),
        rules.get("policies"),
    );
    match window.int() {
        Some(n) if n < 0 => causes.push(window.invalid("must be greater than or equal to zero")),
        Some(n) if n > MAX_WINDOW => {
            causes.push(window.invalid(&format!("must be less than or equal to {MAX_WINDOW}")))
        }
        _ => {}
    }
    if !select.is_null() && !matches!(select.text(), "Max" | "Min" | "Disabled") {
        causes.push(select.not_supported(&["Disabled", "Max", "Min"]));
    }
    if policies.is_empty() {
        causes.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let (kind, value, period) = (
            policy.get("type"),
            policy.get("value"),
            policy.get("periodSeconds"),
        );
        if !POLICIES.contains(&kind.text()) {
            causes.push(kind.not_supported(POLICIES));
        }
        for number in [&value, &period]
            .into_iter()
            .filter(|n| n.int().unwrap_or(0) <= 0)
        {
            causes.push(number.invalid_as(number.int().unwrap_or(0), "must be greater than zero"));
        }
        if period.int().is_some_and(|n| n > MAX_PERIOD) {
            causes.push(period.invalid(&format!("must be less than or equal to {MAX_PERIOD}")));
        }
    }
    let tolerance = rules.get("tolerance");
    if !tolerance.is_null() {
        volumes::non_negative(&tolerance, causes);
    }
}

/// The types of metrics, in the order in which the API server checks them.
const KINDS: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

fn metric(metric: &At<'_>, causes: &mut Vec<Cause>) {
    let kind = metric.get("type");
    let known = SOURCES.contains(&kind.text());
    if kind.is_empty() {
        causes.push(kind.required("must specify a metric source type"));
    }
    if !known {
        causes.push(kind.not_supported(SOURCES));
    }
    let present: Vec<&str> = KINDS
        .iter()
        .map(|(field, _)| *field)
        .filter(|field| !metric.get(field).is_null())
        .collect();
    if let Some(first) = present.first() {
        source(first, &metric.get(first), causes);
    }
    let expected = KINDS
        .iter()
        .find(|(_, name)| *name == kind.text())
        .map_or("", |(field, _)| field);
    if !known {
        causes.push(kind.not_supported(SOURCES));
    } else if !present.contains(&expected) {
        causes.push(
            metric
                .get(expected)
                .required("must populate information for the given metric source"),
        );
    }
    if present.len() != 1 {
        for field in present.iter().filter(|field| **field != expected) {
            causes.push(
                metric
                    .get(field)
                    .forbidden("must populate the given metric source only"),
            );
        }
    }
}

fn source(field: &str, source: &At<'_>, causes: &mut Vec<Cause>) {
    match field {
        "object" => {
            reference(&source.get("describedObject"), causes);
            version(&source.get("describedObject"), true, causes);
            identifier(&source.get("metric"), causes);
        }
        "external" | "pods" => identifier(&source.get("metric"), causes),
        _ => {
            let (name, container) = (source.get("name"), source.get("container"));
            match name.is_empty() {
                true => causes.push(name.required("must specify a resource name")),
                false if field == "containerResource" => {
                    super::limits::container_resource_name(name.text(), &name, causes)
                }
                false => {}
            }
            if field == "containerResource" {
                container.check(
                    &[
                        Check::Required("must specify a container"),
                        Check::Form(formats::dns_label),
                    ],
                    causes,
                );
            }
        }
    }
    let target = source.get("target");
    metric_target(&target, causes);
    let [value, average, utilization] =
        ["value", "averageValue", "averageUtilization"].map(|f| target.get(f));
    let missing = |at: &At<'_>, detail: &str| Some(at.required(detail));
    let cause = match field {
        "object" if value.is_null() && average.is_null() => {
            missing(&average, "must set either a target value or averageValue")
        }
        "external" if value.is_null() && average.is_null() => missing(
            &average,
            "must set either a target value for metric or a per-pod target",
        ),
        "external" if !value.is_null() && !average.is_null() => {
            Some(value.forbidden("may not set both a target value for metric and a per-pod target"))
        }
        "pods" if average.is_null() => {
            missing(&average, "must specify a positive target averageValue")
        }
        "resource" | "containerResource" if utilization.is_null() && average.is_null() => missing(
            &utilization,
            "must set either a target raw value or a target utilization",
        ),
        "resource" | "containerResource" if !utilization.is_null() && !average.is_null() => {
            Some(average.forbidden("may not set both a target raw value and a target utilization"))
        }
        _ => None,
    };
    causes.extend(cause);
}

fn metric_target(target: &At<'_>, causes: &mut Vec<Cause>) {
    let kind = target.get("type");
    if kind.is_empty() {
        causes.push(kind.required("must specify a metric target type"));
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        causes.push(kind.invalid("must be either Utilization, Value, or AverageValue"));
    }
    for amount in ["value", "averageValue"].map(|f| target.get(f)) {
        let mut found = Vec::new();
        if !amount.is_null() {
            volumes::positive(&amount, &mut found);
        }
        causes.extend((!found.is_empty()).then(|| amount.invalid("must be positive")));
    }
    let utilization = target.get("averageUtilization");
    if utilization.int().is_some_and(|n| n < 1) {
        causes.push(utilization.invalid("must be greater than 0"));
    }
}

fn identifier(id: &At<'_>, causes: &mut Vec<Cause>) {
    id.get("name").check(
        &[
            Check::Required("must specify a metric name"),
            Check::Form(formats::path_segment),
        ],
        causes,
    );
}
