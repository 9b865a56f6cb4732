//! Runs the sync operation of an Application, from the `operation` field to its result.
//!
//! Main function: [`run`]. The engine decides what to do next; this module stores, executes and
//! records it. It may stop at any point: the stored status is enough to resume.

use super::{
    context::{ReconcileContext, operation_id, state},
    ending::{self, finish},
    error::Error,
    identity,
    next::{Begun, Driven, Next},
    prepare, requested,
    results::to_wire,
    retry,
    running::Running,
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

/// How long to wait for the watch event about an Application that is not in the expected state.
const UNTIL_TOLD: Duration = Duration::from_millis(250);

/// Continues the operation as far as possible now.
pub async fn run(ctx: &mut ReconcileContext<'_>) -> Result<Driven, Error> {
    if !is_current(ctx).await? {
        return Ok(Driven::Waits(Next::after(UNTIL_TOLD)));
    }
    if let Begun::Not(driven) = begin(ctx).await? {
        return Ok(driven);
    }
    if let Some(wait) = barred(ctx).await? {
        return Ok(Driven::Waits(Next::after(wait)));
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
                return Ok(Driven::Ended);
            }
        },
    };
    let limit = limit(ctx);
    running.request.terminate = state(ctx).phase == "Terminating";
    running.request.prune_confirmed = prepare::prune_confirmed(ctx, running.request.started_at);
    running.request.superseded_by = supersede::newer(ctx);
    let driven = match drive(ctx, &mut running).await {
        // Its end is stored with the comparison that follows. If that fails, the next reconcile ends
        // it again from here, and does not repeat what was done and report it as unchanged.
        Ok(Driven::Ended) => Ok(Driven::Ended),
        Ok(Driven::Waits(next)) => Ok(Driven::Waits(next.or_sooner(limit))),
        Err(e) => Err(e),
    };
    ctx.memo.running = Some(running);
    driven
}

/// Whether an operation that this process did not start is still in the state that was read:
/// resuming one that ended long ago would run its hooks twice. Read from the server once; a newer
/// state is reconciled next.
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

/// Stores the revisions and sources of the operation before anything is done with them: a process
/// that resumes it must not resolve a branch again.
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

/// Creates the state of a new operation, or checks whether a failed one is due for a retry. `Some`:
/// nothing more to do in this reconcile, because it waits for that, or has ended.
async fn begin(ctx: &mut ReconcileContext<'_>) -> Result<Begun, Error> {
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
        return Ok(Begun::Active);
    };
    let (Some(finished), "Running") = (state.finished_at, state.phase.as_str()) else {
        return Ok(Begun::Active);
    };
    if let Some(newer) = supersede::newer(ctx) {
        let old = state
            .sync_result
            .as_ref()
            .map(|r| requested::shown(&r.revision, &r.revisions))
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
        return Ok(Begun::Not(Driven::Ended));
    }
    let due = match retry::next_at(
        &state.operation.retry,
        finished.timestamp(),
        state.retry_count,
    ) {
        Ok(due) => due,
        Err(message) => {
            finish(ctx, OperationPhase::Error, message, None).await?;
            return Ok(Begun::Not(Driven::Ended));
        }
    };
    // With OnTimeout=retry each attempt has the full time limit; otherwise the delays between
    // attempts count, too.
    let each_has_its_time = limits(ctx).then == OnTimeout::Retry;
    let left = if each_has_its_time {
        Next::Event
    } else {
        limit(ctx)
    };
    if self::state(ctx).phase == "Terminating" {
        ctx.memo.running = None;
        return Ok(Begun::Active);
    }
    if let Ok(wait) = Duration::try_from(due.duration_since(ctx.now))
        && !wait.is_zero()
    {
        let next = Next::after(wait).or_sooner(left);
        return Ok(Begun::Not(Driven::Waits(next)));
    }
    retry::begin(&mut state);
    if each_has_its_time {
        state.started_at = Some(ctx.now.into());
    }
    ctx.app.status.operation_state = Some(state);
    ctx.memo.running = None;
    ctx.forget_progress();
    ctx.store().await?;
    Ok(Begun::Active)
}

/// The time limits of the operation and its waves. `prepare` has already reported an invalid
/// option.
fn limits(ctx: &ReconcileContext<'_>) -> Timeouts {
    let options = state(ctx).operation.sync.unwrap_or_default().sync_options;
    timeouts::limits(&ctx.controller.records.settings(), &options).unwrap_or_default()
}

/// Terminates an operation that exceeds its time limit; otherwise returns when to check again.
fn limit(ctx: &mut ReconcileContext<'_>) -> Next {
    let limit = limits(ctx).sync_secs;
    let state = ctx.app.status.operation_state.as_mut();
    state
        .and_then(|state| ending::limit(state, limit, ctx.now))
        .into()
}

/// How long to wait if a sync window blocks the operation, which stays unchanged meanwhile. An
/// operation being terminated by a user is never delayed.
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
    // A change of the project triggers a reconcile as well.
    Ok(Some(
        windows.wait(ctx.now).unwrap_or(Duration::from_secs(60)),
    ))
}

/// Repeats `next`, store, execute and `record` until there is nothing to do now.
async fn drive(ctx: &mut ReconcileContext<'_>, running: &mut Running) -> Result<Driven, Error> {
    loop {
        let decision = decide(running, ctx.controller.now());
        running.progress = decision.progress.clone();
        if decision.phase.completed() {
            note(ctx, running, &decision);
            let message = with_plan(ctx, running, decision.message);
            finish(ctx, decision.phase, message, decision.progress.notes.ending).await?;
            return Ok(Driven::Ended);
        }
        note(ctx, running, &decision);
        if decision.must_store || decision.effects.is_empty() {
            ctx.store().await?;
        }
        if decision.effects.is_empty() {
            let wait = decision.wake_after.unwrap_or(Duration::from_secs(10));
            return Ok(Driven::Waits(Next::after(wait)));
        }
        for (start, effects) in decision.batches() {
            let outcomes = standing(running.executor.run_batch(start, effects)).await;
            let progress = std::mem::take(&mut running.progress);
            let health = |live: &Object| health::assess_for_sync(live, &running.customizations);
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

/// Adds the plan to the message of a dry run, if requested.
fn with_plan(ctx: &ReconcileContext<'_>, running: &Running, message: String) -> String {
    if running.request.dry_run && identity::shows_plan(&state(ctx).operation) {
        format!("{message}\n{}", running.plan)
    } else {
        message
    }
}

fn decide(running: &Running, now: Timestamp) -> Decision {
    let cache = &running.cluster.cache;
    let health = |live: &Object| health::assess_for_sync(live, &running.customizations);
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

/// Copies the engine's decision into the operation's state.
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
