//! Decides whether an OutOfSync Application starts an automatic sync.
//!
//! Main function: [`decide`]. Pure: status, policy and time are arguments. The messages are Argo
//! CD's.

mod backoff;
mod confirmation;
mod drift;
#[cfg(test)]
mod tests;

pub use backoff::Backoff;
use confirmation::{confirmation, is_unconfirmed};
pub use confirmation::{may_prune_much, unconfirmed};
use drift::is_leaving;
pub use drift::{OURS, changed_by_others, leaving, wrote_another};

use super::{requested, rollback};
use jiff::{SignedDuration, Timestamp};
use tiphys_api::{
    Application,
    operation::{
        Operation, OperationInitiator, RetryStrategy, SyncOperation, SyncOperationResource,
    },
    status::ResourceStatus,
};
use tiphys_apimachinery::ResourceKey;
use tiphys_engine::sync::large_prune::LargePrune;

/// A self-heal that was reverted this many times is reported.
const OFTEN: i64 = 5;
/// At most this many resources are named in that report.
const NAMED: usize = 3;
/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub enum AutoSyncDecision {
    Nothing,
    /// Reconcile again after this time, because self-heal backs off. If self-heal was reverted
    /// often, the text becomes a `SyncError` condition.
    Later(std::time::Duration, Option<String>),
    Start(Box<Operation>),
    /// A `SyncError` condition gives the reason.
    Refused(String),
}

/// The result of the comparison.
pub struct AutoSyncInput<'a> {
    pub out_of_sync: bool,
    /// The compared revision, a full commit id; `revisions` for several sources.
    pub revision: &'a str,
    pub revisions: &'a [String],
    /// Whether files that the Application is made from may have changed since the last sync. If
    /// not, a new revision is no reason to sync.
    pub touched: bool,
    pub resources: &'a [ResourceStatus],
    /// Resources that require pruning and are already being deleted.
    pub leaving: &'a [&'a ResourceKey],
    /// Pruning would leave little.
    pub large_prune: Option<LargePrune>,
    /// Whether someone else wrote the differences of a resource.
    pub changed_by_others: &'a dyn Fn(&ResourceStatus) -> bool,
}

/// Whether automated sync is enabled for the Application.
pub fn is_on(app: &Application) -> bool {
    app.spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref())
        .is_some_and(|a| a.enabled != Some(false))
}

/// Decides for an Application that was just compared.
pub fn decide(
    app: &Application,
    compared: &AutoSyncInput<'_>,
    backoff: Backoff,
    now: Timestamp,
) -> AutoSyncDecision {
    let Some(policy) = app.spec.sync_policy.as_ref() else {
        return AutoSyncDecision::Nothing;
    };
    let Some(automated) = policy
        .automated
        .as_ref()
        .filter(|a| a.enabled != Some(false))
    else {
        return AutoSyncDecision::Nothing;
    };
    if app.operation.is_some() || app.metadata.deletion_timestamp.is_some() || !compared.out_of_sync
    {
        return AutoSyncDecision::Nothing;
    }
    let prune = automated.prune.unwrap_or_default();
    if !prune
        && compared
            .resources
            .iter()
            .all(|r| r.status == "Synced" || r.requires_pruning)
    {
        return AutoSyncDecision::Nothing;
    }
    let mut sync = SyncOperation {
        revision: compared.revision.to_owned(),
        revisions: compared.revisions.to_vec(),
        prune,
        sync_options: policy.sync_options.clone(),
        source: app
            .spec
            .sources
            .is_empty()
            .then(|| app.spec.source.clone().unwrap_or_default()),
        sources: app.spec.sources.clone(),
        ..SyncOperation::default()
    };
    let shown = requested::shown(compared.revision, compared.revisions);
    let unconfirmed = compared
        .large_prune
        .filter(|_| prune)
        .map(|large| unconfirmed(&large, &shown));
    match attempted(app, compared, &shown) {
        Attempt::None => {}
        // It failed because a confirmation was missing, which may exist now, or not be needed.
        Attempt::Failed { message, .. } if is_unconfirmed(&message) => {}
        Attempt::Failed { tried, message } => {
            return AutoSyncDecision::Refused(format!(
                "Failed last sync attempt to [{tried}]: {message}"
            ));
        }
        Attempt::Succeeded if !automated.self_heal.unwrap_or_default() => {
            return AutoSyncDecision::Nothing;
        }
        Attempt::Succeeded => {
            if let Some(decision) = heal(app, compared, backoff, now, &mut sync) {
                return decision;
            }
        }
    }
    let allow_empty = automated.allow_empty.unwrap_or_default();
    let info = match confirmation(app, compared, unconfirmed, prune, allow_empty) {
        Ok(info) => info,
        Err(refusal) => return AutoSyncDecision::Refused(refusal),
    };
    let retry = policy.retry.clone().unwrap_or(RetryStrategy {
        limit: 5,
        ..RetryStrategy::default()
    });
    let initiated_by = OperationInitiator {
        automated: true,
        ..OperationInitiator::default()
    };
    AutoSyncDecision::Start(Box::new(Operation {
        sync: Some(sync),
        initiated_by,
        info,
        retry,
    }))
}

/// Synced resources differ again: limits the operation to them. `Some`: do not sync now.
fn heal(
    app: &Application,
    compared: &AutoSyncInput<'_>,
    backoff: Backoff,
    now: Timestamp,
    sync: &mut SyncOperation,
) -> Option<AutoSyncDecision> {
    let left: Vec<&ResourceStatus> = compared
        .resources
        .iter()
        .filter(|r| r.status != "Synced" && !r.hook && !is_leaving(r, compared.leaving))
        .collect();
    if left.is_empty() && !compared.leaving.is_empty() {
        return Some(AutoSyncDecision::Nothing);
    }
    let last = app
        .status
        .operation_state
        .as_ref()
        .and_then(|s| s.operation.sync.as_ref());
    let attempts = last.map_or(0, |s| s.auto_heal_attempts_count);
    if let Some(wait) = remaining(app, backoff.before(attempts), now) {
        let shown = requested::shown(compared.revision, compared.revisions);
        return Some(AutoSyncDecision::Later(
            wait,
            undone(attempts, &shown, compared),
        ));
    }
    sync.auto_heal_attempts_count = attempts + 1;
    sync.resources = left.into_iter().map(selected).collect();
    None
}

/// The message of the Event for the start of an operation.
pub fn started(sync: &SyncOperation) -> String {
    let revisions = if sync.revisions.is_empty() {
        sync.revision.clone()
    } else {
        sync.revisions.join(", ")
    };
    format!("Initiated automated sync to '{revisions}'")
}

enum Attempt {
    None,
    Succeeded,
    /// `tried`: the revisions, for display.
    Failed {
        tried: String,
        message: String,
    },
}

/// Whether the last operation already tried this revision with these parameters.
fn attempted(app: &Application, compared: &AutoSyncInput<'_>, shown: &str) -> Attempt {
    let Some(state) = app.status.operation_state.as_ref() else {
        return Attempt::None;
    };
    if !matches!(state.phase.as_str(), "Succeeded" | "Failed" | "Error") {
        return Attempt::None;
    }
    // It timed out, and a rollback replaced this revision.
    if let Some(why) = rollback::reason(&state.operation, shown, &app.spec) {
        return Attempt::Failed {
            tried: shown.to_owned(),
            message: why.to_owned(),
        };
    }
    let same = match (&state.operation.sync, &state.sync_result) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(_), Some(result)) => {
            let same_source =
                !app.spec.sources.is_empty() || Some(&result.source) == app.spec.source.as_ref();
            let same_revision = (result.revision.as_str(), result.revisions.as_slice())
                == (compared.revision, compared.revisions);
            (same_revision || !compared.touched)
                && same_source
                && result.sources == app.spec.sources
        }
    };
    match (same, state.phase.as_str()) {
        (false, _) => Attempt::None,
        (true, "Succeeded") => Attempt::Succeeded,
        (true, _) => {
            let tried = state.sync_result.as_ref().map_or_else(
                || shown.to_owned(),
                |r| requested::shown(&r.revision, &r.revisions),
            );
            Attempt::Failed {
                tried,
                message: state.message.clone(),
            }
        }
    }
}

/// The warning about a self-heal that is reverted again and again. Tiphys's own; Argo CD reports
/// nothing.
fn undone(attempts: i64, revision: &str, compared: &AutoSyncInput<'_>) -> Option<String> {
    if attempts < OFTEN {
        return None;
    }
    let differing = compared
        .resources
        .iter()
        .filter(|r| r.status == "OutOfSync" && !r.hook);
    let (changed, left): (Vec<_>, Vec<_>) =
        differing.partition(|r| (compared.changed_by_others)(r));
    let why = match changed.is_empty() {
        false => format!(
            "was undone {attempts} times: something else changes {}",
            named(&changed)
        ),
        true => format!(
            "had no lasting effect {attempts} times: {} still differs from Git, and no other manager is known to have changed it",
            named(&left)
        ),
    };
    Some(format!(
        "The self-heal to [{revision}] {why}. It pauses longer each time; a new revision starts over"
    ))
}

fn named(resources: &[&ResourceStatus]) -> String {
    let mut names: Vec<String> = resources
        .iter()
        .map(|r| format!("{}/{}", r.kind, r.name))
        .collect();
    if names.len() > NAMED {
        names.splice(NAMED.., ["…".to_owned()]);
    }
    names.join(", ")
}

fn remaining(
    app: &Application,
    pause: SignedDuration,
    now: Timestamp,
) -> Option<std::time::Duration> {
    let finished = app
        .status
        .operation_state
        .as_ref()?
        .finished_at?
        .timestamp();
    let left = pause - now.duration_since(finished);
    (left > SignedDuration::ZERO).then(|| left.try_into().unwrap_or_default())
}

fn selected(resource: &ResourceStatus) -> SyncOperationResource {
    SyncOperationResource {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        ..SyncOperationResource::default()
    }
}
