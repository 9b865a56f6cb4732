//! ReplicaSet: do its Pods exist and are they available?

use crate::{
    error::EngineError,
    health::view::{View, text_of},
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("ReplicaSet", object, &["v1"])?;
    let available = view.int32("/status/availableReplicas")?;
    let wanted = view.int32_opt("/spec/replicas")?;
    if view.int64("/metadata/generation")? > view.int64("/status/observedGeneration")? {
        let message = "Waiting for rollout to finish: observed replica set generation less than desired generation";
        return Ok(Health::new(HealthStatus::Progressing, message));
    }
    if let Some(condition) = view
        .condition("ReplicaFailure")
        .filter(|c| text_of(c, "status") == "True")
    {
        return Ok(Health::new(
            HealthStatus::Degraded,
            text_of(condition, "message"),
        ));
    }
    Ok(match wanted.filter(|wanted| available < *wanted) {
        Some(wanted) => {
            let message = format!(
                "Waiting for rollout to finish: {available} out of {wanted} new replicas are available..."
            );
            Health::new(HealthStatus::Progressing, message)
        }
        None => Health::new(HealthStatus::Healthy, ""),
    })
}
