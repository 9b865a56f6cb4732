//! Pod: is it running and ready, waiting, or broken?

use crate::{
    error::EngineError,
    health::view::{View, text_of},
    marks,
    types::{Health, HealthStatus},
};
use serde_json::Value;
use tiphys_apimachinery::Object;

const IGNORE_RESTART_POLICY: &str = "argocd.argoproj.io/ignore-restart-policy";

pub fn check(object: &Object) -> Result<Health, EngineError> {
    let view = View::new("Pod", object, &["v1"])?;
    let policy = view.text("/spec/restartPolicy")?;
    let asked_as_long_running =
        object.annotation(IGNORE_RESTART_POLICY) == Some("true") && !marks::is_hook(object);
    let long_running = policy == "Always" || asked_as_long_running;
    let containers = view.list("/status/containerStatuses");

    // A Pod that runs to completion (a hook, a Job) is not Degraded while it waits: its image may
    // still be pulled, and it would then run although the sync had already failed.
    if long_running {
        let broken: Vec<&str> = containers.iter().filter_map(waiting_error).collect();
        if !broken.is_empty() {
            return Ok(Health::new(HealthStatus::Degraded, broken.join(", ")));
        }
    }
    let message = view.text("/status/message")?;
    let status = match view.text("/status/phase")? {
        "Pending" => HealthStatus::Progressing,
        "Succeeded" => HealthStatus::Healthy,
        "Failed" if !message.is_empty() => HealthStatus::Degraded,
        "Failed" => {
            let all = view
                .list("/status/initContainerStatuses")
                .iter()
                .chain(containers);
            return Ok(Health::new(
                HealthStatus::Degraded,
                all.filter_map(failure).next().unwrap_or_default(),
            ));
        }
        "Running" if long_running => running(&view, containers),
        "Running" if matches!(policy, "OnFailure" | "Never") => HealthStatus::Progressing,
        _ => HealthStatus::Unknown,
    };
    Ok(Health::new(status, message))
}

fn running(view: &View<'_>, containers: &[Value]) -> HealthStatus {
    if view
        .condition("Ready")
        .is_some_and(|c| text_of(c, "status") == "True")
    {
        HealthStatus::Healthy
    } else if containers.iter().any(|c| {
        c.pointer("/lastState/terminated")
            .is_some_and(|t| !t.is_null())
    }) {
        HealthStatus::Degraded
    } else {
        HealthStatus::Progressing
    }
}

/// The message of a container that waits because of an error.
fn waiting_error(container: &Value) -> Option<&str> {
    let waiting = container.pointer("/state/waiting")?;
    let reason = text_of(waiting, "reason");
    let error =
        reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff");
    error.then(|| text_of(waiting, "message"))
}

/// Why a container terminated, if it failed.
fn failure(container: &Value) -> Option<String> {
    let terminated = container.pointer("/state/terminated")?;
    let (message, reason) = (
        text_of(terminated, "message"),
        text_of(terminated, "reason"),
    );
    if !message.is_empty() {
        return Some(message.to_owned());
    }
    if reason == "OOMKilled" {
        return Some(reason.to_owned());
    }
    let code = terminated
        .get("exitCode")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    (code != 0).then(|| {
        format!(
            "container {:?} failed with exit code {code}",
            text_of(container, "name")
        )
    })
}
