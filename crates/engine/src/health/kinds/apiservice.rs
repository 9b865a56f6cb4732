//! APIService: is the extension API server reachable?

use crate::{
    error::EngineError,
    health::view::{View, text_of},
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("APIService", object, &["v1", "v1beta1"])?;
    let Some(available) = view.condition("Available") else {
        return Ok(Health::new(
            HealthStatus::Progressing,
            "Waiting to be processed",
        ));
    };
    let status = if text_of(available, "status") == "True" {
        HealthStatus::Healthy
    } else {
        HealthStatus::Progressing
    };
    Ok(Health::new(
        status,
        format!(
            "{}: {}",
            text_of(available, "reason"),
            text_of(available, "message")
        ),
    ))
}
