//! Automatic syncs: decisions by status, policy and time.

use super::*;
use serde_json::{Value, json};

fn app(change: &Value) -> Application {
    let base = json!({
        "metadata": {"name": "a"},
        "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {}, "syncPolicy": {"automated": {}}},
        "status": {}
    });
    serde_json::from_value(
        tiphys_apimachinery::patch::json_merge::apply(&base, change).expect("maps"),
    )
    .expect("an Application")
}

fn resource(status: &str, requires_pruning: bool) -> ResourceStatus {
    ResourceStatus {
        kind: "ConfigMap".into(),
        name: "c".into(),
        status: status.into(),
        requires_pruning,
        ..ResourceStatus::default()
    }
}

fn tried(phase: &str, heal: i64) -> Value {
    json!({"status": {"operationState": {"phase": phase, "message": "boom", "finishedAt": "2026-01-01T00:00:00Z",
        "operation": {"sync": {"revision": "abc", "autoHealAttemptsCount": heal}}, "syncResult": {"revision": "abc", "source": {"repoURL": "r"}}}}})
}

fn compared(resources: &[ResourceStatus]) -> AutoSyncInput<'_> {
    AutoSyncInput {
        out_of_sync: true,
        revision: "abc",
        revisions: &[],
        touched: true,
        resources,
        leaving: &[],
        large_prune: None,
        changed_by_others: &|r| r.name == "c",
    }
}

fn run_with(change: &Value, compared: &AutoSyncInput<'_>) -> AutoSyncDecision {
    decide(
        &app(change),
        compared,
        Backoff::default(),
        "2026-01-01T00:00:01Z".parse().expect("a time"),
    )
}

fn run(change: &Value, resources: &[ResourceStatus]) -> AutoSyncDecision {
    run_with(change, &compared(resources))
}

#[test]
fn only_what_someone_else_wrote_since_then_is_a_change_by_others() {
    let since = "2026-01-01T00:00:01Z".parse().ok();
    let (before, then) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    for (manager, time, subresource, expected) in [
        ("autoscaler", then, "", true),
        ("autoscaler", "2026-01-01T00:00:02Z", "scale", true),
        ("autoscaler", before, "", false),
        ("autoscaler", then, "status", false),
        ("autoscaler", "", "", false),
        (OURS[0], then, "", false),
    ] {
        let entry = json!({"manager": manager, "time": time, "subresource": subresource});
        assert_eq!(wrote_another(&entry, since), expected, "{entry}");
        assert!(!wrote_another(&entry, None), "{entry}");
    }
}

#[test]
fn c41_a_new_revision_starts_a_sync_with_the_policys_options() {
    let change =
        json!({"spec": {"syncPolicy": {"automated": {"prune": true}, "syncOptions": ["A=b"]}}});
    let AutoSyncDecision::Start(op) = run(&change, &[resource("OutOfSync", false)]) else {
        panic!("it must start")
    };
    let sync = op.sync.expect("a sync");
    assert_eq!(
        (
            sync.revision.as_str(),
            sync.prune,
            sync.sync_options,
            op.retry.limit
        ),
        ("abc", true, vec!["A=b".to_owned()], 5)
    );
    assert!(op.initiated_by.automated);
    assert_eq!(
        started(&SyncOperation {
            revision: "abc".into(),
            ..SyncOperation::default()
        }),
        "Initiated automated sync to 'abc'"
    );
}

#[test]
fn c41_several_sources_and_a_retry_of_its_own() {
    let change = json!({"spec": {"source": null, "sources": [{"repoURL": "r"}, {"repoURL": "s"}],
        "syncPolicy": {"automated": {}, "retry": {"limit": 2}}}});
    let revisions = ["abc".to_owned(), "def".to_owned()];
    let drifted = [resource("OutOfSync", false)];
    let compared = AutoSyncInput {
        revision: "",
        revisions: &revisions,
        ..compared(&drifted)
    };
    let AutoSyncDecision::Start(op) = run_with(&change, &compared) else {
        panic!("it must start")
    };
    let sync = op.sync.expect("a sync");
    assert_eq!(
        (
            sync.revision.as_str(),
            sync.revisions.as_slice(),
            &sync.source
        ),
        ("", &revisions[..], &None)
    );
    assert_eq!(
        (sync.sources.len(), sync.prune, op.retry.limit),
        (2, false, 2)
    );
    assert_eq!(started(&sync), "Initiated automated sync to 'abc, def'");
}

#[test]
fn c42_c43_c44_c45_c52_it_stays_quiet_when_policy_or_state_say_so() {
    let drifted = [resource("OutOfSync", false)];
    for change in [
        json!({"spec": {"syncPolicy": null}}),
        json!({"spec": {"syncPolicy": {"automated": {"enabled": false}}}}),
        json!({"operation": {"sync": {}}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        tried("Succeeded", 0),
        // An operation that ended without a result counts as an attempt, too.
        json!({"status": {"operationState": {"phase": "Succeeded", "operation": {"sync": {}}}}}),
    ] {
        assert_eq!(
            run(&change, &drifted),
            AutoSyncDecision::Nothing,
            "{change}"
        );
    }
    assert_eq!(
        run(
            &json!({}),
            &[resource("OutOfSync", true), resource("Synced", false)]
        ),
        AutoSyncDecision::Nothing,
        "only pruning is left"
    );
    assert!(matches!(
        run(&json!({}), &drifted),
        AutoSyncDecision::Start(_)
    ));
    let calm = AutoSyncInput {
        out_of_sync: false,
        ..compared(&drifted)
    };
    assert_eq!(
        run_with(&json!({}), &calm),
        AutoSyncDecision::Nothing,
        "Synced or Unknown"
    );
}

#[test]
fn c46_a_failed_revision_is_not_tried_again() {
    let expected = "Failed last sync attempt to [abc]: boom";
    assert_eq!(
        run(&tried("Failed", 0), &[resource("OutOfSync", false)]),
        AutoSyncDecision::Refused(expected.into())
    );
}

#[test]
fn c51_a_revision_that_changes_nothing_for_the_application_is_no_new_attempt() {
    let source = json!({"repoURL": "r"});
    let result = |several: bool| match several {
        false => json!({"revision": "old", "source": source}),
        true => {
            json!({"revision": "", "source": {}, "revisions": ["old", "x"], "sources": [source, source]})
        }
    };
    for (several, touched, other_source, phase, expected) in [
        (false, false, false, "Succeeded", "attempted"),
        (false, true, false, "Succeeded", "none"),
        (false, false, true, "Succeeded", "none"),
        (false, false, false, "Failed", "failed at old: boom"),
        (false, false, false, "Running", "none"),
        (true, false, false, "Succeeded", "attempted"),
        (true, true, false, "Succeeded", "none"),
        (true, false, true, "Succeeded", "none"),
        (true, false, false, "Error", "failed at old x: boom"),
    ] {
        let now = if other_source {
            json!({"repoURL": "other"})
        } else {
            source.clone()
        };
        let spec = if several {
            json!({"source": null, "sources": [source, now]})
        } else {
            json!({"source": now})
        };
        let app = app(
            &json!({"spec": spec, "status": {"operationState": {"phase": phase, "message": "boom",
            "operation": {"sync": {}}, "syncResult": result(several)}}}),
        );
        let revisions = ["new".to_owned(), "x".to_owned()];
        let compared = AutoSyncInput {
            out_of_sync: true,
            revision: if several { "" } else { "new" },
            revisions: if several { &revisions } else { &[] },
            touched,
            resources: &[],
            leaving: &[],
            large_prune: None,
            changed_by_others: &|_| true,
        };
        let found = match attempted(&app, &compared, "new") {
            Attempt::None => "none".to_owned(),
            Attempt::Succeeded => "attempted".to_owned(),
            Attempt::Failed { tried, message } => format!("failed at {tried}: {message}"),
        };
        assert_eq!(
            found, expected,
            "several {several}, touched {touched}, another source {other_source}, {phase}"
        );
    }
}

#[test]
fn c47_pruning_everything_needs_allow_empty() {
    let prune = json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}});
    let expected = "Skipping sync attempt to [abc]: auto-sync will wipe out all resources";
    assert_eq!(
        run(&prune, &[resource("OutOfSync", true)]),
        AutoSyncDecision::Refused(expected.into())
    );
    assert_eq!(
        run(&prune, &[]),
        AutoSyncDecision::Refused(expected.into()),
        "there is nothing"
    );
    assert!(
        matches!(
            run(
                &prune,
                &[resource("OutOfSync", true), resource("Synced", false)]
            ),
            AutoSyncDecision::Start(_)
        ),
        "one stays"
    );
    let allowed =
        json!({"spec": {"syncPolicy": {"automated": {"prune": true, "allowEmpty": true}}}});
    assert!(matches!(
        run(&allowed, &[resource("OutOfSync", true)]),
        AutoSyncDecision::Start(_)
    ));
}

#[test]
fn a_large_prune_waits_for_an_approval_of_what_was_told() {
    let large = LargePrune {
        prunes: 15,
        live: 20,
    };
    let text = "Skipping sync attempt to [abc]: auto-sync would prune 15 of 20 resources; sync with prune, or confirm it by argocd.argoproj.io/deletion-approved";
    let resources = [resource("OutOfSync", true), resource("Synced", false)];
    let decided = |approved: &str, told: &str, change: &Value| {
        let condition = json!([{"type": "SyncError", "message": told, "lastTransitionTime": "2026-01-01T00:00:10Z"}]);
        let base = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": approved}},
            "spec": {"syncPolicy": {"automated": {"prune": true}}}, "status": {"conditions": condition}});
        let change = tiphys_apimachinery::patch::json_merge::apply(&base, change).expect("maps");
        let compared = AutoSyncInput {
            large_prune: Some(large),
            ..compared(&resources)
        };
        decide(
            &app(&change),
            &compared,
            Backoff::default(),
            "2026-01-01T00:01:00Z".parse().expect("a time"),
        )
    };
    let none = json!({});
    let refused = AutoSyncDecision::Refused(text.to_owned());
    assert_eq!(
        decided("2026-01-01T00:00:10Z", "another revision", &none),
        refused,
        "nobody was told of it"
    );
    assert_eq!(
        decided("2026-01-01T00:00:09Z", text, &none),
        refused,
        "too early"
    );
    assert_eq!(decided("yes", text, &none), refused);
    for counted in ["15 of 20", "15 of 19"] {
        let message = format!("{} (retried 1 times).", text.replace("15 of 20", counted));
        let stopped = tiphys_apimachinery::patch::json_merge::apply(
            &tried("Failed", 0),
            &json!({"status": {"operationState": {"message": message}}}),
        );
        assert_eq!(
            decided("", text, &stopped.expect("maps")),
            refused,
            "an operation that was stopped for it, {counted}"
        );
    }
    let AutoSyncDecision::Start(operation) = decided("2026-01-01T00:00:10Z", text, &none) else {
        panic!("it is approved")
    };
    assert!(may_prune_much(&operation) && operation.initiated_by.automated);
    assert_eq!(
        operation.info[0].value,
        "15 of 20 resources, 2026-01-01T00:00:10Z"
    );
    let unpruned = json!({"spec": {"syncPolicy": {"automated": {"prune": false}}}});
    assert_eq!(
        decided("", text, &unpruned),
        AutoSyncDecision::Nothing,
        "nothing is pruned, and nothing else is to be done"
    );
}

#[test]
fn c48_c49_self_heal_selects_what_drifted_and_backs_off() {
    let heal = json!({"spec": {"syncPolicy": {"automated": {"selfHeal": true}}}});
    let with = |attempts| {
        tiphys_apimachinery::patch::json_merge::apply(&tried("Succeeded", attempts), &heal)
            .expect("maps")
    };
    let resources = [resource("OutOfSync", false), resource("Synced", false)];
    let AutoSyncDecision::Start(op) = run(&with(0), &resources) else {
        panic!("it must start")
    };
    let sync = op.sync.expect("a sync");
    assert_eq!(
        (sync.resources.len(), sync.auto_heal_attempts_count),
        (1, 1)
    );
    let (mut pruned, key) = (
        resource("OutOfSync", true),
        ResourceKey {
            kind: "ConfigMap".into(),
            name: "gone".into(),
            ..ResourceKey::default()
        },
    );
    pruned.name = "gone".into();
    let both = [resource("OutOfSync", false), pruned.clone()];
    for (resources, selected) in [(&both[..], Some(1)), (&both[1..], None)] {
        let verdict = run_with(
            &with(0),
            &AutoSyncInput {
                leaving: &[&key],
                ..compared(resources)
            },
        );
        let found = match verdict {
            AutoSyncDecision::Start(op) => op.sync.map(|sync| sync.resources.len()),
            _ => None,
        };
        assert_eq!(found, selected, "what is being deleted needs no other sync");
    }
    assert_eq!(
        run(&with(2), &resources),
        AutoSyncDecision::Later(std::time::Duration::from_secs(5), None)
    );
    let many: Vec<_> = (0..5).map(|_| resource("OutOfSync", false)).collect();
    let AutoSyncDecision::Later(_, Some(told)) = run(&with(5), &many) else {
        panic!("it is told")
    };
    assert!(told.contains("undone 5 times: something else changes ConfigMap/c, ConfigMap/c, ConfigMap/c, …. It pauses"), "{told}");
    let own = ResourceStatus {
        name: "own".into(),
        ..resource("OutOfSync", false)
    };
    let AutoSyncDecision::Later(_, Some(told)) = run(&with(5), &[own]) else {
        panic!("it is told")
    };
    assert!(told.contains("had no lasting effect 5 times: ConfigMap/own still differs from Git, and no other manager"), "{told}");
    let pauses: Vec<_> = (0..=7)
        .map(|n| Backoff::default().before(n).as_secs())
        .collect();
    assert_eq!(pauses, [0, 2, 6, 18, 54, 162, 300, 300]);
}
