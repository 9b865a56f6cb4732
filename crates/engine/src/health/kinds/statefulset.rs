//! StatefulSet: are its Pods ready and of the newest revision?

use crate::{
    error::EngineError,
    health::view::View,
    types::{Health, HealthStatus},
};
use serde_json::Value;
use tiphys_apimachinery::Object;

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("StatefulSet", object, &["v1"])?;
    let observed = view.int64("/status/observedGeneration")?;
    let wanted = view.int32_opt("/spec/replicas")?;
    let (ready, updated) = (
        view.int32("/status/readyReplicas")?,
        view.int32("/status/updatedReplicas")?,
    );
    if observed == 0 || view.int64("/metadata/generation")? > observed {
        return Ok(Health::new(
            HealthStatus::Progressing,
            "Waiting for statefulset spec update to be observed...",
        ));
    }
    if let Some(wanted) = wanted.filter(|wanted| ready < *wanted) {
        return Ok(Health::new(
            HealthStatus::Progressing,
            format!("Waiting for {} pods to be ready...", wanted - ready),
        ));
    }
    let strategy = view.text("/spec/updateStrategy/type")?;
    let rolling = object
        .pointer("/spec/updateStrategy/rollingUpdate")
        .is_some_and(Value::is_object);
    if strategy == "RollingUpdate" && rolling {
        let partition = view.int32_opt("/spec/updateStrategy/rollingUpdate/partition")?;
        return Ok(partitioned(
            wanted
                .zip(partition)
                .map(|(wanted, partition)| wanted - partition),
            updated,
        ));
    }
    if strategy == "OnDelete" {
        return Ok(Health::new(
            HealthStatus::Healthy,
            format!("statefulset has {ready} ready pods"),
        ));
    }
    let (update, current) = (
        view.text("/status/updateRevision")?,
        view.text("/status/currentRevision")?,
    );
    if update != current {
        let message = format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {update}..."
        );
        return Ok(Health::new(HealthStatus::Progressing, message));
    }
    let running = view.int32("/status/currentReplicas")?;
    Ok(Health::new(
        HealthStatus::Healthy,
        format!("statefulset rolling update complete {running} pods at revision {current}..."),
    ))
}

/// `due`: how many Pods the partition lets be updated.
fn partitioned(due: Option<i64>, updated: i64) -> Health {
    match due.filter(|due| updated < *due) {
        Some(due) => {
            let message = format!(
                "Waiting for partitioned roll out to finish: {updated} out of {due} new pods have been updated..."
            );
            Health::new(HealthStatus::Progressing, message)
        }
        None => Health::new(
            HealthStatus::Healthy,
            format!("partitioned roll out complete: {updated} new pods have been updated..."),
        ),
    }
}
