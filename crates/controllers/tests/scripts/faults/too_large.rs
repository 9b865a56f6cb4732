//! A status that is too large for the API server.

use super::stage::{conditions, stage};
use crate::scripts::wire::Plan;
use std::time::Duration;
use tokio::time::sleep;

const TEXT: &str = "Application status exceeds the Kubernetes resource size limit and could not be persisted. The displayed status may be stale. \
    Reduce the number of managed resources, set ApplyOutOfSyncOnly=true, lower spec.revisionHistoryLimit, or split the Application.";

#[test]
fn c84_only_a_condition_tells_of_a_status_that_is_too_large() {
    let many: String = (0..40).map(|n| format!("  configmap map-{n}\n")).collect();
    stage(
        Plan {
            largest: Some(3000),
            ..Plan::default()
        },
        async |stage| {
            stage
                .play(&format!(
                    "commit\n  configmap first\napp\nsync\ncommit\n{many}"
                ))
                .await;
            let app = stage.first().await;
            assert_eq!(conditions(&app, "UnknownError"), [TEXT]);
            assert_eq!(
                (
                    &app["status"]["sync"]["status"],
                    app["status"]["resources"].as_array().map(Vec::len)
                ),
                (&"Synced".into(), Some(1)),
                "as it was"
            );
            assert!(
                app.pointer("/metadata/annotations/argocd.argoproj.io~1refresh")
                    .is_none(),
                "whoever asked is not kept waiting"
            );
            // It is retried with increasing delay, and nothing is written without new information.
            let before = stage.written("/applications/").len();
            sleep(Duration::from_secs(300)).await;
            let tried = stage.written("/applications/").split_off(before);
            assert!(
                (1..=16).contains(&tried.len()) && tried.iter().all(|w| w.ends_with(" 413")),
                "{tried:?}"
            );
            // When it shrinks it is stored again.
            stage
                .play("commit\n  configmap first\n  configmap second")
                .await;
            let app = stage.first().await;
            assert_eq!(
                (
                    conditions(&app, "UnknownError").len(),
                    &app["status"]["sync"]["status"]
                ),
                (0, &"OutOfSync".into())
            );
        },
    );
}

#[test]
fn c84_an_operation_that_cannot_be_told_of_ends() {
    let many: String = (0..40).map(|n| format!("  configmap map-{n}\n")).collect();
    for (object, phase) in [
        ("configmap last wave=1", "Succeeded"),
        (
            "deployment last never-ready\n  configmap end wave=1",
            "Error",
        ),
    ] {
        stage(Plan::default(), async |stage| {
            stage.play(&format!("commit\n  {object}\n{many}app")).await;
            stage.wire.plan(|plan| plan.largest = Some(3000));
            stage.play("sync\npass 1m").await;
            let app = stage.first().await;
            let state = &app["status"]["operationState"];
            assert!(app.get("operation").is_none(), "it is stuck: {state}");
            assert_eq!(
                (&state["phase"], conditions(&app, "UnknownError")),
                (&phase.into(), vec![TEXT.to_owned()]),
                "{state}"
            );
            assert_eq!(state["message"] == TEXT, phase == "Error", "{state}");
            stage.wire.plan(|plan| plan.largest = None);
            stage.play("commit\n  configmap map-0\nsync").await;
            let app = stage.first().await;
            assert_eq!(
                (
                    &app["status"]["operationState"]["phase"],
                    conditions(&app, "UnknownError").len()
                ),
                (&"Succeeded".into(), 0)
            );
        });
    }
}
