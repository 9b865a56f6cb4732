//! Ingress: has a load balancer been assigned?

use crate::{
    error::EngineError,
    types::{Health, HealthStatus},
};
use serde_json::Value;
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let taken = object
        .pointer("/status/loadBalancer/ingress")
        .and_then(Value::as_array)
        .is_some_and(|l| !l.is_empty());
    Ok(Health::new(
        if taken {
            HealthStatus::Healthy
        } else {
            HealthStatus::Progressing
        },
        "",
    ))
}
