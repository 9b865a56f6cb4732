//! HorizontalPodAutoscaler: can it read its metrics and scale its target?

use crate::{
    error::EngineError,
    health::view::{View, text_of},
    types::{Health, HealthStatus},
};
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_gocompat::json_error;

const CONDITIONS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Pairs of condition type and reason that need manual repair.
const DEGRADED: [(&str, &str); 8] = [
    ("AbleToScale", "FailedGetScale"),
    ("AbleToScale", "FailedUpdateScale"),
    ("ScalingActive", "FailedGetResourceMetric"),
    ("ScalingActive", "FailedGetObjectMetric"),
    ("ScalingActive", "FailedGetPodsMetric"),
    ("ScalingActive", "FailedGetExternalMetric"),
    ("ScalingActive", "FailedComputeMetricsReplicas"),
    ("ScalingActive", "InvalidSelector"),
];

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("HPA", object, &["v1", "v2"])?;
    if object.gvk().version == "v2" {
        return Ok(judge(view.list("/status/conditions")));
    }
    // Version 1 has no field for conditions: the API server returns them in an annotation.
    let Some(text) = object.annotation(CONDITIONS_ANNOTATION) else {
        return Ok(judge(&[]));
    };
    let conditions: Vec<Value> = serde_json::from_str(text).map_err(|error| {
        EngineError::ConditionsAnnotation(json_error::of_unmarshal(text.as_bytes(), &error))
    })?;
    Ok(judge(&conditions))
}

fn judge(conditions: &[Value]) -> Health {
    let degraded = conditions
        .iter()
        .find(|c| DEGRADED.contains(&(text_of(c, "type"), text_of(c, "reason"))));
    if let Some(condition) = degraded {
        return Health::new(HealthStatus::Degraded, text_of(condition, "message"));
    }
    let able = |c: &&Value| {
        matches!(text_of(c, "type"), "AbleToScale" | "ScalingLimited")
            && text_of(c, "status") == "True"
    };
    match conditions.iter().find(able) {
        Some(condition) => Health::new(HealthStatus::Healthy, text_of(condition, "message")),
        None => Health::new(HealthStatus::Progressing, "Waiting to Autoscale"),
    }
}
