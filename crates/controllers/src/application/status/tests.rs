//! The status that a comparison gives, and what of it is written.

use super::*;
use serde_json::{Value, json};
use tiphys_apimachinery::{GroupKind, Object};
use tiphys_cluster::Settings;
use tiphys_engine::{
    compare::compare,
    types::{CompareRules, Condition, ConditionType, Desired, DryRuns, Health, KindInfo, Tracking},
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
    assert!(
        error_text(&told)
            .is_some_and(|t| t.starts_with("ComparisonError: argocd-cm: resource.exclusions: "))
    );
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

/// The definition requires the destination of what was compared. One without a server is the same as
/// none, and so would not be in the patch.
#[test]
fn a_spec_without_a_destination_was_compared_with_nothing() {
    let spec = json!({"source": {"repoURL": "r"}, "destination": {}, "project": "p"});
    let before: Application =
        serde_json::from_value(json!({"spec": spec})).expect("an Application");
    let mut after = before.clone();
    apply_unknown(&mut after, Timestamp::UNIX_EPOCH);
    let (from, to) = difference(&before, &after);
    let sync = |part: &Value, field: &str| part["status"]["sync"].get(field).cloned();
    assert_eq!(sync(&from, "comparedTo"), sync(&to, "comparedTo"));
    assert_eq!(sync(&to, "status"), Some(json!("Unknown")));
}
