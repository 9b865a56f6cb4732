//! Sync, Rollback and TerminateOperation. They set or end the Application's `operation`, which the
//! controller carries out.

use super::{audit, named::found, of_repo_server, syncs_itself, validate, with_health};
use crate::{
    ApiError, Code,
    access::{Authorized, Get, Guard, Override, Rollback, Sync, Writes},
    ports::StoreError,
    state::State,
};
use jiff::Timestamp;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tiphys_api::{
    AppProject, Application,
    operation::{Operation, OperationInitiator, SyncOperation, SyncStrategy, SyncStrategyApply},
    rpc::application::{
        ApplicationRollbackRequest, ApplicationSyncRequest, OperationTerminateRequest,
        OperationTerminateResponse,
    },
    source::ApplicationSource,
};
use tiphys_engine::{integrity, spec, sync::window::Windows};

/// Whether a sync to another revision than the source's needs a permission of its own.
const OVERRIDE_FOR_REVISIONS: &str = "application.sync.requireOverridePrivilegeForRevisionSync";
const TRIES: usize = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

pub async fn sync(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationSyncRequest,
) -> Result<Application, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    may_sync_now(&app, &project)?;
    let app: Authorized<Application, Sync> = guard.also(&app)?;
    let settings = state.settings.fresh().await?;
    let is_override = !q.manifests.is_empty()
        || settings.flag(OVERRIDE_FOR_REVISIONS) && names_other_revision(&app, &q);
    if is_override {
        guard.also::<Override, _, _>(&app)?;
    }
    if !q.manifests.is_empty()
        && integrity::has_criteria(&project, spec::sources(&app.spec).iter().map(AsRef::as_ref))
    {
        return Err(ApiError::precondition(integrity::NO_LOCAL_MANIFESTS));
    }
    let dry_run = q.dry_run.unwrap_or(false);
    if !q.manifests.is_empty() && syncs_itself(&app) && !dry_run {
        return Err(ApiError::precondition(
            "cannot use local sync when Automatic Sync Policy is enabled unless for dry run",
        ));
    }
    if app.metadata.deletion_timestamp.is_some() {
        return Err(ApiError::precondition("application is deleting"));
    }
    let policy = app.spec.sync_policy.clone().unwrap_or_default();
    let options = q
        .sync_options
        .as_ref()
        .map_or(&policy.sync_options, |o| &o.items);
    if options.iter().any(|o| o == "Replace=true")
        && !(settings.replace_allowed && state.options.replace_allowed)
    {
        return Err(ApiError::precondition(
            "sync with replace was disabled on the API Server level via the server configuration",
        ));
    }
    let revisions = resolve(&state, &app, &project, &q).await?;
    let partial = if q.resources.is_empty() {
        ""
    } else {
        "partial "
    };
    let action = match () {
        () if !q.manifests.is_empty() => format!("initiated {partial}sync locally"),
        () => format!("initiated {partial}sync to {}", revisions.display),
    };
    let synced = spec::synced(&app.spec);
    let several = !synced.sources.is_empty();
    let operation = Operation {
        sync: Some(SyncOperation {
            source: if several { None } else { synced.source.clone() },
            revision: revisions.one,
            revisions: revisions.each,
            sources: synced.sources.clone(),
            prune: q.prune.unwrap_or(false),
            dry_run,
            sync_options: q.sync_options.map_or(policy.sync_options, |o| o.items),
            sync_strategy: q.strategy,
            resources: q.resources,
            manifests: q.manifests,
            ..Default::default()
        }),
        initiated_by: OperationInitiator {
            username: guard.caller().username().to_owned(),
            automated: false,
        },
        info: q.infos,
        retry: q.retry_strategy.or(policy.retry).unwrap_or_default(),
    };
    let started = start(&state, &guard, &app, &operation).await?;
    audit::app(
        &state,
        guard.caller(),
        &started,
        audit::OPERATION_STARTED,
        &action,
    )
    .await;
    Ok(with_health(&state, started).await)
}

/// Whether the request names a revision that is not the source's own.
fn names_other_revision(app: &Application, q: &ApplicationSyncRequest) -> bool {
    let differs = |asked: &str, source: &ApplicationSource| {
        !asked.is_empty() && asked != source.target_revision
    };
    if app.spec.sources.is_empty() {
        let asked = q.revision.as_deref().unwrap_or_default();
        return app
            .spec
            .source
            .as_ref()
            .is_some_and(|source| differs(asked, source));
    }
    q.source_positions
        .iter()
        .zip(&q.revisions)
        .any(|(position, asked)| {
            let source = source_at(*position).and_then(|index| app.spec.sources.get(index));
            source.is_none_or(|source| differs(asked, source))
        })
}

/// The index of the source at a position, which counts from 1.
pub(super) fn source_at(position: i64) -> Option<usize> {
    usize::try_from(position.checked_sub(1)?).ok()
}

/// Checks that the project lets a user sync now.
fn may_sync_now(app: &Application, project: &AppProject) -> Result<(), ApiError> {
    let denied = |why: String| ApiError::new(Code::PermissionDenied, format!("cannot sync: {why}"));
    match Windows::of(&project.spec.sync_windows, app).can_sync(true, None, Timestamp::now()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(denied("blocked by sync window".to_owned())),
        Err(problem) => Err(denied(format!("invalid sync window: {problem}"))),
    }
}

/// Sets the operation unless one is already set.
async fn start<A: Writes>(
    state: &State,
    guard: &Guard,
    app: &Authorized<Application, A>,
    operation: &Operation,
) -> Result<Authorized<Application, A>, ApiError> {
    let name = &app.metadata.name;
    let context = |e: ApiError| e.context("error setting app operation");
    for _ in 0..TRIES {
        let read = state.reach.again(guard, app).await;
        let current =
            read.map_err(|e| context(e.context(&format!("error getting application {name:?}"))))?;
        if current.operation.is_some() {
            return Err(context(ApiError::precondition(
                "another operation is already in progress",
            )));
        }
        // Remove the previous result, so that nobody takes it for the new operation's.
        let former = current.status.operation_state.as_ref();
        let from = former.map_or_else(
            || json!({}),
            |state| json!({"status": {"operationState": state}}),
        );
        let to = former.map_or_else(
            || json!({"operation": operation}),
            |_| json!({"operation": operation, "status": {}}),
        );
        match state.reach.change_app(&current, &from, &to).await {
            Ok(started) => return Ok(started),
            Err(StoreError::Conflict(_)) => tokio::time::sleep(BETWEEN_TRIES).await,
            Err(e) => {
                return Err(context(
                    ApiError::from(e).context(&format!("error updating application {name:?}")),
                ));
            }
        }
    }
    Err(context(ApiError::internal(format!(
        "error updating application {name:?}: too many conflicts"
    ))))
}

/// The commits to sync to.
#[derive(Default)]
struct Revisions {
    one: String,
    each: Vec<String>,
    display: String,
}

async fn resolve<A>(
    state: &State,
    app: &Authorized<Application, A>,
    project: &AppProject,
    q: &ApplicationSyncRequest,
) -> Result<Revisions, ApiError> {
    let dry_run = q.dry_run.unwrap_or(false);
    let pinned = |asked: &str, source: &ApplicationSource| {
        let target = if source.target_revision.is_empty() {
            "HEAD"
        } else {
            &source.target_revision
        };
        !asked.is_empty() && asked != target && syncs_itself(app) && !dry_run
    };
    let spec = spec::synced(&app.spec);
    if spec.sources.is_empty() {
        let Some(source) = &spec.source else {
            return Err(ApiError::precondition(
                "spec.source.repoURL and either spec.source.path or spec.source.chart are required",
            ));
        };
        let asked = q.revision.as_deref().unwrap_or_default();
        if pinned(asked, source) {
            return Err(ApiError::precondition(format!(
                "Cannot sync to {asked}: auto-sync currently set to {}",
                source.target_revision
            )));
        }
        if !q.manifests.is_empty() {
            return Ok(Revisions::default());
        }
        let (one, display) = resolve_one(state, app, project, source, asked).await?;
        return Ok(Revisions {
            one,
            each: Vec::new(),
            display,
        });
    }
    let sources = &spec.sources;
    let mut asked = vec![String::new(); sources.len()];
    for (position, revision) in q.source_positions.iter().zip(&q.revisions) {
        let at = source_at(*position).and_then(|index| asked.get_mut(index));
        *at.ok_or_else(|| ApiError::plain("source position is out of range"))? = revision.clone();
    }
    let mut displays = Vec::new();
    let mut each = Vec::new();
    for (source, asked) in sources.iter().zip(&asked) {
        if pinned(asked, source) {
            let (url, target) = (&source.repo_url, &source.target_revision);
            return Err(ApiError::precondition(format!(
                "Cannot sync source {url} to {asked}: auto-sync currently set to {target}"
            )));
        }
        let (sha, display) = resolve_one(state, app, project, source, asked).await?;
        each.push(sha);
        displays.push(display);
    }
    Ok(Revisions {
        one: String::new(),
        each,
        display: displays.join(","),
    })
}

/// The commit and its display form.
async fn resolve_one<A>(
    state: &State,
    app: &Authorized<Application, A>,
    project: &AppProject,
    source: &ApplicationSource,
    asked: &str,
) -> Result<(String, String), ApiError> {
    let revision = if asked.is_empty() {
        source.target_revision.as_str()
    } else {
        asked
    };
    // A tag of a registry is often a commit's SHA as well.
    let is_git = source.chart.is_empty() && !source.repo_url.starts_with("oci://");
    if is_git && is_full_sha(revision) {
        return Ok((revision.to_owned(), revision.to_owned()));
    }
    validate::permitted(project, &source.repo_url)?;
    let repository = state
        .reach
        .repository_of(app, &source.repo_url)
        .await
        .map_err(|e| ApiError::precondition(e.within("error getting repository by URL").message))?
        .typed_by(source);
    let sources = state.reach.sources(&repository);
    let (sha, display) = sources.resolve(source, revision).await.map_err(|e| {
        let doing = "error resolving repo revision";
        ApiError::precondition(of_repo_server(&e).within(doing).message)
    })?;
    if is_git && is_abbreviated(revision) && sha.starts_with(revision) {
        // The abbreviation is what the operation has, as Argo CD writes it.
        return Ok((revision.to_owned(), display));
    }
    // The default branch has no name in events.
    let unnamed = display.strip_prefix("HEAD").filter(|_| revision.is_empty());
    let display = unnamed.map(str::to_owned).unwrap_or(display);
    Ok((sha, display))
}

/// Whether it can be the beginning of a SHA, as Argo CD sees it.
fn is_abbreviated(revision: &str) -> bool {
    (7..40).contains(&revision.len()) && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_full_sha(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// As a sync is permitted, unless the settings give it a permission of its own.
pub async fn rollback(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationRollbackRequest,
) -> Result<Application, ApiError> {
    if state.settings.fresh().await?.enforces_rollback()? {
        roll_back::<Rollback>(state, guard, q).await
    } else {
        roll_back::<Sync>(state, guard, q).await
    }
}

async fn roll_back<A: Writes>(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationRollbackRequest,
) -> Result<Application, ApiError> {
    let (app, _) = found::<A>(&state, &guard, &q).await?;
    if app.metadata.deletion_timestamp.is_some() {
        return Err(ApiError::precondition("application is deleting"));
    }
    if syncs_itself(&app) {
        return Err(ApiError::precondition(
            "rollback cannot be initiated when auto-sync is enabled",
        ));
    }
    let known = app.status.history.iter().find(|h| h.id == q.id);
    let deployed = known.ok_or_else(|| {
        ApiError::invalid(format!(
            "application {}/{} does not have deployment with id {}",
            app.metadata.namespace, app.metadata.name, q.id
        ))
    })?;
    if deployed.source == ApplicationSource::default() && deployed.sources.is_empty() {
        return Err(ApiError::precondition(
            "cannot rollback to revision deployed with Argo CD v0.11 or lower. sync to revision instead.",
        ));
    }
    let operation = Operation {
        sync: Some(SyncOperation {
            revision: deployed.revision.clone(),
            revisions: deployed.revisions.clone(),
            dry_run: q.dry_run.unwrap_or(false),
            prune: q.prune.unwrap_or(false),
            sync_options: app
                .spec
                .sync_policy
                .as_ref()
                .map(|p| p.sync_options.clone())
                .unwrap_or_default(),
            sync_strategy: Some(SyncStrategy {
                apply: Some(SyncStrategyApply::default()),
                hook: None,
            }),
            source: Some(deployed.source.clone()),
            sources: deployed.sources.clone(),
            ..Default::default()
        }),
        initiated_by: OperationInitiator {
            username: guard.caller().username().to_owned(),
            automated: false,
        },
        ..Default::default()
    };
    let started = start(&state, &guard, &app, &operation).await?;
    audit::app(
        &state,
        guard.caller(),
        &started,
        audit::OPERATION_STARTED,
        &format!("initiated rollback to {}", q.id),
    )
    .await;
    Ok(started.into_inner())
}

pub async fn terminate(
    state: Arc<State>,
    guard: Guard,
    q: OperationTerminateRequest,
) -> Result<OperationTerminateResponse, ApiError> {
    let (mut app, _) = found::<Sync>(&state, &guard, &q).await?;
    for _ in 0..TRIES {
        if app.operation.is_none() || app.status.operation_state.is_none() {
            return Err(ApiError::invalid(
                "Unable to terminate operation. No operation is in progress",
            ));
        }
        let m = &app.metadata;
        let patch = json!({"metadata": {"resourceVersion": m.resource_version}, "status": {"operationState": {"phase": "Terminating"}}});
        match state.reach.patch_app(&app, &patch).await {
            Ok(updated) => {
                audit::app(
                    &state,
                    guard.caller(),
                    &updated,
                    audit::RESOURCE_UPDATED,
                    "terminated running operation",
                )
                .await;
                return Ok(OperationTerminateResponse {});
            }
            Err(StoreError::Conflict(_)) => {
                tokio::time::sleep(BETWEEN_TRIES).await;
                let again = state.reach.again(&guard, &app).await;
                app = again.map_err(|e| e.context("error getting application by name"))?;
            }
            Err(e) => return Err(ApiError::from(e).context("error updating application")),
        }
    }
    Err(ApiError::internal(
        "Failed to terminate app. Too many conflicts",
    ))
}
