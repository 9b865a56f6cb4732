//! A sync operation of one Application, from the `operation` field to its result.
//!
//! Main function: [`run`]. The engine says what to do next; here it is stored, done and recorded.
//! Stopping anywhere is fine: what is stored in the status is enough to go on.

use super::{
    auto_sync, compare,
    context::{Again, ReconcileContext, soonest},
    ending::{self, finish},
    error::Error,
    identity, impersonation,
    refresh::{Level, Reason, Refresh},
    results::{from_wire, to_wire},
    retry,
    sources::{self, RenderedSources, RequestedSources, Revisions},
    start::Start,
    status, supersede, timeouts,
};
use crate::runtime::standing;
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};
use tiphys_api::{
    constants,
    operation::{OperationState, SyncOperation, SyncOperationResult},
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{
    Executor,
    clusters::LiveCluster,
    scripts::{heavy, run_scripts_blocking},
};
use tiphys_engine::{
    customize::Customizations,
    health, permit, spec,
    sync::{
        self, Decision, Ending, Observed, OnTimeout, OperationPhase, PROGRESS_ANNOTATION, Progress,
        SyncPlan, SyncRequest, Timeouts, large_prune::LargePrune, window::Windows,
    },
    types::{Comparison, ConditionType},
};

/// An operation on its way.
pub struct Running {
    request: SyncRequest,
    plan: SyncPlan,
    progress: Progress,
    /// The sources and revisions that it stands for. The record that a look begins with may be
    /// older than they are.
    result: SyncOperationResult,
    cluster: Arc<LiveCluster>,
    executor: Executor,
    customizations: Arc<Customizations>,
}

/// The operation ended before it could begin.
struct Failure {
    phase: OperationPhase,
    message: String,
}

impl Failure {
    fn error(message: impl Into<String>) -> Self {
        Self {
            phase: OperationPhase::Error,
            message: message.into(),
        }
    }
}

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
        None => match prepare(ctx, &id).await {
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
    running.request.prune_confirmed = prune_confirmed(ctx, running.request.started_at);
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
/// `Some`: there is nothing more to do in this pass, because it waits for that, or has ended.
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

/// The same for every look at one attempt of one operation, whoever looks; different for the next
/// attempt.
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

/// From the operation to a plan.
async fn prepare(ctx: &mut ReconcileContext<'_>, id: &str) -> Result<Running, Failure> {
    ctx.controller
        .project_of(&ctx.app)
        .map_err(|e| Failure::error(format!("Failed to load application project: {e}")))?;
    let mut state = state(ctx);
    let may_prune_much = auto_sync::may_prune_much(&state.operation);
    let Some(operation) = state.operation.sync.clone() else {
        return Err(Failure::error(
            "Invalid operation request: no operation specified",
        ));
    };
    let settings = ctx.controller.records.settings();
    let limits = timeouts::limits(&settings, &operation.sync_options).map_err(Failure::error)?;
    timeouts::supersede(&settings, &operation.sync_options).map_err(Failure::error)?;
    let prune_limit =
        timeouts::prune_limit(&settings, &operation.sync_options).map_err(Failure::error)?;
    let problems = ctx.spec_problems();
    if let Some(text) = status::error_text(&problems) {
        status::set_conditions(&mut ctx.app.status, &problems, &status::BY_SPEC, ctx.now);
        let nowhere =
            spec::destination(&ctx.app.spec.destination, &ctx.controller.destinations()).err();
        return Err(Failure::error(nowhere.unwrap_or(text)));
    }
    let resumed = state
        .sync_result
        .as_ref()
        .and_then(RequestedSources::resumed);
    let (wanted, revisions) = match resumed {
        Some(resumed) => resumed,
        None => {
            let wanted =
                RequestedSources::of_operation(&operation, &ctx.app).map_err(Failure::error)?;
            let revisions = wanted.revisions(&operation);
            (wanted, revisions)
        }
    };
    // Not only what the specification names: nothing is recorded of sources, nor fetched, that the
    // project does not take.
    sources::permitted(ctx, &wanted).map_err(Failure::error)?;
    let comparison_error = |message: String| Failure::error(format!("ComparisonError: {message}"));
    let named = Revisions::new(&wanted, revisions.clone());
    state.sync_result = Some(SyncOperationResult {
        revision: named.one,
        revisions: named.several,
        source: if wanted.several {
            Default::default()
        } else {
            wanted.list[0].clone()
        },
        sources: if wanted.several {
            wanted.list.clone()
        } else {
            Vec::new()
        },
        managed_namespace_metadata: ctx
            .app
            .spec
            .sync_policy
            .as_ref()
            .and_then(|p| p.managed_namespace_metadata.clone()),
        ..state.sync_result.take().unwrap_or_default()
    });
    ctx.app.status.operation_state = Some(state.into());
    // Looked up after the operation came: whoever pushes and then syncs means what was pushed.
    let lookup = Refresh {
        level: Level::ForceResolve,
        by_record: true,
        ..Refresh::default()
    };
    let cluster = compare::cluster(ctx)
        .await
        .map_err(|e| Failure::error(format!("Failed to get destination cluster: {e}")))?;
    // Manifests that a user gave have no revision, and Git is not needed.
    let desired = match operation.manifests.is_empty() {
        true => Some(
            sources::load(ctx, &cluster, &wanted, &revisions, &lookup)
                .await
                .map_err(comparison_error)?,
        ),
        false => None,
    };
    let revisions = desired
        .as_ref()
        .map(RenderedSources::revisions)
        .unwrap_or_default();
    if let Some(result) = ctx
        .app
        .status
        .operation_state
        .as_mut()
        .and_then(|s| s.sync_result.as_mut())
    {
        result.revision.clone_from(&revisions.one);
        result.revisions.clone_from(&revisions.several);
    }
    let comparison = compare::with_live(ctx, &cluster, desired.as_ref(), &operation.manifests)
        .await
        .map_err(comparison_error)?;
    if let Some(text) = status::error_text(&comparison.conditions) {
        return Err(Failure::error(text));
    }
    // A retry with the newest revision may meet what nobody has seen.
    if let Some(large) =
        LargePrune::of(&comparison, prune_limit).filter(|_| operation.prune && !may_prune_much)
    {
        let message =
            auto_sync::unconfirmed(&large, &sources::shown(&revisions.one, &revisions.several));
        return Err(Failure {
            phase: OperationPhase::Failed,
            message,
        });
    }
    let request = SyncRequest {
        wave_timeout_secs: limits.wave_secs,
        ..request(ctx, &operation, &revisions.one, id)
    };
    ctx.memo.syncing = Some(supersede::Syncing {
        revisions,
        digest: desired
            .as_ref()
            .map(RenderedSources::digest)
            .unwrap_or_default(),
    });
    let shared = comparison
        .conditions
        .iter()
        .find(|c| c.kind == ConditionType::SharedResourceWarning);
    if let Some(shared) = shared.filter(|_| request.options.fail_on_shared_resource) {
        return Err(Failure {
            phase: OperationPhase::Failed,
            message: format!("Shared resource found: {}", shared.message),
        });
    }
    let executor = impersonation::for_sync(ctx, &cluster).map_err(Failure::error)?;
    let kinds = cluster.cache.kinds();
    let permitted = |object: &Object, namespaced| permitted(&comparison, object, namespaced);
    let plan = heavy(&comparison.rules.project.name, || {
        sync::plan_with(&comparison, &request, &*kinds, &permitted)
    })
    .await;
    let mut result = ctx
        .app
        .status
        .operation_state
        .as_ref()
        .and_then(|s| s.sync_result.clone())
        .unwrap_or_default();
    let results = std::mem::take(&mut result.resources)
        .iter()
        .map(from_wire)
        .collect();
    let annotation = ctx
        .before
        .metadata
        .annotations
        .get(PROGRESS_ANNOTATION)
        .map(String::as_str);
    let progress = Progress::from_annotation(results, annotation, id);
    Ok(Running {
        request,
        plan,
        progress,
        result,
        cluster,
        executor,
        customizations: comparison.rules.customizations.clone(),
    })
}

pub(super) fn permitted(
    comparison: &Comparison,
    object: &Object,
    namespaced: bool,
) -> Result<(), String> {
    let rules = &comparison.rules;
    let kind = object.gvk().group_kind();
    if !permit::kind(&rules.project, &kind, object.name(), namespaced) {
        return Err(format!(
            "resource {}:{} is not permitted in project {}",
            kind.group, kind.kind, rules.project.name
        ));
    }
    let namespace = if object.namespace().is_empty() {
        rules.dest_namespace.as_str()
    } else {
        object.namespace()
    };
    if namespaced
        && !permit::destination(
            &rules.project,
            &rules.dest_server,
            &rules.dest_name,
            namespace,
        )
    {
        return Err(format!(
            "namespace {namespace} is not permitted in project '{}'",
            rules.project.name
        ));
    }
    Ok(())
}

/// Whether a user approved the prunes that ask for it, since the operation truly began.
fn prune_confirmed(ctx: &ReconcileContext<'_>, started_at: Timestamp) -> bool {
    let approved = ctx
        .app
        .metadata
        .annotations
        .get(constants::DELETION_APPROVED)
        .map(String::as_str);
    sync::request::deletion_confirmed(
        approved,
        ctx.memo
            .last_start
            .map_or(started_at, |start| start.truly(started_at)),
    )
}

fn request(
    ctx: &ReconcileContext<'_>,
    operation: &SyncOperation,
    revision: &str,
    id: &str,
) -> SyncRequest {
    let state = state(ctx);
    let started_at = state.started_at.map_or(ctx.now, |t| t.timestamp());
    let strategy = operation.sync_strategy.as_ref();
    let apply = strategy.and_then(|s| s.apply.as_ref());
    let force = apply.map(|a| a.force).or_else(|| {
        strategy
            .and_then(|s| s.hook.as_ref())
            .map(|h| h.sync_strategy_apply.force)
    });
    let metadata = ctx
        .app
        .spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.managed_namespace_metadata.as_ref());
    let migrating_from = ctx
        .app
        .metadata
        .annotations
        .get(constants::MIGRATION_MANAGER)
        .map(String::as_str);
    SyncRequest {
        operation_id: id.to_owned(),
        revision: revision.to_owned(),
        started_at,
        prune: operation.prune,
        dry_run: operation.dry_run,
        strategy_apply: apply.is_some(),
        force: force.unwrap_or_default(),
        resources: operation
            .resources
            .iter()
            .map(|r| sync::ResourceSelector {
                group: r.group.clone(),
                kind: r.kind.clone(),
                name: r.name.clone(),
                namespace: r.namespace.clone(),
            })
            .collect(),
        options: sync::SyncOptions::parse(&operation.sync_options).migrating_from(migrating_from),
        dest_namespace: ctx.app.spec.destination.namespace.clone(),
        namespace_metadata: metadata.map(|m| sync::NamespaceMetadata {
            labels: m.labels.clone(),
            annotations: m.annotations.clone(),
        }),
        wave_delay_secs: timeouts::wave_delay(
            ctx.controller.wave_delay,
            &ctx.controller.records.settings(),
        ),
        wave_timeout_secs: 0,
        superseded_by: None,
        terminate: false,
        prune_confirmed: prune_confirmed(ctx, started_at),
        skip_dry_run: false,
    }
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
