//! Syncs that are retried, terminated or resumed: when that happens, with which revision, and what
//! is reported.

use super::stage::{Stage, stage};
use crate::scripts::wire::{Moment, Plan};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// With a factor of one the delay is always the same, and the reported time is the one at which it
/// happens.
#[test]
fn c59_the_time_of_the_next_attempt_is_told_and_kept() {
    stage(Plan::default(), async |stage| {
        let policy =
            "syncPolicy: {retry: {limit: 2, backoff: {duration: 30m, factor: 1, maxDuration: 1h}}}";
        stage
            .play(&format!(
                "commit\n  job before fails hook=PreSync\napp\n  {policy}\nsync"
            ))
            .await;
        for attempt in 1..=2 {
            let state = stage.first().await["status"]["operationState"].clone();
            let finished: Timestamp = state["finishedAt"]
                .as_str()
                .and_then(|at| at.parse().ok())
                .unwrap_or_else(|| panic!("{state}"));
            let due = (finished + SignedDuration::from_mins(30))
                .strftime("%-I:%M%p")
                .to_string();
            let told = format!(
                "one or more synchronization tasks completed unsuccessfully. Retrying attempt #{attempt} at {due}."
            );
            assert_eq!(
                (&state["phase"], &state["message"], &state["retryCount"]),
                (&json!("Running"), &json!(told), &json!(attempt))
            );
            stage.play("pass 28m").await;
            assert_eq!(
                stage.first().await["status"]["operationState"],
                state,
                "not before its time"
            );
            stage.play("pass 3m").await;
        }
        let state = stage.first().await["status"]["operationState"].clone();
        assert_eq!(
            state["message"],
            "one or more synchronization tasks completed unsuccessfully (retried 2 times).",
            "{state}"
        );
        assert_eq!(state["phase"], "Failed");
    });
}

/// The worker has an old record when a user terminates the sync: its write is refused, and the
/// termination is obeyed.
#[test]
fn c63_a_sync_that_is_ended_while_the_worker_runs_stays_ended() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  deployment web never-ready\n  configmap later wave=1\napp\nsync")
            .await;
        // Its watch event comes two seconds late.
        stage.wire.plan(|plan| plan.lag = 1000);
        stage.act("terminate").await;
        sleep(Duration::from_millis(20)).await;
        stage.wire.plan(|plan| plan.lag = 0);
        // Meanwhile the sync fails on its own.
        stage.act("delete deployment/web").await;
        stage.play("pass 1m").await;
        let app = stage.first().await;
        let state = &app["status"]["operationState"];
        let late = stage
            .written("/applications/")
            .iter()
            .any(|write| write.ends_with(" 409"));
        assert!(
            late,
            "nothing was written too late: the case proves nothing"
        );
        assert_eq!(
            (&state["phase"], &state["message"]),
            (&json!("Failed"), &json!("Operation terminated")),
            "{state}"
        );
        assert!(app.get("operation").is_none());
        let later = stage.play.target("configmap/later").await.expect("a kind");
        assert!(
            stage.play.ground.find(&later).await.is_none(),
            "what comes after it was not applied"
        );
    });
}

/// Sets the operation of the Application; null: takes it away.
async fn set_operation(stage: &Stage<'_>, operation: Value) {
    let path = stage.play.app_path(&stage.play.apps[0]);
    let patch = json!({"operation": operation});
    let written = stage
        .play
        .ground
        .send(Method::PATCH, &path, Some(&patch))
        .await;
    written.expect("the Application is there");
}

/// An operation that somebody took away does not go on, and one that is set again goes by the
/// settings of that time, not by those with which it once began.
#[test]
fn a_sync_that_is_taken_away_and_set_again_begins_anew() {
    stage(Plan::default(), async |stage| {
        let health = |status: &str| {
            format!(
                "settings\n  resource.customizations.health.ConfigMap: |\n    \
                 return {{status = \"{status}\", message = \"it says so\"}}"
            )
        };
        let phase = |app: &Value| app["status"]["operationState"]["phase"].clone();
        stage.play(&health("Progressing")).await;
        stage
            .play("commit\n  configmap first\n  configmap later wave=1\napp\nsync")
            .await;
        let app = stage.first().await;
        assert_eq!(phase(&app), "Running", "{app}");
        set_operation(stage, Value::Null).await;
        stage.play("pass 10s").await;
        stage.play(&health("Healthy")).await;
        let later = stage.play.target("configmap/later").await.expect("a kind");
        let gone_on = stage.play.ground.find(&later).await;
        assert_eq!(gone_on, None, "nobody wants it any more");
        set_operation(stage, json!({"sync": {}})).await;
        stage.play("pass 30s").await;
        let app = stage.first().await;
        assert_eq!(phase(&app), "Succeeded", "{app}");
    });
}

#[test]
fn c64_a_dry_run_is_no_reason_to_compare_again() {
    stage(Plan::default(), async |stage| {
        stage.play("commit\n  configmap settings color=blue\napp\nsync\npush\n  configmap settings color=red\nsync dry-run").await;
        let (old, new) = (json!(stage.play.commits[0]), json!(stage.play.commits[1]));
        let app = stage.first().await;
        assert!(
            app.get("operation").is_none()
                && app["status"]["operationState"]["finishedAt"].is_string(),
            "{app}"
        );
        assert_eq!(
            app["status"]["operationState"]["syncResult"]["revision"], new,
            "of what Git has now"
        );
        assert_eq!(
            (
                &app["status"]["sync"]["status"],
                &app["status"]["sync"]["revision"]
            ),
            (&json!("Synced"), &old)
        );
        stage.play("sync").await;
        assert_eq!(
            stage.first().await["status"]["sync"]["revision"],
            new,
            "a sync that does something is one"
        );
    });
}

/// Commits pushed between two waves belong to the next sync, although the process that resumes this
/// one could see them: with one source and with several, named and not.
#[test]
fn a_sync_that_is_resumed_keeps_its_revision_from_the_first_write_on() {
    for (several, revision) in [(false, ""), (false, " revision=1"), (true, "")] {
        let slow = vec![(
            "POST /api/v1/namespaces/".to_owned(),
            Duration::from_secs(2),
        )];
        stage(
            Plan {
                slow,
                ..Plan::default()
            },
            async |stage| {
                let sources = if several {
                    "\n  source: null\n  sources: [{repoURL: $REPO, path: app, targetRevision: HEAD}]"
                } else {
                    ""
                };
                stage.play(&format!("commit\n  configmap one color=old\n  configmap two color=old wave=1\napp{sources}")).await;
                let old = json!(stage.play.commits[0]);
                stage.act(&format!("sync{revision}")).await;
                sleep(Duration::from_secs(1)).await;
                stage
                    .act("push\n  configmap one color=new\n  configmap two color=new wave=1")
                    .await;
                let first = stage.wire.writes().len();
                stage
                    .wire
                    .plan(|plan| plan.deaths = vec![(first, Moment::After)]);
                stage.play("pass 1m").await;
                let state = stage.first().await["status"]["operationState"].clone();
                assert_eq!(state["phase"], "Succeeded", "{state}");
                let result = &state["syncResult"];
                assert_eq!(
                    if several {
                        &result["revisions"][0]
                    } else {
                        &result["revision"]
                    },
                    &old,
                    "{several} {revision:?}"
                );
                for name in ["one", "two"] {
                    let path = stage
                        .play
                        .target(&format!("configmap/{name}"))
                        .await
                        .expect("a kind");
                    let map = stage.play.ground.find(&path).await.expect("it was applied");
                    assert_eq!(
                        map["data"]["color"], "old",
                        "{several} {revision:?}: {name}"
                    );
                }
                stage.wire.plan(|plan| {
                    assert!(
                        plan.deaths.is_empty(),
                        "it did not die: the case proves nothing"
                    )
                });
            },
        );
    }
}

/// A new process whose first list of Applications is stale sees a sync that ended long ago as
/// running. Resuming it would run its hooks again.
#[test]
fn a_sync_that_has_ended_is_not_resumed_by_whoever_sees_the_past() {
    stage(Plan::default(), async |stage| {
        stage.play("commit\n  job before hook=PreSync delete=HookSucceeded\n  configmap settings color=blue\napp").await;
        stage.wire.plan(|plan| {
            plan.slow = vec![("POST /apis/batch/v1/".to_owned(), Duration::from_secs(2))]
        });
        stage.act("sync").await;
        sleep(Duration::from_secs(1)).await;
        // The second process finds the sync running, and ends it.
        let next = stage.wire.writes().len();
        stage
            .wire
            .plan(|plan| (plan.deaths, plan.slow) = (vec![(next, Moment::After)], Vec::new()));
        stage.play("pass 1m").await;
        assert_eq!(
            stage.first().await["status"]["operationState"]["phase"],
            "Succeeded"
        );
        // The third has the Application as the second first had it, and watch events are late.
        let next = stage.wire.writes().len();
        stage.wire.plan(|plan| {
            (plan.deaths, plan.old_lists, plan.lag) =
                (vec![(next, Moment::After)], Some("/applications"), 1000)
        });
        stage.act("refresh").await;
        sleep(Duration::from_secs(20)).await;
        stage.wire.plan(|plan| {
            assert!(
                plan.deaths.is_empty(),
                "it did not die: the case proves nothing"
            )
        });
        stage.wire.plan(|plan| plan.lag = 0);
        stage.play("pass 1m").await;
        assert_eq!(
            stage.first().await["status"]["operationState"]["phase"],
            "Succeeded"
        );
        let made: Vec<_> = stage
            .written("/jobs")
            .into_iter()
            .filter(|write| write.starts_with("POST "))
            .collect();
        assert_eq!(made.len(), 1, "{made:?}");
    });
}
