//! Checks before a sync and ways of applying (S-21 to S-38, S-57, S-58), the namespace (S-73 to
//! S-75), and what is recorded (S-81 to S-83).

use super::sim::{NS, Sim, hook_job, make, options, says, wave, widget_crd};
use crate::{
    health::Assessed,
    sync::{
        ApplyMode, Effect, NamespaceMetadata, OperationPhase, Progress, next::Observed,
        options as sync_options,
    },
    types::HealthStatus,
};
use serde_json::json;

/// Mode, force and validation of the last real write.
fn written(mut sim: Sim) -> (ApplyMode, bool, bool) {
    let last = sim.run();
    assert_eq!(last.phase, OperationPhase::Succeeded, "{}", last.message);
    let write = sim.writes.last().expect("something was written");
    (write.mode, write.force, write.validate)
}

#[test]
fn s21_an_unknown_kind_stops_the_sync() {
    let mut sim = Sim::new(vec![make("Widget", "w"), make("ConfigMap", "c")]);
    sim.unknown_kinds.insert("Widget".into());
    let last = sim.run();
    assert_eq!(
        says(&last),
        "Failed: one or more synchronization tasks are not valid: failed to discover server resources for group version \
         example.com/v1: the server could not find the requested resource"
    );
    assert_eq!(
        sim.result("w"),
        "SyncFailed - The Kubernetes API could not find example.com/Widget for requested resource app-ns/w. Make sure the \
         \"Widget\" CRD is installed on the destination cluster."
    );
    assert!(sim.log.is_empty());
}

#[test]
fn s21_s22_an_unknown_kind_that_is_expected() {
    for (crd, app_option, annotation) in [
        (true, "", ""),
        (false, "SkipDryRunOnMissingResource=true", ""),
        (false, "", "SkipDryRunOnMissingResource=true"),
    ] {
        let mut sim =
            Sim::new(vec![options(make("Widget", "w"), annotation)]).sync_options(&[app_option]);
        if crd {
            sim.desired.push(widget_crd());
        }
        sim.unknown_kinds.insert("Widget".into());
        assert_eq!(sim.run().phase, OperationPhase::Succeeded);
        assert!(!sim.log.contains(&"dry-run w".to_owned()));
        assert_eq!(sim.wet_log().last(), Some(&"apply w"));
    }
}

/// As [`s21_s22_an_unknown_kind_that_is_expected`]: that a kind is expected does not make it
/// permitted.
#[test]
fn s25_a_kind_that_is_expected_needs_permission() {
    for (crd, annotation) in [(true, ""), (false, "SkipDryRunOnMissingResource=true")] {
        let mut sim = Sim::new(vec![options(make("Widget", "w"), annotation)]);
        if crd {
            sim.desired.push(widget_crd());
        }
        sim.unknown_kinds.insert("Widget".into());
        sim.not_permitted.insert("w".into());
        assert_eq!(sim.run().phase, OperationPhase::Failed);
        assert!(sim.log.is_empty(), "{:?}", sim.log);
    }
}

#[test]
fn s23_a_kind_that_may_exist_is_not_expected_to_come() {
    for crd in [false, true] {
        let mut sim = Sim::new(vec![options(
            make("Widget", "w"),
            "SkipDryRunOnMissingResource=true",
        )]);
        if crd {
            sim.desired.push(widget_crd());
        }
        sim.unknown_kinds.insert("Widget".into());
        sim.unasked_groups
            .insert("example.com".into(), "nobody answers".into());
        let discovery = "failed to discover server resources for group version example.com/v1";
        assert_eq!(
            says(&sim.run()),
            format!(
                "Failed: one or more synchronization tasks are not valid: {discovery}: nobody answers"
            )
        );
        let named = format!(
            "SyncFailed - {discovery}, for example.com/Widget of requested resource app-ns/w: nobody answers"
        );
        assert_eq!(sim.result("w"), named);
        assert!(sim.log.is_empty());
    }
}

#[test]
fn s25_what_the_project_does_not_permit() {
    let mut sim = Sim::new(vec![make("ConfigMap", "a"), make("ConfigMap", "b")]);
    sim.not_permitted.insert("a".into());
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks are not valid: resource :ConfigMap is not permitted in project p"
    );
    assert_eq!(
        sim.result("a"),
        "SyncFailed - resource :ConfigMap is not permitted in project p"
    );
    assert!(sim.log.is_empty());
    let mut prune = Sim::new(vec![]).existing(make("ConfigMap", "a"));
    prune.not_permitted.insert("a".into());
    assert_eq!(prune.run().phase, OperationPhase::Failed);
    assert!(prune.live("ConfigMap", "a").is_some());
}

#[test]
fn s26_s28_a_dry_run_first_and_once() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "a"),
        wave(make("ConfigMap", "b"), 1),
    ]);
    sim.run();
    assert_eq!(sim.log, ["dry-run a", "dry-run b", "apply a", "apply b"]);
    let mut failing = Sim::new(vec![
        make("ConfigMap", "a"),
        wave(make("ConfigMap", "b"), 1),
    ])
    .error("dry-run b", "b is wrong");
    assert_eq!(
        says(&failing.run()),
        "Failed: one or more objects failed to apply (dry run)"
    );
    assert_eq!(failing.log, ["dry-run a", "dry-run b"]);
    assert_eq!(
        (failing.result("a").as_str(), failing.result("b").as_str()),
        ("none", "SyncFailed Failed b is wrong")
    );
}

#[test]
fn the_dry_run_may_be_left_out() {
    let mut sim = Sim::new(vec![make("ConfigMap", "a")]);
    sim.request.skip_dry_run = true;
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
    assert_eq!(sim.log, ["apply a"]);
}

#[test]
fn s27_a_dry_run_operation() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "a"),
        hook_job("j", "PreSync", ""),
        make("Namespace", NS),
    ])
    .existing(make("ConfigMap", "old"))
    .existing(options(make("ConfigMap", "kept"), "Prune=false"));
    sim.request.dry_run = true;
    sim.request.skip_dry_run = true;
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
    assert_eq!(sim.result("a"), "Synced Succeeded a dry run");
    assert_eq!(sim.result("j"), "Synced Succeeded j dry run");
    assert_eq!(sim.result("old"), "Pruned Succeeded pruned (dry run)");
    assert_eq!(
        sim.result("kept"),
        "PruneSkipped Succeeded ignored (no prune)"
    );
    assert!(sim.wet_log().is_empty() && sim.world.len() == 2);
    let mut failing =
        Sim::new(vec![make("ConfigMap", "a"), make("ConfigMap", "b")]).error("dry-run a", "wrong");
    failing.request.dry_run = true;
    assert_eq!(
        says(&failing.run()),
        "Failed: one or more objects failed to apply (dry run)"
    );
    assert_eq!(failing.result("b"), "Synced Succeeded b dry run");
}

#[test]
fn s29_the_namespace_is_made_before_the_dry_run() {
    let mut sim = Sim::new(vec![make("ConfigMap", "a"), make("Namespace", NS)]);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.log, ["apply app-ns", "dry-run a", "apply a"]);
    let mut failing = Sim::new(vec![make("ConfigMap", "a"), make("Namespace", NS)])
        .error("apply app-ns", "forbidden");
    assert_eq!(
        says(&failing.run()),
        "Failed: the namespace failed to apply, reason: forbidden"
    );
    assert_eq!(failing.log, ["apply app-ns"]);
    let mut existing = Sim::new(vec![make("ConfigMap", "a"), make("Namespace", NS)])
        .existing(make("Namespace", NS));
    existing.run();
    assert_eq!(existing.log[..2], ["dry-run app-ns", "dry-run a"]);
    // What was started before the dry run is not waited for if the dry run fails.
    let mut refused = Sim::new(vec![make("ConfigMap", "c")])
        .sync_options(&["CreateNamespace=true"])
        .error("dry-run c", "no");
    assert_eq!(
        says(&refused.run()),
        "Failed: one or more objects failed to apply (dry run)"
    );
    assert_eq!(
        (refused.result(NS).as_str(), refused.result("c").as_str()),
        (
            "Synced Running namespace/app-ns created",
            "SyncFailed Failed no"
        )
    );
}

#[test]
fn s30_validation() {
    let c = || make("ConfigMap", "c");
    assert!(written(Sim::new(vec![c()])).2);
    assert!(written(Sim::new(vec![options(c(), "Validate=true")])).2);
    assert!(!written(Sim::new(vec![options(c(), "Validate=false")])).2);
    assert!(!written(Sim::new(vec![c()]).sync_options(&["Validate=false"])).2);
}

#[test]
fn s31_s32_server_side_apply() {
    let c = || make("ConfigMap", "c");
    assert_eq!(written(Sim::new(vec![c()])).0, ApplyMode::ClientSide);
    assert_eq!(
        written(Sim::new(vec![options(c(), "ServerSideApply=true")])).0,
        ApplyMode::ServerSide
    );
    assert_eq!(
        written(Sim::new(vec![c()]).sync_options(&["ServerSideApply=true"])).0,
        ApplyMode::ServerSide
    );
    let off = Sim::new(vec![options(c(), "ServerSideApply=false")])
        .sync_options(&["ServerSideApply=true"]);
    assert_eq!(written(off).0, ApplyMode::ClientSide);
    let mut sim = Sim::new(vec![c()]).sync_options(&["ServerSideApply=true"]);
    sim.run();
    let modes: Vec<ApplyMode> = sim.writes.iter().map(|w| w.mode).collect();
    assert_eq!(
        modes,
        [ApplyMode::ClientSide, ApplyMode::ServerSide],
        "the dry run is not server-side"
    );
}

#[test]
fn s33_replace() {
    let c = || make("ConfigMap", "c");
    let replaced = || options(c(), "Replace=true");
    assert_eq!(written(Sim::new(vec![replaced()])).0, ApplyMode::Create);
    assert_eq!(
        written(Sim::new(vec![replaced()]).existing(c())).0,
        ApplyMode::Replace
    );
    assert_eq!(
        written(Sim::new(vec![c()]).existing(replaced())).0,
        ApplyMode::Replace
    );
    assert_eq!(
        written(
            Sim::new(vec![c()])
                .existing(c())
                .sync_options(&["Replace=true"])
        )
        .0,
        ApplyMode::Replace
    );
    let mut sim = Sim::new(vec![widget_crd(), make("Namespace", "n")])
        .existing(widget_crd())
        .existing(make("Namespace", "n"))
        .sync_options(&["Replace=true"]);
    sim.run();
    assert!(sim.writes.iter().all(|w| w.mode == ApplyMode::Update));
    assert!(sim.result("n").ends_with(" Namespace/n updated"));
    assert!(
        sim.result("widgets.example.com")
            .ends_with(" CustomResourceDefinition/widgets.example.com updated")
    );
}

#[test]
fn s34_force() {
    let c = || make("ConfigMap", "c");
    assert!(!written(Sim::new(vec![c()])).1);
    assert!(written(Sim::new(vec![options(c(), "Force=true")])).1);
    assert!(written(Sim::new(vec![c()]).existing(options(c(), "Force=true"))).1);
    let mut app = Sim::new(vec![c()]);
    app.request.force = true;
    assert!(written(app).1);
}

#[test]
fn s35_a_crd_is_established_before_anything_else_is_written() {
    let mut sim = Sim::new(vec![widget_crd(), make("Widget", "w")]);
    sim.unknown_kinds.insert("Widget".into());
    while sim.wet_log().is_empty() {
        sim.turn();
    }
    let key = widget_crd().key();
    sim.world.get_mut(&key).expect("the CRD").0.remove("status");
    let waiting = sim.turn();
    assert_eq!(says(&waiting), "Running: one or more tasks are running");
    assert_eq!(waiting.wake_after.map(|d| d.as_millis()), Some(100));
    // After three seconds it continues anyway.
    for _ in 0..30 {
        sim.idle(&waiting);
    }
    assert_eq!(
        sim.turn()
            .effects
            .iter()
            .map(Effect::verb)
            .collect::<Vec<_>>(),
        ["apply"]
    );
}

#[test]
fn s35_an_established_crd_is_not_waited_for() {
    let mut sim = Sim::new(vec![widget_crd(), make("Widget", "w")]);
    sim.unknown_kinds.insert("Widget".into());
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.now, sim.request.started_at);
    // Another condition is not a promise.
    let mut other = Sim::new(vec![widget_crd(), make("Widget", "w")]);
    other.unknown_kinds.insert("Widget".into());
    while other.wet_log().is_empty() {
        other.turn();
    }
    let accepted = json!({"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "False"}]});
    other
        .world
        .get_mut(&widget_crd().key())
        .expect("the CRD")
        .0
        .insert("status".into(), accepted);
    assert_eq!(other.turn().effects.len(), 0);
}

/// The cache may still show the old managers.
#[test]
fn field_managers_are_migrated_once() {
    let managers = json!([{"manager": "kubectl-client-side-apply", "operation": "Update"}]);
    let mut there = make("ConfigMap", "c");
    there
        .metadata_mut()
        .insert("managedFields".into(), managers.clone());
    let mut sim = Sim::new(vec![make("ConfigMap", "c")])
        .existing(there)
        .sync_options(&["ServerSideApply=true"]);
    while sim.wet_log().is_empty() {
        sim.turn();
    }
    let key = make("ConfigMap", "c").key();
    sim.world
        .get_mut(&key)
        .expect("it is there")
        .metadata_mut()
        .insert("managedFields".into(), managers);
    sim.run();
    assert_eq!(sim.wet_log(), ["migrate managers of c", "apply c"]);
}

/// If the notes are lost, the results show whether the dry run is finished.
#[test]
fn a_dry_run_is_not_repeated_when_something_was_applied() {
    let wanted = || vec![make("ConfigMap", "c"), wave(make("Deployment", "d"), 1)];
    let mut sim = Sim::new(wanted());
    while sim.wet_log().is_empty() {
        sim.turn();
    }
    sim.restart(false);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.log, ["dry-run c", "dry-run d", "apply c", "apply d"]);
    // The destination namespace is created before it; any other is not.
    for (namespace, dry_runs_before) in [(NS, 0), ("other", 1)] {
        let mut sim = Sim::new([wanted(), vec![make("Namespace", namespace)]].concat());
        while sim.wet_log().is_empty() {
            sim.turn();
        }
        let before = sim.log.iter().filter(|l| *l == "dry-run c").count();
        sim.restart(false);
        sim.run();
        let after = sim.log.iter().filter(|l| *l == "dry-run c").count();
        assert_eq!(
            (namespace, before, after),
            (namespace, dry_runs_before, 1),
            "{:?}",
            sim.log
        );
    }
}

#[test]
fn s36_field_managers_are_migrated() {
    let live = |operation: &str| {
        let mut o = make("ConfigMap", "c");
        o.metadata_mut().insert(
            "managedFields".into(),
            json!([{"manager": "kubectl-client-side-apply", "operation": operation}]),
        );
        o
    };
    let run = |operation: &str, list: &[&str]| {
        let mut sim = Sim::new(vec![make("ConfigMap", "c")])
            .existing(live(operation))
            .sync_options(list);
        sim.run();
        sim.wet_log()
            .iter()
            .map(|s| (*s).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        run("Update", &["ServerSideApply=true"]),
        ["migrate managers of c", "apply c"]
    );
    assert_eq!(run("Apply", &["ServerSideApply=true"]), ["apply c"]);
    assert_eq!(
        run(
            "Update",
            &["ServerSideApply=true", "ClientSideApplyMigration=false"]
        ),
        ["apply c"]
    );
    assert_eq!(run("Update", &[]), ["apply c"]);
    let by_another = |named: Option<&str>| {
        let mut there = live("Update");
        there.metadata_mut().insert(
            "managedFields".into(),
            json!([{"manager": "another", "operation": "Update"}]),
        );
        let mut sim = Sim::new(vec![make("ConfigMap", "c")])
            .existing(there)
            .sync_options(&["ServerSideApply=true"]);
        sim.request.options = sim.request.options.migrating_from(named);
        sim.run();
        sim.wet_log().len()
    };
    assert_eq!([None, Some(""), Some("another")].map(by_another), [1, 1, 2]);
    let mut failing = Sim::new(vec![make("ConfigMap", "c")])
        .existing(live("Update"))
        .sync_options(&["ServerSideApply=true"])
        .error("migrate managers of c", "conflict");
    failing.run();
    assert_eq!(
        failing.result("c"),
        "SyncFailed Failed Failed to perform client-side apply migration for /ConfigMap/app-ns/c: conflict"
    );
    assert_eq!(failing.wet_log(), ["migrate managers of c"]);
}

#[test]
fn s37_kind_after_kind() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        make("ConfigMap", "b"),
        make("ConfigMap", "a"),
        make("Secret", "s"),
    ]);
    sim.turn();
    let decision = sim.decide();
    let groups: Vec<Vec<String>> = decision
        .batches()
        .map(|(_, effects)| effects.iter().map(|e| e.step().key.name.clone()).collect())
        .collect();
    assert_eq!(groups, [vec!["s"], vec!["a", "b"], vec!["d"]]);
    assert_eq!(
        decision
            .batches()
            .map(|(start, _)| start)
            .collect::<Vec<_>>(),
        [0, 1, 3]
    );
}

#[test]
fn s38_an_apply_error_does_not_stop_the_wave() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        make("ConfigMap", "a"),
        make("ConfigMap", "b"),
    ])
    .error("apply a", "no");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully, reason: no"
    );
    assert_eq!(sim.wet_log(), ["apply a", "apply b", "apply d"]);
    assert_eq!(sim.result("a"), "SyncFailed Failed no");
}

#[test]
fn an_annotation_that_is_too_long_is_explained() {
    let error = "metadata.annotations: Too long: must have at most 262144 bytes";
    let mut sim = Sim::new(vec![make("ConfigMap", "a")]).error("apply a", error);
    sim.run();
    assert!(
        sim.result("a")
            .contains("Consider using Server-side apply or syncing with replace enabled")
    );
}

#[test]
fn s57_s58_only_what_is_out_of_sync_is_applied() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "same"),
        make("ConfigMap", "changed"),
        make("ConfigMap", "missing"),
        make("ClusterRole", "role"),
        wave(make("Deployment", "also-same"), 1),
        hook_job("j", "Sync", ""),
    ])
    .existing(make("ConfigMap", "same"))
    .existing(make("ConfigMap", "changed"))
    .existing(make("ClusterRole", "role"))
    .existing(wave(make("Deployment", "also-same"), 1))
    .existing(make("ConfigMap", "extra"))
    .sync_options(&["ApplyOutOfSyncOnly=true"])
    // If it counted, the sync would wait for it forever.
    .healthy("also-same", &[HealthStatus::Progressing]);
    for name in ["same", "missing", "role", "also-same"] {
        sim.modified.insert(name.into(), false);
    }
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
    assert_eq!(
        sim.wet_log(),
        [
            "prune extra",
            "apply changed",
            "apply missing",
            "run hook j",
            "remove finalizer of j"
        ]
    );
    assert_eq!(
        sim.log.iter().filter(|l| l.starts_with("dry-run")).count(),
        3
    );
    assert_eq!(sim.result("same"), "none");
}

#[test]
fn s73_s74_the_namespace_is_created_when_it_is_missing() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")]).sync_options(&["CreateNamespace=true"]);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(
        sim.log,
        ["read app-ns", "apply app-ns", "dry-run c", "apply c"]
    );
    let result = sim
        .progress
        .results
        .iter()
        .find(|r| r.kind == "Namespace")
        .expect("a result");
    assert_eq!(
        (
            result.namespace.as_str(),
            result.sync_phase.map(|p| p.as_str())
        ),
        ("", Some("PreSync"))
    );
    assert_eq!(
        sim.result(NS),
        "Synced Running namespace/app-ns created",
        "once it is there nobody looks at it again"
    );

    let mut existing = Sim::new(vec![make("ConfigMap", "c")])
        .sync_options(&["CreateNamespace=true"])
        .existing(make("Namespace", NS));
    existing.not_permitted.insert(NS.into());
    assert_eq!(
        says(&existing.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
    assert_eq!(existing.log, ["dry-run c", "apply c"]);

    // The cache may not have the namespace.
    let mut unseen = Sim::new(vec![make("ConfigMap", "c")])
        .sync_options(&["CreateNamespace=true"])
        .existing(make("Namespace", NS));
    unseen.unseen.insert(NS.into());
    assert_eq!(
        says(&unseen.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
    assert_eq!(unseen.log, ["read app-ns", "dry-run c", "apply c"]);

    let mut managed = Sim::new(vec![make("ConfigMap", "c")])
        .sync_options(&["CreateNamespace=true"])
        .existing(make("Namespace", NS));
    let mut metadata = NamespaceMetadata::default();
    metadata.labels.insert("team".into(), "a".into());
    metadata.annotations.insert("note".into(), "b".into());
    managed.request.namespace_metadata = Some(metadata);
    managed.run();
    let write = managed
        .writes
        .iter()
        .rfind(|w| w.step.gvk.kind == "Namespace")
        .expect("it is applied");
    let target = write.step.target.as_ref().expect("a target");
    assert_eq!(
        (target.label("team"), target.annotation("note")),
        (Some("a"), Some("b"))
    );
    assert!(
        write.mode == ApplyMode::ServerSide && sync_options::has(target, "ServerSideApply=true")
    );
}

#[test]
fn s75_a_namespace_that_cannot_be_looked_up() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")])
        .sync_options(&["CreateNamespace=true"])
        .error("read app-ns", "no route");
    let said = "Failed: one or more synchronization tasks completed unsuccessfully, reason: namespace auto creation failed: no route";
    assert_eq!(says(&sim.run()), said);
    assert_eq!(
        sim.result(NS),
        "SyncFailed Error namespace auto creation failed: no route"
    );
    assert_eq!(sim.log, ["read app-ns"]);
}

#[test]
fn s81_results_are_listed_in_the_order_of_recording() {
    let mut deployment = wave(make("Deployment", "d"), 1);
    deployment.0.insert(
        "spec".into(),
        json!({"template": {"spec": {"containers": [{"image": "nginx:1"}, {"name": "x"}]}}}),
    );
    let mut sim = Sim::new(vec![
        deployment,
        make("ConfigMap", "c"),
        hook_job("j", "PostSync", ""),
    ]);
    sim.run();
    let results = serde_json::to_value(sim.progress.to_results()).expect("results are JSON");
    assert_eq!(
        results,
        json!([
            {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "app-ns", "name": "c", "status": "Synced",
             "message": "configmap/c created", "hookPhase": "Succeeded", "syncPhase": "Sync"},
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "app-ns", "name": "d", "status": "Synced",
             "message": "d is Healthy", "hookPhase": "Succeeded", "syncPhase": "Sync", "images": ["nginx:1"]},
            {"group": "batch", "version": "v1", "kind": "Job", "namespace": "app-ns", "name": "j", "status": "Synced",
             "message": "j is Healthy", "hookType": "PostSync", "hookPhase": "Succeeded", "syncPhase": "PostSync"},
        ])
    );
}

#[test]
fn s82_an_empty_message_keeps_the_one_before() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "c"),
        wave(make("ConfigMap", "d"), 1),
    ]);
    sim.run();
    assert_eq!(sim.result("c"), "Synced Succeeded configmap/c created");
}

#[test]
fn s83_what_was_recorded_is_not_done_again() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "c"),
        wave(make("ConfigMap", "d"), 1),
    ]);
    while !sim.log.contains(&"apply c".to_owned()) {
        sim.turn();
    }
    sim.restart(false);
    sim.run();
    assert_eq!(sim.log, ["dry-run c", "dry-run d", "apply c", "apply d"]);
}

#[test]
fn an_effect_without_outcome_is_decided_again() {
    let sim = Sim::new(vec![make("ConfigMap", "c")]);
    let first = sim.decide();
    let plan = sim.plan();
    let progress = crate::sync::record(
        &plan,
        first.progress.clone(),
        &first.effects,
        &[],
        &|_| Ok(Assessed::Without),
        sim.now,
    );
    let observed = Observed {
        live: &|_| None,
        health: &|_| Ok(Assessed::Without),
    };
    let again = crate::sync::next(&plan, observed, &progress, &sim.request, sim.now);
    assert_eq!(again.effects, first.effects);
    assert_eq!(progress, Progress::new("op-1"));
}
