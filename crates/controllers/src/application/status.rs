//! Turns a comparison into an Application's status, and computes the minimal patch.
//!
//! Pure. Main function: [`apply_comparison`]. Where Argo CD keeps something (a transition time, an
//! order), so do we.

use super::requested::Revisions;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{
    Application, Shared,
    access::without_passwords,
    application::ApplicationSpec,
    operation::OperationState,
    status::{
        ApplicationCondition, ApplicationStatus, ComparedTo, HealthStatus, ResourceStatus,
        RevisionHistory,
    },
};
use tiphys_engine::types::{
    Comparison, Condition, ConditionType, Entry, HealthStatus as HealthCode, SyncStatus,
};

/// Where resource health is stored if it is not in the status itself.
const HEALTH_IN_TREE: &str = "appTree";

/// The condition types that a comparison sets; others stay.
pub const BY_COMPARISON: [ConditionType; 5] = [
    ConditionType::ComparisonError,
    // For resources that lack a namespace which the spec does not provide either.
    ConditionType::InvalidSpecError,
    ConditionType::SharedResourceWarning,
    ConditionType::RepeatedResourceWarning,
    ConditionType::ExcludedResourceWarning,
];

/// The condition types that the validation of the spec sets.
pub const BY_SPEC: [ConditionType; 2] =
    [ConditionType::InvalidSpecError, ConditionType::UnknownError];

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

/// Replaces the conditions of the `decided` types; an unchanged one keeps its time.
pub fn set_conditions(
    status: &mut ApplicationStatus,
    found: &[Condition],
    decided: &[ConditionType],
    now: Timestamp,
) {
    let before = std::mem::take(&mut status.conditions);
    let mut after: Vec<_> = before
        .iter()
        .filter(|c| !decided.iter().any(|d| d.as_str() == c.type_))
        .cloned()
        .collect();
    for condition in found.iter().filter(|c| decided.contains(&c.kind)) {
        let kind = condition.kind.as_str();
        let known = before
            .iter()
            .find(|c| c.type_ == kind && c.message == condition.message);
        let time = known
            .and_then(|c| c.last_transition_time)
            .or_else(|| Some(now.into()));
        let new = ApplicationCondition {
            type_: kind.to_owned(),
            message: condition.message.clone(),
            last_transition_time: time,
        };
        if !after.contains(&new) {
            after.push(new);
        }
    }
    after.sort_by(|a, b| (&a.type_, &a.message).cmp(&(&b.type_, &b.message)));
    status.conditions = after;
}

/// The errors among the conditions, as an operation reports them: `<Type>: <message>;…`, in the
/// order of a status.
pub fn error_text(conditions: &[Condition]) -> Option<String> {
    let stops = |c: &&Condition| {
        matches!(
            c.kind,
            ConditionType::ComparisonError
                | ConditionType::InvalidSpecError
                | ConditionType::UnknownError
        )
    };
    let errors: BTreeSet<_> = conditions
        .iter()
        .filter(stops)
        .map(|c| (c.kind.as_str(), c.message.as_str()))
        .collect();
    let texts: Vec<_> = errors
        .into_iter()
        .map(|(kind, message)| format!("{kind}: {message}"))
        .collect();
    (!texts.is_empty()).then(|| texts.join(";"))
}

/// A value that changes and changes back before it is stored has not changed: its time is kept.
pub fn keep_times(before: &ApplicationStatus, after: &mut Shared<ApplicationStatus>) {
    let is_stored = |now: &ApplicationCondition| {
        before
            .conditions
            .iter()
            .find(|c| c.type_ == now.type_ && c.message == now.message)
    };
    let stays = |now: &ApplicationCondition| {
        is_stored(now).is_some_and(|c| c.last_transition_time != now.last_transition_time)
    };
    if before.health.status == after.health.status
        && before.health.last_transition_time != after.health.last_transition_time
    {
        after.health.last_transition_time = before.health.last_transition_time;
    }
    // Writing would copy the shared status.
    if after.conditions.iter().any(stays) {
        for condition in &mut after.conditions {
            if let Some(stored) = is_stored(condition) {
                condition.last_transition_time = stored.last_transition_time;
            }
        }
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

/// `before` and `after`, reduced to what the controller writes (status and operation) and to what
/// differs. Both are empty maps if nothing differs.
pub fn difference(before: &Application, after: &Application) -> (Value, Value) {
    let (mut from, mut to) = (json!({}), json!({}));
    if before.status != after.status {
        let (mut old, mut new) = before.status.differing(&after.status);
        if old.sync.compared_to == new.sync.compared_to {
            // Most writes change only a revision and a time.
            (old.sync.compared_to, new.sync.compared_to) = Default::default();
        }
        (from["status"], to["status"]) = (json!(old), json!(new));
    }
    if before.operation != after.operation {
        for (part, app) in [(&mut from, before), (&mut to, after)] {
            if let Some(operation) = &app.operation {
                part["operation"] = json!(operation);
            }
        }
    }
    (from, to)
}

/// The messages of the Events for a change of status.
pub fn events(before: &ApplicationStatus, after: &ApplicationStatus) -> Vec<String> {
    let mut events = Vec::new();
    if before.sync.status != after.sync.status {
        events.push(format!(
            "Updated sync status: {} -> {}",
            before.sync.status, after.sync.status
        ));
    }
    if before.health.status != after.health.status {
        let mut text = format!(
            "Updated health status: {} -> {}",
            before.health.status, after.health.status
        );
        if !after.health.message.is_empty() {
            text = format!("{text} ({})", after.health.message);
        }
        events.push(text);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tiphys_apimachinery::{GroupKind, Object};
    use tiphys_cluster::Settings;
    use tiphys_engine::{
        compare::compare,
        types::{CompareRules, Desired, DryRuns, Health, KindInfo, Tracking},
    };

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time_and_one_not_decided_stays() {
        let mut status = ApplicationStatus::default();
        let stays = [
            Condition::new(ConditionType::SyncError, "s"),
            Condition::new(ConditionType::ComparisonError, "c"),
        ];
        set_conditions(
            &mut status,
            &stays,
            &[ConditionType::SyncError, ConditionType::ComparisonError],
            time("2026-01-01T00:00:00Z"),
        );
        let before = status.conditions.clone();
        set_conditions(
            &mut status,
            &stays[1..],
            &BY_COMPARISON,
            time("2026-01-02T00:00:00Z"),
        );
        assert_eq!(status.conditions, before);
        set_conditions(
            &mut status,
            &[],
            &BY_COMPARISON,
            time("2026-01-03T00:00:00Z"),
        );
        assert_eq!(status.conditions.len(), 1);
    }

    fn compared(revision: &str, health: HealthCode, at: &str, app: &mut Application) {
        compared_with(
            ComparisonFacts {
                revisions: Revisions {
                    one: revision.into(),
                    several: Vec::new(),
                },
                ..ComparisonFacts::default()
            },
            health,
            at,
            app,
        );
    }

    fn compared_with(facts: ComparisonFacts, health: HealthCode, at: &str, app: &mut Application) {
        let rules = CompareRules::new(
            Tracking::annotation("a"),
            "argocd",
            "a",
            "https://kubernetes.default.svc",
            "prod",
        );
        let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "prod"}});
        let live = Object::from_value(live).expect("a map");
        let mut comparison = compare(
            Desired::default(),
            &[(live.key(), Arc::new(live.into()))].into(),
            &rules,
            &NoKinds,
            None,
            &DryRuns::new(),
        );
        comparison.health = Health::new(health, "");
        apply_comparison(app, &comparison, &facts, time(at));
    }

    struct NoKinds;

    impl KindInfo for NoKinds {
        fn is_namespaced(&self, _: &GroupKind) -> Option<bool> {
            Some(true)
        }
    }

    #[test]
    fn c26_one_source_has_one_revision() {
        let mut app = Application::default();
        compared("abc", HealthCode::Healthy, "2026-01-01T00:00:00Z", &mut app);
        assert_eq!(
            (
                app.status.sync.revision.as_str(),
                app.status.sync.revisions.len()
            ),
            ("abc", 0)
        );
    }

    #[test]
    fn c78_only_what_git_was_asked_for_counts_as_a_reconciliation() {
        let mut app = Application::default();
        let told = |app: &Application| app.status.reconciled_at.map(|t| t.timestamp());
        compared("abc", HealthCode::Healthy, "2026-01-01T00:00:00Z", &mut app);
        assert_eq!(
            told(&app),
            Some(time("2026-01-01T00:00:00Z")),
            "the first one does, whatever it is"
        );
        compared("abc", HealthCode::Healthy, "2026-01-02T00:00:00Z", &mut app);
        assert_eq!(told(&app), Some(time("2026-01-01T00:00:00Z")));
        compared_with(
            ComparisonFacts {
                reconciled: true,
                ..ComparisonFacts::default()
            },
            HealthCode::Healthy,
            "2026-01-03T00:00:00Z",
            &mut app,
        );
        assert_eq!(told(&app), Some(time("2026-01-03T00:00:00Z")));
    }

    #[test]
    fn c30_settings_that_cannot_be_read_make_everything_unknown() {
        let settings =
            Settings::of_config([("resource.exclusions".to_owned(), "- a: [".to_owned())].into());
        let problem = settings.config.exclusions().expect_err("it is broken");
        let mut app = Application::default();
        apply_unknown(&mut app, time("2026-01-01T00:00:00Z"));
        let told = [Condition::new(ConditionType::ComparisonError, problem)];
        set_conditions(
            &mut app.status,
            &told,
            &BY_COMPARISON,
            time("2026-01-01T00:00:00Z"),
        );
        assert_eq!(
            (
                app.status.sync.status.as_str(),
                app.status.health.status.as_str()
            ),
            ("Unknown", "Unknown")
        );
        assert!(error_text(&told).is_some_and(|t| t.starts_with("ComparisonError: argocd-cm: resource.exclusions: ")));
        assert_eq!(
            error_text(&[Condition::new(ConditionType::SyncError, "no")]),
            None,
            "a SyncError does not stop a sync"
        );
    }

    #[test]
    fn c11_of_what_cannot_be_compared_nothing_is_said() {
        let resource = |status: &str| ResourceStatus {
            status: status.into(),
            ..ResourceStatus::default()
        };
        let mut app = Application::default();
        app.status.resources = vec![resource("Synced"), resource("OutOfSync"), resource("")];
        apply_uncompared(&mut app, time("2026-01-01T00:00:00Z"));
        assert_eq!(
            (
                app.status.sync.status.as_str(),
                app.status.health.status.as_str()
            ),
            ("Unknown", "Unknown")
        );
        let told: Vec<&str> = app
            .status
            .resources
            .iter()
            .map(|r| r.status.as_str())
            .collect();
        assert_eq!(told, ["Unknown", "Unknown", ""], "a hook has no status");
    }

    #[test]
    fn c85_events_tell_what_changed() {
        let status = |sync: &str, health: &str, message: &str| {
            let mut status = ApplicationStatus::default();
            (
                status.sync.status,
                status.health.status,
                status.health.message,
            ) = (sync.into(), health.into(), message.into());
            status
        };
        let before = status("Synced", "Healthy", "");
        let sync = "Updated sync status: Synced -> OutOfSync";
        assert_eq!(events(&before, &before), Vec::<String>::new());
        assert_eq!(events(&before, &status("OutOfSync", "Healthy", "")), [sync]);
        assert_eq!(
            events(&before, &status("OutOfSync", "Missing", "")),
            [sync, "Updated health status: Healthy -> Missing"]
        );
        let degraded = status("Synced", "Degraded", "Caused by Pod:a");
        assert_eq!(
            events(&before, &degraded),
            ["Updated health status: Healthy -> Degraded (Caused by Pod:a)"]
        );
        assert_eq!(
            events(&degraded, &status("Synced", "Degraded", "Caused by Pod:b")),
            Vec::<String>::new()
        );
    }

    #[test]
    fn c40_health_is_kept_in_the_tree_and_its_time_changes_with_it_alone() {
        let mut app = Application::default();
        compared("a", HealthCode::Healthy, "2026-01-01T00:00:00Z", &mut app);
        assert_eq!(
            (
                app.status.resources.len(),
                app.status.resources[0].health.clone()
            ),
            (1, None)
        );
        assert_eq!(app.status.resource_health_source, "appTree");
        let since = app.status.health.last_transition_time;
        compared("b", HealthCode::Healthy, "2026-01-02T00:00:00Z", &mut app);
        assert_eq!(
            app.status.health.last_transition_time, since,
            "another revision, the same health"
        );
        compared("b", HealthCode::Degraded, "2026-01-03T00:00:00Z", &mut app);
        assert_eq!(
            app.status.health.last_transition_time,
            Some(time("2026-01-03T00:00:00Z").into())
        );
    }

    #[test]
    fn reconciled_is_never_before_the_end_of_the_operation() {
        let mut app = Application::default();
        let state = OperationState {
            finished_at: Some(time("2026-01-01T00:00:02Z").into()),
            ..OperationState::default()
        };
        app.status.operation_state = Some(state.into());
        apply_unknown(&mut app, time("2026-01-01T00:00:01Z"));
        assert_eq!(
            app.status.reconciled_at,
            Some(time("2026-01-01T00:00:02Z").into())
        );
        apply_unknown(&mut app, time("2026-01-01T00:00:05Z"));
        assert_eq!(
            app.status.reconciled_at,
            Some(time("2026-01-01T00:00:05Z").into())
        );
    }

    #[test]
    fn the_message_of_a_health_that_stays_is_renewed_and_its_time_stays() {
        let mut status = ApplicationStatus::default();
        let (first, second) = (time("2026-01-01T00:00:00Z"), time("2026-01-01T00:01:00Z"));
        set_health(
            &mut status,
            HealthCode::Degraded,
            "Caused by apps/Deployment:a",
            first,
        );
        set_health(
            &mut status,
            HealthCode::Degraded,
            "Caused by apps/Deployment:b",
            second,
        );
        let said = |status: &ApplicationStatus| {
            (
                status.health.message.clone(),
                status.health.last_transition_time,
            )
        };
        assert_eq!(
            said(&status),
            ("Caused by apps/Deployment:b".to_owned(), Some(first.into()))
        );
        set_health(&mut status, HealthCode::Healthy, "", second);
        assert_eq!(said(&status), (String::new(), Some(second.into())));
    }

    #[test]
    fn c40_what_changed_and_changed_back_before_it_was_stored_keeps_its_time() {
        let (first, second) = (time("2026-01-01T00:00:00Z"), time("2026-01-01T00:00:00.5Z"));
        let third = time("2026-01-01T00:01:00Z");
        let condition = |text: &str| [Condition::new(ConditionType::ComparisonError, text)];
        let mut before = ApplicationStatus::default();
        set_health(&mut before, HealthCode::Healthy, "", first);
        set_conditions(&mut before, &condition("c"), &BY_COMPARISON, first);
        let mut after = Shared::from(before.clone());
        set_health(&mut after, HealthCode::Progressing, "", third);
        set_conditions(&mut after, &condition("d"), &BY_COMPARISON, third);
        keep_times(&before, &mut after);
        assert_eq!(
            after.health.last_transition_time,
            Some(third.into()),
            "it did change"
        );
        assert_eq!(after.conditions[0].last_transition_time, Some(third.into()));
        set_health(&mut after, HealthCode::Healthy, "", third);
        set_conditions(&mut after, &condition("c"), &BY_COMPARISON, third);
        keep_times(&before, &mut after);
        assert_eq!(*after, before);
        // However soon after: the statuses are compared, not the times.
        set_health(&mut after, HealthCode::Degraded, "", second);
        keep_times(&before, &mut after);
        assert_eq!(
            (
                after.health.status.as_str(),
                after.health.last_transition_time
            ),
            ("Degraded", Some(second.into()))
        );
    }

    #[test]
    fn the_namespace_of_the_controller_is_not_that_of_the_application() {
        let mut app = Application::default();
        app.metadata.namespace = "team".into();
        let facts = ComparisonFacts {
            controller_namespace: "argocd".into(),
            ..ComparisonFacts::default()
        };
        compared_with(facts, HealthCode::Healthy, "2026-01-01T00:00:00Z", &mut app);
        assert_eq!(app.status.controller_namespace, "argocd");
    }

    #[test]
    fn c65_history_counts_on_and_is_trimmed() {
        let mut app = Application::default();
        app.spec.revision_history_limit = Some(2);
        let state = OperationState {
            sync_result: Some(Default::default()),
            ..OperationState::default()
        };
        for _ in 0..4 {
            append_history(&mut app, &state, time("2026-01-01T00:00:00Z"));
        }
        assert_eq!(
            app.status.history.iter().map(|h| h.id).collect::<Vec<_>>(),
            [2, 3]
        );
        let mut unlimited = Application::default();
        for _ in 0..12 {
            append_history(&mut unlimited, &state, time("2026-01-01T00:00:00Z"));
        }
        assert_eq!(
            unlimited
                .status
                .history
                .iter()
                .map(|h| h.id)
                .collect::<Vec<_>>(),
            (2..12).collect::<Vec<_>>(),
            "ten"
        );
    }

    #[test]
    fn c65_an_entry_tells_what_was_deployed_by_whom_and_when() {
        let (started, ended) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z");
        let by = json!({"username": "u"});
        for (part, result) in [
            (
                "one",
                json!({"revision": "a", "source": {"repoURL": "r", "path": "p"}}),
            ),
            (
                "several",
                json!({"revisions": ["a", "b"], "sources": [{"repoURL": "r"}, {"repoURL": "s"}]}),
            ),
        ] {
            let state = json!({"phase": "Succeeded", "startedAt": started, "operation": {"initiatedBy": by}, "syncResult": result});
            let mut app = Application::default();
            append_history(
                &mut app,
                &serde_json::from_value(state).expect("a state"),
                time(ended),
            );
            let mut entry = result.clone();
            entry["id"] = 0.into();
            entry["deployStartedAt"] = started.into();
            entry["deployedAt"] = ended.into();
            entry["initiatedBy"] = by.clone();
            let got = json!(app.status.history[0]);
            let said: serde_json::Map<String, Value> = got
                .as_object()
                .expect("a map")
                .iter()
                .filter(|(key, _)| entry.get(key).is_some())
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            assert_eq!(Value::Object(said), entry, "{part}");
        }
    }

    #[test]
    fn nothing_changed_means_no_difference_and_a_cleared_operation_is_gone() {
        let mut before = Application::default();
        assert_eq!(difference(&before, &before), (json!({}), json!({})));
        before.operation = Some(Default::default());
        let mut after = before.clone();
        after.operation = None;
        assert_eq!(
            difference(&before, &after),
            (json!({"operation": before.operation}), json!({}))
        );
    }
}
