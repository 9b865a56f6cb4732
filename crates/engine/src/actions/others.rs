//! StrimziPodSet; ExternalSecret and PushSecret; KEDA's ScaledJob and ScaledObject.

use super::{
    ActionError, Described, Kind, action,
    edit::{annotation, at, number},
};
use serde_json::Value;

const ROLLING: &str = "strimzi.io/manual-rolling-update";
const PAUSED: &str = "autoscaling.keda.sh/paused";
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";

pub fn kind(group: &str, kind: &str) -> Option<Kind> {
    Some(match (group, kind) {
        ("core.strimzi.io", "StrimziPodSet") => Kind {
            discover: |live| {
                vec![action("rolling-update").disabled(annotation(live, ROLLING) == Some("true"))]
            },
            run: |call| {
                (call.action == "rolling-update")
                    .then(|| call.patch(|edit| edit.annotate(ROLLING, "true")))
                    .flatten()
            },
        },
        ("external-secrets.io", "ExternalSecret") => Kind {
            discover: |live| {
                let on_change = at(live, &["spec", "refreshPolicy"]) == "OnChange";
                vec![action("refresh").disabled(never_refreshes(live) && !on_change)]
            },
            run: |call| {
                (call.action == "refresh")
                    .then(|| call.patch(|edit| edit.annotate("force-sync", call.timestamp())))
                    .flatten()
            },
        },
        ("external-secrets.io", "PushSecret") => Kind {
            discover: |live| vec![action("push").disabled(never_refreshes(live))],
            run: |call| {
                (call.action == "push")
                    .then(|| call.patch(|edit| edit.annotate("force-sync", call.timestamp())))
                    .flatten()
            },
        },
        ("keda.sh", "ScaledJob") => Kind {
            discover: |live| {
                let paused = annotation(live, PAUSED) == Some("true");
                vec![
                    action("pause")
                        .icon("fa fa-fw fa-pause-circle")
                        .disabled(paused),
                    action("resume")
                        .icon("fa fa-fw fa-play-circle")
                        .disabled(!paused),
                ]
            },
            run: |call| match call.action {
                "pause" => call.patch(|edit| edit.annotate(PAUSED, "true")),
                "resume" => call.patch(|edit| edit.remove(&["metadata", "annotations", PAUSED])),
                _ => None,
            },
        },
        ("keda.sh", "ScaledObject") => scaled_object(),
        _ => return None,
    })
}

/// A refresh interval of zero, in any unit.
fn never_refreshes(live: &Value) -> bool {
    let interval = at(live, &["spec", "refreshInterval"]);
    let text = interval
        .as_str()
        .map_or_else(|| interval.to_string(), str::to_owned);
    text.strip_prefix('0')
        .is_some_and(|unit| matches!(unit, "" | "ns" | "us" | "µs" | "ms" | "s" | "m" | "h"))
}

fn scaled_object() -> Kind {
    Kind {
        discover: |live| {
            let paused = annotation(live, PAUSED) == Some("true");
            let any = paused || annotation(live, PAUSED_REPLICAS).is_some();
            vec![
                action("pause")
                    .icon("fa fa-fw fa-pause-circle")
                    .disabled(any),
                action("paused-replicas")
                    .icon("fa fa-fw fa-pause-circle")
                    .disabled(paused)
                    .with_parameter("replicas"),
                action("resume")
                    .icon("fa fa-fw fa-play-circle")
                    .disabled(!any),
            ]
        },
        run: |call| match call.action {
            "pause" => call.patch(|edit| edit.annotate(PAUSED, "true")),
            "paused-replicas" => call.try_patch(|edit| {
                let text = call
                    .parameter("replicas")
                    .ok_or_else(|| ActionError::Refused("replicas parameter is required".into()))?;
                let replicas = number(Some(text))
                    .ok()
                    .filter(|n| n.as_f64().is_some_and(|n| n >= 0.0));
                let replicas = replicas.ok_or_else(|| {
                    ActionError::Refused(format!("invalid number: {text} (must be >= 0)"))
                })?;
                edit.annotate(PAUSED_REPLICAS, replicas.to_string());
                Ok(())
            }),
            "resume" => call.patch(|edit| {
                edit.remove(&["metadata", "annotations", PAUSED]);
                edit.remove(&["metadata", "annotations", PAUSED_REPLICAS]);
            }),
            _ => None,
        },
    }
}
