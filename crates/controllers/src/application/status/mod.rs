//! Turns a comparison into an Application's status, and computes the minimal patch.
//!
//! Pure. Main function: [`apply_comparison`]. Where Argo CD keeps something (a transition time, an
//! order), so do we.

mod change;
mod conditions;
mod gone;
#[cfg(test)]
mod tests;

pub use change::{difference, events, keep_times};
pub use conditions::{BY_COMPARISON, BY_SPEC, error_text, set_conditions};
pub use gone::mark_gone;

use super::requested::Revisions;
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::{
    Application, Shared,
    access::without_passwords,
    application::{ApplicationDestination, ApplicationSpec},
    operation::OperationState,
    status::{ApplicationStatus, ComparedTo, HealthStatus, ResourceStatus, RevisionHistory},
};
use tiphys_engine::types::{Comparison, Entry, HealthStatus as HealthCode, SyncStatus};

/// Where resource health is stored if it is not in the status itself.
const HEALTH_IN_TREE: &str = "appTree";

/// The message about a status that the API server rejects.
pub const TOO_LARGE: &str = "Application status exceeds the Kubernetes resource size limit and could not be persisted. The displayed status may be stale. Reduce the number of managed resources, set ApplyOutOfSyncOnly=true, lower spec.revisionHistoryLimit, or split the Application.";

/// Inputs of the comparison other than the objects.
#[derive(Clone, Debug, Default)]
pub struct ComparisonFacts {
    pub revisions: Revisions,
    /// Of each source.
    pub source_types: Vec<String>,
    /// A comparison with manifests from Git counts as a reconciliation, one with cached ones does
    /// not.
    pub reconciled: bool,
    /// Store each resource's health in the status; otherwise only trees contain it.
    pub with_health: bool,
    /// The namespace of the controller's own configuration; the Application may be in another one.
    pub controller_namespace: String,
}

impl ComparisonFacts {
    /// The inputs of the last comparison, from the status.
    pub fn as_before(status: &ApplicationStatus) -> Self {
        let revisions = Revisions {
            one: status.sync.revision.clone(),
            several: status.sync.revisions.clone(),
        };
        let one = Some(&status.source_type)
            .filter(|kind| !kind.is_empty())
            .cloned();
        let source_types = if status.source_types.is_empty() {
            one.into_iter().collect()
        } else {
            status.source_types.clone()
        };
        Self {
            revisions,
            source_types,
            ..Self::default()
        }
    }
}

/// Writes the result of a comparison into the status.
pub fn apply_comparison(
    app: &mut Application,
    comparison: &Comparison,
    compared: &ComparisonFacts,
    now: Timestamp,
) {
    let several = !app.spec.sources.is_empty();
    let status = &mut *app.status;
    status.sync.status = comparison.sync.to_string();
    compared_to(status, &app.spec);
    status.sync.revision.clone_from(&compared.revisions.one);
    status
        .sync
        .revisions
        .clone_from(&compared.revisions.several);
    set_health(
        status,
        comparison.health.status,
        &comparison.health.message,
        now,
    );
    status.resources = resources(&comparison.entries, compared.with_health);
    let types = &compared.source_types;
    status.source_type = types
        .first()
        .filter(|_| !several)
        .cloned()
        .unwrap_or_default();
    status.source_types = if several { types.clone() } else { Vec::new() };
    status.resource_health_source = if compared.with_health {
        String::new()
    } else {
        HEALTH_IN_TREE.to_owned()
    };
    status
        .controller_namespace
        .clone_from(&compared.controller_namespace);
    if compared.reconciled || status.reconciled_at.is_none() {
        reconciled(status, now);
    }
    set_conditions(status, &comparison.conditions, &BY_COMPARISON, now);
}

/// Records in the status what was compared.
fn compared_to(status: &mut ApplicationStatus, spec: &ApplicationSpec) {
    if spec.destination == ApplicationDestination::default() {
        // Nothing can be compared, and the definition requires a destination here: an empty one
        // would not be in the patch.
        return;
    }
    let said = &status.sync.compared_to;
    if said.is_of(spec)
        && said.destination == spec.destination
        && said.ignore_differences == spec.ignore_differences
    {
        return;
    }
    let compared = ComparedTo {
        source: spec
            .source
            .clone()
            .filter(|_| spec.sources.is_empty())
            .unwrap_or_default(),
        sources: spec.sources.clone(),
        destination: spec.destination.clone(),
        ignore_differences: spec.ignore_differences.clone(),
    };
    status.sync.compared_to = compared.into();
}

/// Whether the status is from a comparison with manifests of the sources in the spec, and so is worth
/// keeping while they cannot be had.
pub fn is_compared(app: &Application) -> bool {
    let status = &app.status;
    status.reconciled_at.is_some()
        && status.sync.status != SyncStatus::Unknown.as_str()
        && status.sync.compared_to.is_of(&app.spec)
}

/// The status of an Application that cannot be compared at all. The revision stays that of the last
/// comparison.
pub fn apply_unknown(app: &mut Application, now: Timestamp) {
    let status = &mut *app.status;
    status.sync.status = SyncStatus::Unknown.to_string();
    compared_to(status, &app.spec);
    set_health(status, HealthCode::Unknown, "", now);
    reconciled(status, now);
}

/// The status of an Application whose objects could not be compared. Its previous resources stay
/// listed, without a status.
pub fn apply_uncompared(app: &mut Application, now: Timestamp) {
    apply_unknown(app, now);
    let told =
        |r: &ResourceStatus| !r.status.is_empty() && r.status != SyncStatus::Unknown.as_str();
    // Writing would copy the shared status.
    if app.status.resources.iter().any(told) {
        app.status
            .resources
            .iter_mut()
            .filter(|r| told(r))
            .for_each(|r| r.status = SyncStatus::Unknown.to_string());
    }
}

/// Clients wait until an Application was reconciled after its operation ended, and the recorded end
/// may be in the next second.
fn reconciled(status: &mut ApplicationStatus, now: Timestamp) {
    let ended = status
        .operation_state
        .as_ref()
        .and_then(|s| s.finished_at)
        .map(|t| t.timestamp());
    status.reconciled_at = Some(ended.map_or(now, |ended| ended.max(now)).into());
}

/// Takes the time of the comparison back if nothing else has changed.
pub fn without_news(status: &mut ApplicationStatus, before: &ApplicationStatus) {
    let now = std::mem::replace(&mut status.reconciled_at, before.reconciled_at);
    if status != before {
        status.reconciled_at = now;
    }
}

fn set_health(status: &mut ApplicationStatus, verdict: HealthCode, message: &str, now: Timestamp) {
    let verdict = verdict.to_string();
    if status.health.message != message {
        // The cause may change although the health stays the same.
        message.clone_into(&mut status.health.message);
    }
    if status.health.status != verdict {
        status.health.status = verdict;
        status.health.last_transition_time = Some(now.into());
    }
}

/// Entries in the status's form: sorted, hooks without a sync status.
pub fn resources(entries: &[Arc<Entry>], with_health: bool) -> Vec<ResourceStatus> {
    let mut list: Vec<_> = entries.iter().map(|e| resource(e, with_health)).collect();
    list.sort_by(|a, b| {
        (&a.group, &a.kind, &a.namespace, &a.name).cmp(&(&b.group, &b.kind, &b.namespace, &b.name))
    });
    list
}

/// One entry; `with_health` for readers, who see what the status omits.
pub fn resource(entry: &Entry, with_health: bool) -> ResourceStatus {
    let health = entry.health.as_ref().filter(|_| with_health);
    ResourceStatus {
        group: entry.gvk.group.clone(),
        version: entry.gvk.version.clone(),
        kind: entry.gvk.kind.clone(),
        namespace: entry.key.namespace.clone(),
        name: entry.key.name.clone(),
        status: entry.status.map(|s| s.to_string()).unwrap_or_default(),
        health: health.map(|h| HealthStatus {
            status: h.status.to_string(),
            message: h.message.clone(),
            last_transition_time: None,
        }),
        hook: entry.hook,
        requires_pruning: entry.requires_pruning,
        sync_wave: entry.sync_wave,
        requires_deletion_confirmation: entry.requires_deletion_confirmation,
    }
}

/// The state of an operation without results, for when the whole is too large. A running operation
/// ends here.
pub fn without_results(mut state: OperationState, now: Timestamp) -> OperationState {
    state
        .sync_result
        .iter_mut()
        .for_each(|result| result.resources = Vec::new());
    if matches!(state.phase.as_str(), "" | "Running" | "Terminating") {
        (state.phase, state.message) = ("Error".to_owned(), TOO_LARGE.to_owned());
        state.finished_at = Some(now.into());
    }
    state
}

/// Appends a finished sync to the history and trims it to the Application's limit (ten by default).
pub fn append_history(app: &mut Application, state: &OperationState, now: Timestamp) {
    let Some(result) = &state.sync_result else {
        return;
    };
    let limit = app
        .spec
        .revision_history_limit
        .map_or(10, |l| usize::try_from(l).unwrap_or(0));
    let history = &mut app.status.history;
    let id = history.last().map_or(0, |h| h.id + 1);
    history.push(RevisionHistory {
        id,
        revision: result.revision.clone(),
        revisions: result.revisions.clone(),
        source: result.source.clone(),
        sources: result.sources.clone(),
        deployed_at: Some(now.into()),
        deploy_started_at: state.started_at,
        initiated_by: state.operation.initiated_by.clone(),
    });
    let surplus = history.len().saturating_sub(limit);
    history.drain(..surplus);
}

/// Removes passwords from every message before it is stored, whatever its source.
pub fn hide_passwords(status: &mut Shared<ApplicationStatus>) {
    let suspect = |text: &String| text.contains('@');
    let state = status.operation_state.as_ref();
    let results = state
        .and_then(|s| s.sync_result.as_ref())
        .map(|r| r.resources.as_slice())
        .unwrap_or_default();
    let any = status.conditions.iter().any(|c| suspect(&c.message))
        || suspect(&status.health.message)
        || state.is_some_and(|s| suspect(&s.message))
        || results.iter().any(|r| suspect(&r.message));
    // Writing would copy the shared status.
    if !any {
        return;
    }
    let status = &mut **status;
    let hide = |text: &mut String| *text = without_passwords(text);
    status
        .conditions
        .iter_mut()
        .for_each(|c| hide(&mut c.message));
    hide(&mut status.health.message);
    if let Some(state) = status.operation_state.as_deref_mut() {
        hide(&mut state.message);
        state
            .sync_result
            .iter_mut()
            .flat_map(|r| &mut r.resources)
            .for_each(|r| hide(&mut r.message));
    }
}
