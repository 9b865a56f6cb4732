//! From an operation to a plan: what is requested, whether it is permitted, and how it differs from
//! the cluster.
//!
//! Main function: [`prepare`]; main type: [`Running`].

use super::{
    auto_sync, compare,
    context::{ReconcileContext, state},
    impersonation,
    refresh::{Cause, Level, Refresh},
    requested::{self, RenderedSources, RequestedSources, Revisions},
    results::from_wire,
    running::{Running, Syncing},
    sources::{self},
    status, timeouts,
};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::{
    constants,
    operation::{SyncOperation, SyncOperationResult},
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{clusters::LiveCluster, scripts::heavy};
use tiphys_engine::{
    permit, spec,
    sync::{
        self, OperationPhase, PROGRESS_ANNOTATION, Progress, SyncRequest, large_prune::LargePrune,
    },
    types::{Comparison, ConditionType},
};

/// The operation ended before it could begin.
pub struct Failure {
    pub phase: OperationPhase,
    pub message: String,
}

impl Failure {
    fn error(message: impl Into<String>) -> Self {
        Self {
            phase: OperationPhase::Error,
            message: message.into(),
        }
    }
}

/// Computes the plan of an operation.
pub async fn prepare(ctx: &mut ReconcileContext<'_>, id: &str) -> Result<Running, Failure> {
    ctx.controller
        .project_of(&ctx.app)
        .map_err(|e| Failure::error(format!("Failed to load application project: {e}")))?;
    let Some(operation) = state(ctx).operation.sync else {
        return Err(Failure::error(
            "Invalid operation request: no operation specified",
        ));
    };
    let settings = ctx.controller.records.settings();
    let limits = timeouts::limits(&settings, &operation.sync_options).map_err(Failure::error)?;
    timeouts::supersede(&settings, &operation.sync_options).map_err(Failure::error)?;
    let prune_limit =
        timeouts::prune_limit(&settings, &operation.sync_options).map_err(Failure::error)?;
    let (wanted, revisions) = requested(ctx, &operation)?;
    record_sources(ctx, &wanted, revisions.clone());
    let cluster = compare::cluster(ctx)
        .await
        .map_err(|e| Failure::error(format!("Failed to get destination cluster: {e}")))?;
    let (desired, comparison) = compared(ctx, &cluster, &operation, &wanted, &revisions).await?;
    let revisions = desired
        .as_ref()
        .map(RenderedSources::revisions)
        .unwrap_or_default();
    refuse_large_prune(ctx, &operation, &comparison, prune_limit, &revisions)?;
    let request = SyncRequest {
        wave_timeout_secs: limits.wave_secs,
        ..request(ctx, &operation, &revisions.one, id)
    };
    ctx.memo.syncing = Some(Syncing {
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
    let (result, progress) = progress(ctx, id);
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

/// The sources to sync and their revisions: those of a resumed attempt, else those in the
/// operation, else the Application's own.
fn requested(
    ctx: &mut ReconcileContext<'_>,
    operation: &SyncOperation,
) -> Result<(RequestedSources, Vec<String>), Failure> {
    let problems = ctx.spec_problems();
    if let Some(text) = status::error_text(&problems) {
        status::set_conditions(&mut ctx.app.status, &problems, &status::BY_SPEC, ctx.now);
        let nowhere =
            spec::destination(&ctx.app.spec.destination, &ctx.controller.destinations()).err();
        return Err(Failure::error(nowhere.unwrap_or(text)));
    }
    let resumed = state(ctx)
        .sync_result
        .as_ref()
        .and_then(RequestedSources::resumed);
    let (wanted, revisions) = match resumed {
        Some(resumed) => resumed,
        None => {
            let wanted =
                RequestedSources::of_operation(operation, &ctx.app).map_err(Failure::error)?;
            let revisions = wanted.revisions(operation);
            (wanted, revisions)
        }
    };
    // Checks not only the spec's sources: sources that the project does not permit are neither
    // recorded nor fetched.
    sources::permitted(ctx, &wanted).map_err(Failure::error)?;
    Ok((wanted, revisions))
}

/// Records the sources and revisions in the operation's state.
fn record_sources(
    ctx: &mut ReconcileContext<'_>,
    wanted: &RequestedSources,
    revisions: Vec<String>,
) {
    let mut state = state(ctx);
    let named = Revisions::new(wanted, revisions);
    let (source, sources) = match wanted.several {
        true => (Default::default(), wanted.list.clone()),
        false => (wanted.list[0].clone(), Vec::new()),
    };
    let policy = ctx.app.spec.sync_policy.as_ref();
    state.sync_result = Some(SyncOperationResult {
        revision: named.one,
        revisions: named.several,
        source,
        sources,
        managed_namespace_metadata: policy.and_then(|p| p.managed_namespace_metadata.clone()),
        ..state.sync_result.take().unwrap_or_default()
    });
    ctx.app.status.operation_state = Some(state.into());
}

/// The manifests of the sources (`None`: local manifests) compared with the cluster.
async fn compared(
    ctx: &mut ReconcileContext<'_>,
    cluster: &Arc<LiveCluster>,
    operation: &SyncOperation,
    wanted: &RequestedSources,
    revisions: &[String],
) -> Result<(Option<RenderedSources>, Arc<Comparison>), Failure> {
    let comparison_error = |message: String| Failure::error(format!("ComparisonError: {message}"));
    // Looked up after the operation was requested: a user who pushes and then syncs means what was
    // pushed.
    let lookup = Refresh {
        level: Level::ForceResolve,
        hard: false,
        by_record: true,
        cause: Cause::Queue,
    };
    // Local manifests have no revision, and Git is not needed.
    let desired = match operation.manifests.is_empty() {
        true => Some(
            sources::load(ctx, cluster, wanted, revisions, &lookup)
                .await
                .map_err(|e| comparison_error(e.into()))?,
        ),
        false => None,
    };
    let revisions = desired
        .as_ref()
        .map(RenderedSources::revisions)
        .unwrap_or_default();
    let state = ctx.app.status.operation_state.as_mut();
    if let Some(result) = state.and_then(|s| s.sync_result.as_mut()) {
        result.revision = revisions.one;
        result.revisions = revisions.several;
    }
    let comparison = compare::with_live(ctx, cluster, desired.as_ref(), &operation.manifests)
        .await
        .map_err(|e| comparison_error(e.to_string()))?;
    match status::error_text(&comparison.conditions) {
        Some(text) => Err(Failure::error(text)),
        None => Ok((desired, comparison)),
    }
}

/// A retry with the newest revision may find changes that no one has reviewed.
fn refuse_large_prune(
    ctx: &ReconcileContext<'_>,
    operation: &SyncOperation,
    comparison: &Comparison,
    limit: u32,
    revisions: &Revisions,
) -> Result<(), Failure> {
    let is_confirmed = auto_sync::may_prune_much(&state(ctx).operation);
    let Some(large) =
        LargePrune::of(comparison, limit).filter(|_| operation.prune && !is_confirmed)
    else {
        return Ok(());
    };
    Err(Failure {
        phase: OperationPhase::Failed,
        message: auto_sync::unconfirmed(
            &large,
            &requested::shown(&revisions.one, &revisions.several),
        ),
    })
}

/// The stored progress of the attempt with this id.
fn progress(ctx: &ReconcileContext<'_>, id: &str) -> (SyncOperationResult, Progress) {
    let mut result = state(ctx).sync_result.unwrap_or_default();
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
    (result, Progress::from_annotation(results, annotation, id))
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

/// Whether a user approved the prunes that need confirmation since the operation really started.
pub fn prune_confirmed(ctx: &ReconcileContext<'_>, started_at: Timestamp) -> bool {
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
