//! PersistentVolumeClaim: is it bound?

use crate::{
    error::EngineError,
    health::view::View,
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("PersistentVolumeClaim", object, &["v1"])?;
    let status = match view.text("/status/phase")? {
        "Lost" => HealthStatus::Degraded,
        "Pending" => HealthStatus::Progressing,
        "Bound" => HealthStatus::Healthy,
        _ => HealthStatus::Unknown,
    };
    Ok(Health::new(status, ""))
}
