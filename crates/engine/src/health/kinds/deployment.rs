//! Deployment: has the rollout of the newest generation finished?

use crate::{
    error::EngineError,
    health::view::{View, text_of},
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("Deployment", object, &["v1"])?;
    let wanted = view.int32_opt("/spec/replicas")?;
    let (total, updated) = (
        view.int32("/status/replicas")?,
        view.int32("/status/updatedReplicas")?,
    );
    let available = view.int32("/status/availableReplicas")?;
    if view.flag("/spec/paused")? {
        return Ok(Health::new(HealthStatus::Suspended, "Deployment is paused"));
    }
    if view.int64("/metadata/generation")? > view.int64("/status/observedGeneration")? {
        let message = "Waiting for rollout to finish: observed deployment generation less than desired generation";
        return Ok(Health::new(HealthStatus::Progressing, message));
    }
    if view
        .condition("Progressing")
        .is_some_and(|c| text_of(c, "reason") == "ProgressDeadlineExceeded")
    {
        return Ok(Health::new(
            HealthStatus::Degraded,
            format!(
                "Deployment {:?} exceeded its progress deadline",
                object.name()
            ),
        ));
    }
    let waiting = match wanted {
        Some(wanted) if updated < wanted => {
            format!("{updated} out of {wanted} new replicas have been updated...")
        }
        _ if total > updated => format!(
            "{} old replicas are pending termination...",
            total - updated
        ),
        _ if available < updated => {
            format!("{available} of {updated} updated replicas are available...")
        }
        _ => return Ok(Health::new(HealthStatus::Healthy, "")),
    };
    Ok(Health::new(
        HealthStatus::Progressing,
        format!("Waiting for rollout to finish: {waiting}"),
    ))
}
