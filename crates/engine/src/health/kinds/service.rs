//! Service: only one of type LoadBalancer has something to wait for.

use crate::{
    error::EngineError,
    health::view::View,
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("Service", object, &["v1"])?;
    let waits = view.text("/spec/type")? == "LoadBalancer"
        && view.list("/status/loadBalancer/ingress").is_empty();
    Ok(Health::new(
        if waits {
            HealthStatus::Progressing
        } else {
            HealthStatus::Healthy
        },
        "",
    ))
}
