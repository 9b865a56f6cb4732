//! HorizontalPodAutoscaler as the real controller behaves in a cluster without metrics: the
//! replicas of the target are kept between minimum and maximum.

use super::{
    fields::{Cond, conditions, rfc3339, set_condition, set_spec, spec_i64, status_i64, text},
    kind::Kind,
    plan::{Note, Plan},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;

/// How often an autoscaler is reconciled, in seconds.
pub const PERIOD: i64 = 15;

/// The kind of the target, if it can be scaled here.
pub fn target_kind(scaler: &Object) -> Option<Kind> {
    Kind::of_api_version(
        scaler.str_at("/spec/scaleTargetRef/apiVersion"),
        scaler.str_at("/spec/scaleTargetRef/kind"),
    )
}

/// The next step of an autoscaler.
pub fn reconcile(scaler: &Object, target: Option<&Object>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if scaler.deletion_timestamp().is_some() {
        return plan;
    }
    let mut status = scaler
        .pointer("/status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut list = conditions(scaler);
    match target {
        None => missing(&mut plan, scaler, &mut status, &mut list, now),
        Some(target) => scale(&mut plan, scaler, target, &mut status, &mut list, now),
    }
    status.insert("conditions".into(), Value::Array(list));
    plan.status(scaler, Value::Object(status), Vec::new());
    plan
}

fn set(
    list: &mut Vec<Value>,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    set_condition(
        list,
        Cond {
            kind,
            status,
            reason,
            message,
        },
        now,
    );
}

fn missing(
    plan: &mut Plan,
    scaler: &Object,
    status: &mut Map<String, Value>,
    list: &mut Vec<Value>,
    now: Timestamp,
) {
    let name = scaler.str_at("/spec/scaleTargetRef/name");
    let error = match target_kind(scaler).map(Kind::names) {
        Some(("", _, _, resource)) => format!("{resource} \"{name}\" not found"),
        Some((group, _, _, resource)) => format!("{resource}.{group} \"{name}\" not found"),
        None => format!(
            "no matches for kind \"{}\"",
            scaler.str_at("/spec/scaleTargetRef/kind")
        ),
    };
    let message =
        format!("the HPA controller was unable to get the target's current scale: {error}");
    set(list, "AbleToScale", false, "FailedGetScale", &message, now);
    status.entry("desiredReplicas").or_insert(0.into());
    plan.remark(Note::warning("FailedGetScale", error));
}

fn scale(
    plan: &mut Plan,
    scaler: &Object,
    target: &Object,
    status: &mut Map<String, Value>,
    list: &mut Vec<Value>,
    now: Timestamp,
) {
    let (min, max) = (
        spec_i64(scaler, "minReplicas", 1),
        spec_i64(scaler, "maxReplicas", 1),
    );
    let current = spec_i64(target, "replicas", 1);
    set(
        list,
        "AbleToScale",
        true,
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
        now,
    );
    let wanted = match current {
        0 if min != 0 => {
            let message = "scaling is disabled since the replica count of the target is zero";
            set(
                list,
                "ScalingActive",
                false,
                "ScalingDisabled",
                message,
                now,
            );
            None
        }
        n if n > max => Some((max, "Current number of replicas above Spec.MaxReplicas")),
        n if n < min => Some((min, "Current number of replicas below Spec.MinReplicas")),
        _ => {
            without_metrics(plan, scaler, status, list, now);
            status.insert("currentReplicas".into(), current.into());
            status.insert(
                "desiredReplicas".into(),
                status_i64(scaler, "desiredReplicas").into(),
            );
            return;
        }
    };
    if let Some((size, reason)) = wanted {
        let mut sized = target.clone();
        set_spec(&mut sized, "replicas", size.into());
        plan.update(
            sized,
            Some(Note::normal(
                "SuccessfulRescale",
                format!("New size: {size}; reason: {reason}"),
            )),
        );
        let message = format!("the HPA controller was able to update the target scale to {size}");
        set(list, "AbleToScale", true, "SucceededRescale", &message, now);
        status.insert("lastScaleTime".into(), rfc3339(now).into());
    }
    status.remove("currentMetrics");
    status.insert("currentReplicas".into(), current.into());
    status.insert(
        "desiredReplicas".into(),
        wanted.map_or(0, |(size, _)| size).into(),
    );
}

/// There is no metrics server: every metric fails, and the first failure is reported.
fn without_metrics(
    plan: &mut Plan,
    scaler: &Object,
    status: &mut Map<String, Value>,
    list: &mut Vec<Value>,
    now: Timestamp,
) {
    let metrics = scaler
        .pointer("/spec/metrics")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let failures: Vec<Failure> = metrics.iter().map(failure).collect();
    let Some(first) = failures.first() else {
        return;
    };
    let message = format!(
        "the HPA was unable to compute the replica count: {}",
        first.error
    );
    set(list, "ScalingActive", false, first.reason, &message, now);
    for failure in &failures {
        plan.remark(Note::warning(failure.reason, failure.error.clone()));
    }
    let (invalid, all) = (failures.len(), metrics.len());
    let message = format!(
        "invalid metrics ({invalid} invalid out of {all}), first error is: {}: {}",
        first.prefix, first.error
    );
    plan.remark(Note::warning("FailedComputeMetricsReplicas", message));
    status.insert(
        "currentMetrics".into(),
        metrics.iter().map(|_| json!({"type": ""})).collect(),
    );
}

/// Why a metric is not available.
struct Failure {
    reason: &'static str,
    prefix: String,
    error: String,
}

fn failure(metric: &Value) -> Failure {
    let at = |pointer: &str| {
        metric
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let utilization = |field: &str| {
        metric
            .pointer(&format!("/{field}/target/averageUtilization"))
            .is_some()
    };
    let resource = |field: &str| {
        let name = at(&format!("/{field}/name"));
        let what = if utilization(field) {
            "utilization"
        } else {
            "usage"
        };
        format!(
            "failed to get {name} {what}: unable to get metrics for resource {name}: unable to fetch metrics from resource metrics API: \
             the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
    };
    const CUSTOM: &str = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";
    const EXTERNAL: &str = "unable to fetch metrics from external metrics API: no external metrics API (external.metrics.k8s.io) registered";
    match text(metric, "type") {
        "ContainerResource" => Failure {
            reason: "FailedGetContainerResourceMetric",
            prefix: format!(
                "failed to get {} container metric value",
                at("/containerResource/container")
            ),
            error: resource("containerResource"),
        },
        "Pods" => {
            let name = at("/pods/metric/name");
            let error = format!("unable to get metric {name}: {CUSTOM}");
            Failure {
                reason: "FailedGetPodsMetric",
                prefix: "failed to get pods metric value".into(),
                error,
            }
        }
        "Object" => {
            let name = at("/object/metric/name");
            let error = format!("unable to get metric {name}: {CUSTOM}");
            Failure {
                reason: "FailedGetObjectMetric",
                prefix: "failed to get object metric value".into(),
                error,
            }
        }
        "External" => {
            let name = at("/external/metric/name");
            let error = format!("unable to get external metric {name}: {EXTERNAL}");
            Failure {
                reason: "FailedGetExternalMetric",
                prefix: format!("failed to get {name} external metric value"),
                error,
            }
        }
        _ => Failure {
            reason: "FailedGetResourceMetric",
            prefix: format!(
                "failed to get {} resource metric value",
                at("/resource/name")
            ),
            error: resource("resource"),
        },
    }
}
