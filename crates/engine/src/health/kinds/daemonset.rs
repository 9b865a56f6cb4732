//! DaemonSet: does every node run the newest Pod, and is it available?

use crate::{
    error::EngineError,
    health::view::View,
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("DaemonSet", object, &["v1"])?;
    let name = object.name();
    if view.int64("/metadata/generation")? > view.int64("/status/observedGeneration")? {
        let message = "Waiting for rollout to finish: observed daemon set generation less than desired generation";
        return Ok(Health::new(HealthStatus::Progressing, message));
    }
    let (wanted, updated) = (
        view.int32("/status/desiredNumberScheduled")?,
        view.int32("/status/updatedNumberScheduled")?,
    );
    let available = view.int32("/status/numberAvailable")?;
    if view.text("/spec/updateStrategy/type")? == "OnDelete" {
        return Ok(Health::new(
            HealthStatus::Healthy,
            format!("daemon set {updated} out of {wanted} new pods have been updated"),
        ));
    }
    if updated < wanted {
        let message = format!(
            "Waiting for daemon set {name:?} rollout to finish: {updated} out of {wanted} new pods have been updated..."
        );
        return Ok(Health::new(HealthStatus::Progressing, message));
    }
    if available < wanted {
        let message = format!(
            "Waiting for daemon set {name:?} rollout to finish: {available} of {wanted} updated pods are available..."
        );
        return Ok(Health::new(HealthStatus::Progressing, message));
    }
    Ok(Health::new(HealthStatus::Healthy, ""))
}
