//! A sync operation of one Application, from the `operation` field to its result.
//!
//! Main function: [`run`]. The engine says what to do next; here it is stored, done and recorded.
//! Stopping anywhere is fine: what is stored in the status is enough to go on.

use super::{
    context::{Again, ReconcileContext, soonest},
    ending::{self, finish},
    error::Error,
    identity,
    prepare::{self, Running},
    refresh::Reason,
    results::to_wire,
    retry, sources,
    start::Start,
    supersede, timeouts,
};
use crate::runtime::standing;
use jiff::Timestamp;
use std::time::Duration;
use tiphys_api::operation::{OperationState, SyncOperationResult};
use tiphys_apimachinery::Object;
use tiphys_cluster::scripts::run_scripts_blocking;
use tiphys_engine::{
    health,
    sync::{
        self, Decision, Ending, Observed, OnTimeout, OperationPhase, PROGRESS_ANNOTATION, Timeouts,
        window::Windows,
    },
};

/// For news of an Application that is not what it was told to be.
const UNTIL_TOLD: Duration = Duration::from_millis(250);

/// Takes the operation as far as it goes now.
pub async fn run(ctx: &mut ReconcileContext<'_>) -> Result<Again, Error> {
    if !is_current(ctx).await? {
        return Ok(Some((Reason::RECONCILE, UNTIL_TOLD)));
    }
    if let Some(again) = begin(ctx).await? {
        return Ok(again);
    }
    if let Some(wait) = barred(ctx).await? {
        return Ok(Some((Reason::RECONCILE, wait)));
    }
    let id = operation_id(ctx);
    let mut running = match ctx
        .memo
        .running
        .take()
        .filter(|r| r.request.operation_id == id)
    {
        Some(running) => running,
        None => match prepare::prepare(ctx, &id).await {
            Ok(running) => {
                remember_revisions(ctx).await?;
                running
            }
            Err(failure) => {
                finish(ctx, failure.phase, failure.message, None).await?;
                return Ok(None);
            }
        },
    };
    let again = limit(ctx);
    running.request.terminate = state(ctx).phase == "Terminating";
    running.request.prune_confirmed = prepare::prune_confirmed(ctx, running.request.started_at);
    running.request.superseded_by = supersede::newer(ctx);
    let again = drive(ctx, &mut running)
        .await
        .map(|next| next.map(|next| soonest(Some(next), again).unwrap_or(next)));
    if matches!(again, Ok(Some(_)) | Err(_)) {
        ctx.memo.running = Some(running);
    }
    again
}

/// Whether an operation that this process did not begin still is as it was told: who resumes what
/// has ended long ago makes its hooks run twice. Asked of the server once; what it knows better is
/// looked at next.
async fn is_current(ctx: &mut ReconcileContext<'_>) -> Result<bool, Error> {
    if ctx.memo.proved || !matches!(state(ctx).phase.as_str(), "Running" | "Terminating") {
        return Ok(true);
    }
    let stored = ctx
        .controller
        .records
        .applications
        .fetch(&ctx.key.namespace, &ctx.key.name)
        .await?;
    ctx.memo.proved = stored
        .is_some_and(|stored| stored.meta.resource_version == ctx.record.meta.resource_version);
    Ok(ctx.memo.proved)
}

/// Stores which revisions and sources the operation stands for, before anything is done with them:
/// a process that resumes it must not resolve a branch again.
async fn remember_revisions(ctx: &mut ReconcileContext<'_>) -> Result<(), Error> {
    let stored = ctx
        .before
        .status
        .operation_state
        .as_ref()
        .and_then(|s| s.sync_result.as_ref());
    if identity::is_remembered(stored, &state(ctx)) {
        Ok(())
    } else {
        ctx.store().await
    }
}

/// The state of the running operation.
pub fn state(ctx: &ReconcileContext<'_>) -> OperationState {
    ctx.app
        .status
        .operation_state
        .as_deref()
        .cloned()
        .unwrap_or_default()
}

/// Makes the state of a new operation, or sees whether a failed one is to be tried again now.
/// `Some`: there is nothing more to do in this reconcile, because it waits for that, or has ended.
async fn begin(ctx: &mut ReconcileContext<'_>) -> Result<Option<Again>, Error> {
    let operation = ctx.app.operation.as_deref().cloned().unwrap_or_default();
    let stored = ctx
        .app
        .status
        .operation_state
        .clone()
        .filter(|s| matches!(s.phase.as_str(), "Running" | "Terminating"));
    let Some(mut state) = stored else {
        let start = Start::after(ctx.memo.last_start, ctx.now);
        ctx.memo.last_start = Some(start);
        ctx.memo.running = None;
        let state = OperationState {
            operation,
            phase: "Running".into(),
            started_at: Some(start.told.into()),
            ..OperationState::default()
        };
        ctx.app.status.operation_state = Some(state.into());
        ctx.forget_progress();
        ctx.store().await?;
        return Ok(None);
    };
    let (Some(finished), "Running") = (state.finished_at, state.phase.as_str()) else {
        return Ok(None);
    };
    if let Some(newer) = supersede::newer(ctx) {
        let old = state
            .sync_result
            .as_ref()
            .map(|r| sources::shown(&r.revision, &r.revisions))
            .unwrap_or_default();
        let message =
            format!("superseded: the sync of {old} is not tried again, because {newer} is newer");
        finish(
            ctx,
            OperationPhase::Failed,
            message,
            Some(Ending::Superseded),
        )
        .await?;
        return Ok(Some(None));
    }
    let due = match retry::next_at(
        &state.operation.retry,
        finished.timestamp(),
        state.retry_count,
    ) {
        Ok(due) => due,
        Err(message) => {
            finish(ctx, OperationPhase::Error, message, None).await?;
            return Ok(Some(None));
        }
    };
    // Where an attempt that took too long is followed by another, each has the whole time; else the
    // pauses count, too.
    let each_has_its_time = limits(ctx).then == OnTimeout::Retry;
    let left = if each_has_its_time { None } else { limit(ctx) };
    if self::state(ctx).phase == "Terminating" {
        ctx.memo.running = None;
        return Ok(None);
    }
    if let Ok(wait) = Duration::try_from(due.duration_since(ctx.now))
        && !wait.is_zero()
    {
        return Ok(Some(soonest(Some((Reason::RECONCILE, wait)), left)));
    }
    retry::begin(&mut state);
    if each_has_its_time {
        state.started_at = Some(ctx.now.into());
    }
    ctx.app.status.operation_state = Some(state);
    ctx.memo.running = None;
    ctx.forget_progress();
    ctx.store().await?;
    Ok(None)
}

/// How long the operation and its waves may take. What cannot be read has been told by `prepare`.
fn limits(ctx: &ReconcileContext<'_>) -> Timeouts {
    let options = state(ctx).operation.sync.unwrap_or_default().sync_options;
    timeouts::limits(&ctx.controller.records.settings(), &options).unwrap_or_default()
}

/// Ends an operation that takes longer than it may; else says when to look whether it does.
fn limit(ctx: &mut ReconcileContext<'_>) -> Again {
    let limit = limits(ctx).sync_secs;
    let left = ending::limit(ctx.app.status.operation_state.as_mut()?, limit, ctx.now)?;
    Some((Reason::RECONCILE, left))
}

/// How long to wait when a sync window bars the operation. It stays as it is meanwhile; one that a
/// user ends is never held up.
async fn barred(ctx: &mut ReconcileContext<'_>) -> Result<Option<Duration>, Error> {
    let Ok(project) = ctx.controller.project_of(&ctx.app) else {
        return Ok(None);
    };
    let mut state = state(ctx);
    let windows = Windows::of(&project.spec.sync_windows, &ctx.app);
    let manual = !state.operation.initiated_by.automated;
    let why = match windows.can_sync(manual, state.started_at.map(|t| t.timestamp()), ctx.now) {
        _ if state.phase == "Terminating" => return Ok(None),
        Ok(true) => return Ok(None),
        Ok(false) => String::new(),
        Err(problem) => format!(": {problem}"),
    };
    state.message = format!("Sync operation blocked by sync window{why}");
    ctx.app.status.operation_state = Some(state.into());
    ctx.store().await?;
    // A change of the project wakes it as well.
    Ok(Some(
        windows.wait(ctx.now).unwrap_or(Duration::from_secs(60)),
    ))
}

/// The same for every reconcile of one attempt of an operation, in whichever process; different
/// for the next attempt.
fn operation_id(ctx: &ReconcileContext<'_>) -> String {
    let state = state(ctx);
    let started = state.started_at.map_or(0, |t| t.seconds);
    identity::id(
        &ctx.app.metadata.uid,
        started,
        state.retry_count,
        ctx.app.status.history.last().map(|h| h.id),
    )
}

/// `next`, store, execute, `record`, until there is nothing to do now.
async fn drive(ctx: &mut ReconcileContext<'_>, running: &mut Running) -> Result<Again, Error> {
    loop {
        let decision = decide(running, ctx.controller.now());
        running.progress = decision.progress.clone();
        if decision.phase.completed() {
            note(ctx, running, &decision);
            let message = with_plan(ctx, running, decision.message);
            finish(ctx, decision.phase, message, decision.progress.notes.ending).await?;
            return Ok(None);
        }
        note(ctx, running, &decision);
        if decision.must_store || decision.effects.is_empty() {
            ctx.store().await?;
        }
        if decision.effects.is_empty() {
            let wait = decision.wake_after.unwrap_or(Duration::from_secs(10));
            return Ok(Some((Reason::RECONCILE, wait)));
        }
        for (start, effects) in decision.batches() {
            let outcomes = standing(running.executor.run_batch(start, effects)).await;
            let progress = std::mem::take(&mut running.progress);
            let health = |live: &Object| health::assess_with(live, &running.customizations);
            let now = ctx.controller.now();
            let record = || {
                sync::record(
                    &running.plan,
                    progress,
                    &decision.effects,
                    &outcomes,
                    &health,
                    now,
                )
            };
            running.progress = run_scripts_blocking(&running.customizations, record);
        }
    }
}

/// A dry run tells its plan where that was asked for.
fn with_plan(ctx: &ReconcileContext<'_>, running: &Running, message: String) -> String {
    if running.request.dry_run && identity::shows_plan(&state(ctx).operation) {
        format!("{message}\n{}", running.plan)
    } else {
        message
    }
}

fn decide(running: &Running, now: Timestamp) -> Decision {
    let cache = &running.cluster.cache;
    let health = |live: &Object| health::assess_with(live, &running.customizations);
    let observed = Observed {
        live: &|key| cache.object(key),
        health: &health,
    };
    run_scripts_blocking(&running.customizations, || {
        sync::next(
            &running.plan,
            observed,
            &running.progress,
            &running.request,
            now,
        )
    })
}

/// Writes what the engine says into the operation's state.
fn note(ctx: &mut ReconcileContext<'_>, running: &Running, decision: &Decision) {
    let Some(state) = ctx.app.status.operation_state.as_mut() else {
        return;
    };
    if !decision.phase.completed() {
        ending::goes_on(
            state,
            running.request.terminate,
            decision.phase,
            &decision.message,
        );
    }
    let resources = running.progress.results.iter().map(to_wire).collect();
    state.sync_result = Some(SyncOperationResult {
        resources,
        ..running.result.clone()
    });
    let text = running.progress.to_annotation();
    ctx.annotate(PROGRESS_ANNOTATION, Some(text));
}
