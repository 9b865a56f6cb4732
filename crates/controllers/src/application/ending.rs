//! Ends an operation, or one attempt: reports the result, records it, and decides what follows.
//!
//! Main function: [`finish`]. Another attempt, a rollback, or the sync of a newer revision may
//! follow.

use super::{
    context::{ReconcileContext, operation_id, state},
    error::Error,
    refresh::{Cause, Level, Refresh},
    requested, retry, rollback, status, timeouts,
};
use crate::metrics::EndedSync;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tiphys_api::operation::{Operation, OperationState};
use tiphys_engine::{
    spec,
    sync::{Ending, OnTimeout, OperationPhase},
};

/// The message of an operation that is terminated because of a timeout.
pub const TIMED_OUT: &str = "operation is terminating due to timeout";

/// How an attempt ended.
struct Attempt {
    failed: bool,
    /// It was being terminated, by a user or because of a timeout.
    terminating: bool,
    /// It, or one of its waves, exceeded its time limit.
    timed_out: bool,
    superseded: bool,
    then: OnTimeout,
}

impl Attempt {
    fn may_be_repeated(&self, state: &OperationState) -> bool {
        let wanted = if self.timed_out {
            self.then == OnTimeout::Retry
        } else {
            !self.terminating && !self.superseded
        };
        let limit = state.operation.retry.limit;
        self.failed && wanted && (limit < 0 || state.retry_count < limit)
    }
}

/// Handles the end of the operation, or of this attempt.
pub async fn finish(
    ctx: &mut ReconcileContext<'_>,
    phase: OperationPhase,
    message: String,
    ending: Option<Ending>,
) -> Result<(), Error> {
    let mut state = state(ctx);
    let id = operation_id(ctx);
    ctx.now = ctx.controller.now();
    let terminating = state.phase == "Terminating";
    let late = terminating && state.message == TIMED_OUT;
    let sync = state.operation.sync.clone().unwrap_or_default();
    let attempt = Attempt {
        failed: phase != OperationPhase::Succeeded,
        terminating,
        timed_out: late || matches!(ending, Some(Ending::TimedOut(_))),
        superseded: matches!(ending, Some(Ending::Superseded)),
        then: timeouts::limits(&ctx.controller.records.settings(), &sync.sync_options)
            .unwrap_or_default()
            .then,
    };
    state.message = if late {
        format!("{message}, triggered by controller sync timeout")
    } else {
        message
    };
    // The start may be recorded one second in the future, see `begin`.
    state.finished_at = Some(
        ctx.now
            .max(state.started_at.map_or(ctx.now, |t| t.timestamp()))
            .into(),
    );
    if attempt.may_be_repeated(&state) {
        match retry::next_at(&state.operation.retry, ctx.now, state.retry_count) {
            Ok(due) => {
                // A running operation with an end time is one that waits for its retry.
                state.phase = "Running".into();
                state.retry_count += 1;
                state.message = format!(
                    "{}. Retrying attempt #{} at {}.",
                    state.message,
                    state.retry_count,
                    retry::kitchen(due)
                );
                ctx.app.status.operation_state = Some(state.into());
                return ctx.store().await;
            }
            Err(problem) => {
                state.message = format!("{} (failed to retry: {problem})", state.message)
            }
        }
    } else if attempt.failed && state.retry_count > 0 {
        state.message = format!("{} (retried {} times).", state.message, state.retry_count);
    }
    phase.as_str().clone_into(&mut state.phase);
    let next = follows(ctx, &attempt, &mut state);
    if !attempt.failed && !sync.dry_run && sync.resources.is_empty() {
        status::append_history(&mut ctx.app, &state, ctx.now);
    }
    report(ctx, id, &state);
    let automated = state.operation.initiated_by.automated;
    ctx.app.status.operation_state = Some(state.into());
    ctx.app.operation = next.map(Box::new);
    ctx.memo.running = None;
    ctx.forget_progress();
    if let Some(level) = refresh_after(automated, sync.dry_run) {
        ctx.refresh(&Refresh {
            level,
            cause: Cause::OperationEnded,
            ..Refresh::default()
        })
        .await;
    }
    Ok(())
}

/// How the Application is compared after an operation. Resolving the revision again after every
/// automatic sync would be too expensive; a user who syncs manually may have pushed meanwhile. A
/// dry run has changed nothing.
fn refresh_after(automated: bool, dry_run: bool) -> Option<Level> {
    match (dry_run, automated) {
        (true, _) => None,
        (false, true) => Some(Level::Latest),
        (false, false) => Some(Level::ForceResolve),
    }
}

/// Terminates an operation that exceeds this many seconds (0: no limit); otherwise returns the time
/// left.
pub fn limit(state: &mut OperationState, seconds: u32, now: Timestamp) -> Option<Duration> {
    if state.phase != "Running" || seconds == 0 {
        return None;
    }
    let left = (state.started_at?.timestamp() + SignedDuration::from_secs(seconds.into()))
        .duration_since(now);
    let left = Duration::try_from(left).ok().filter(|left| !left.is_zero());
    if left.is_none() {
        (state.phase, state.message) = ("Terminating".into(), TIMED_OUT.into());
    }
    left
}

/// The message of an operation that has not ended. A terminating operation is shown as terminating
/// until it has ended; the reason is added then.
pub fn goes_on(
    state: &mut OperationState,
    terminating: bool,
    phase: OperationPhase,
    message: &str,
) {
    if !terminating {
        (state.phase, state.message) = (phase.as_str().into(), message.into());
        return;
    }
    state.phase = "Terminating".into();
    if state.message != TIMED_OUT {
        state.message = "operation is terminating".into();
    }
}

/// Counts the end and records its Event, both once: a reconcile whose write of it fails is followed
/// by another one, which ends the same attempt again.
fn report(ctx: &mut ReconcileContext<'_>, id: String, state: &OperationState) {
    let end = Some((id, state.phase.clone()));
    if ctx.memo.counted_end == end {
        return;
    }
    ctx.memo.counted_end = end;
    count(ctx, state);
    let sync = state.operation.sync.as_ref();
    let what = match sync.is_none_or(|sync| sync.resources.is_empty()) {
        true => "Sync operation",
        false => "Partial sync operation",
    };
    let result = state.sync_result.as_ref();
    let to = result
        .map(|r| format!(" to {}", requested::shown(&r.revision, &r.revisions)))
        .unwrap_or_default();
    let failed = state.phase != OperationPhase::Succeeded.as_str();
    let verdict = match failed {
        true => format!("failed: {}", state.message),
        false => "succeeded".to_owned(),
    };
    let message = format!("{what}{to} {verdict}");
    ctx.event(failed, "OperationCompleted", message);
}

/// Counts the finished sync in the metrics.
fn count(ctx: &ReconcileContext<'_>, state: &OperationState) {
    let took = match (state.started_at, state.finished_at) {
        (Some(began), Some(ended)) => {
            Duration::try_from(ended.timestamp().duration_since(began.timestamp()))
                .unwrap_or_default()
        }
        _ => Duration::ZERO,
    };
    let ended = EndedSync {
        project: spec::project_name(&ctx.app).to_owned(),
        server: ctx.server(),
        phase: state.phase.clone(),
        dry_run: state.operation.sync.as_ref().is_some_and(|s| s.dry_run),
        took,
    };
    ctx.controller.metrics.ended(ctx.key, ended);
}

/// The operation that starts immediately, if any; the message of the finished one mentions it.
fn follows(
    ctx: &ReconcileContext<'_>,
    attempt: &Attempt,
    state: &mut OperationState,
) -> Option<Operation> {
    if !attempt.failed {
        if let Some(from) = rollback::origin(&state.operation) {
            state.message = format!("{}; rolled back from {from}", state.message);
        }
        return None;
    }
    if attempt.timed_out && attempt.then == OnTimeout::Rollback {
        let found = rollback::operation(&ctx.app, state);
        let told = match &found {
            Ok(next) => {
                format!(
                    "rolling back to {}",
                    next.sync
                        .as_ref()
                        .map(|s| requested::shown(&s.revision, &s.revisions))
                        .unwrap_or_default()
                )
            }
            Err(why) => format!("not rolled back: {why}"),
        };
        state.message = format!("{}; {told}", state.message);
        return found.ok();
    }
    // A user's sync without explicit revision continues with the new one; an automatic sync is
    // started again by auto-sync.
    (attempt.superseded && !state.operation.initiated_by.automated).then(|| state.operation.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(phase: &str, message: &str) -> OperationState {
        let state = json!({"phase": phase, "message": message, "startedAt": "2026-01-01T00:00:00Z", "operation": {}});
        serde_json::from_value(state).expect("a state")
    }

    #[test]
    fn c59_c60_c61_what_failed_is_repeated_as_often_as_is_asked_for() {
        let attempt = |failed, terminating, superseded| Attempt {
            failed,
            terminating,
            superseded,
            timed_out: false,
            then: OnTimeout::Fail,
        };
        let repeated = |attempt: &Attempt, limit: i64, count: i64| {
            let mut state = state("Running", "");
            (state.operation.retry.limit, state.retry_count) = (limit, count);
            attempt.may_be_repeated(&state)
        };
        let failed = attempt(true, false, false);
        let got = [(0, 0), (1, 0), (1, 1), (5, 4), (5, 5), (-1, 0), (-1, 1000)]
            .map(|(limit, count)| repeated(&failed, limit, count));
        assert_eq!(got, [false, true, false, true, false, true, true]);
        for (name, other) in [
            ("it succeeded", attempt(false, false, false)),
            ("it was terminated", attempt(true, true, false)),
            ("another takes its place", attempt(true, false, true)),
        ] {
            assert!(!repeated(&other, 5, 0), "{name}");
        }
    }

    #[test]
    fn c62_what_takes_too_long_is_terminated() {
        let started: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let after = |phase: &str, limit_secs: u32, secs: i64| {
            let mut state = state(phase, "waiting");
            let left = limit(
                &mut state,
                limit_secs,
                started + SignedDuration::from_secs(secs),
            );
            (left.map(|left| left.as_secs()), state.phase, state.message)
        };
        let told = |left: Option<u64>, phase: &str, message: &str| {
            (left, phase.to_owned(), message.to_owned())
        };
        assert_eq!(
            after("Running", 12, 10),
            told(Some(2), "Running", "waiting")
        );
        assert_eq!(
            after("Running", 12, 12),
            told(
                None,
                "Terminating",
                "operation is terminating due to timeout"
            )
        );
        assert_eq!(
            after("Running", 0, 1000),
            told(None, "Running", "waiting"),
            "without a limit"
        );
        assert_eq!(
            after("Terminating", 12, 13),
            told(None, "Terminating", "waiting"),
            "somebody ends it already"
        );
    }

    #[test]
    fn c63_what_is_being_terminated_says_so_until_it_ended() {
        let told = |message: &str, terminating| {
            let mut state = state("Terminating", message);
            goes_on(
                &mut state,
                terminating,
                OperationPhase::Running,
                "waiting for completion of hook batch/Job/j",
            );
            (state.phase, state.message)
        };
        let terminating = |message: &str| ("Terminating".to_owned(), message.to_owned());
        assert_eq!(
            told("waiting", true),
            terminating("operation is terminating")
        );
        assert_eq!(
            told(TIMED_OUT, true),
            terminating("operation is terminating due to timeout")
        );
        assert_eq!(
            told("waiting", false),
            (
                "Running".to_owned(),
                "waiting for completion of hook batch/Job/j".to_owned()
            )
        );
    }

    #[test]
    fn c64_git_is_asked_again_after_a_sync_by_hand_only() {
        assert_eq!(refresh_after(false, false), Some(Level::ForceResolve));
        assert_eq!(refresh_after(true, false), Some(Level::Latest));
        assert_eq!(
            [true, false].map(|automated| refresh_after(automated, true)),
            [None, None],
            "a dry run"
        );
    }
}
