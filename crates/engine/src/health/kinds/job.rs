//! Job: has it finished, and how?

use crate::{
    error::EngineError,
    health::view::{View, text_of},
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("Job", object, &["v1"])?;
    let (mut failure, mut finished, mut suspended, mut message) = (None, false, false, "");
    for condition in view.list("/status/conditions") {
        match text_of(condition, "type") {
            "Failed" => failure = Some(text_of(condition, "message")),
            "Complete" => (finished, message) = (true, text_of(condition, "message")),
            "Suspended" => {
                (finished, message) = (true, text_of(condition, "message"));
                suspended |= text_of(condition, "status") == "True";
            }
            _ => {}
        }
    }
    Ok(match failure {
        Some(why) => Health::new(HealthStatus::Degraded, why),
        None if !finished => Health::new(HealthStatus::Progressing, message),
        None if suspended => Health::new(HealthStatus::Suspended, message),
        None => Health::new(HealthStatus::Healthy, message),
    })
}
