//! Argo Workflow: the phase decides.

use crate::{
    error::EngineError,
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let status = match object.str_at("/status/phase") {
        "" | "Pending" | "Running" => HealthStatus::Progressing,
        "Succeeded" => HealthStatus::Healthy,
        "Failed" | "Error" => HealthStatus::Degraded,
        _ => HealthStatus::Unknown,
    };
    Ok(Health::new(status, object.str_at("/status/message")))
}
