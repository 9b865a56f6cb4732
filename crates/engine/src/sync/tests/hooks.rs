//! Hooks: S-61 to S-71.

use super::sim::{Sim, hook_job, make, says, wave};
use crate::{
    sync::{Effect, OperationPhase, Propagation, ResultCode, hook},
    types::HealthStatus::{Degraded, Healthy, Progressing},
};
use std::time::Duration;
use tiphys_apimachinery::Object;

/// A hook as an earlier sync left it.
fn left_over(mut o: Object, finalizer: bool) -> Object {
    o.set_annotation(hook::OPERATION_ID, "op-0");
    o.set_annotation(hook::OPERATION_PHASE, "PreSync");
    if finalizer {
        o.set_finalizers(vec![hook::HOOK_FINALIZER.into()]);
    }
    o
}

#[test]
fn s61_an_old_hook_is_deleted_before_the_new_one_is_made() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")])
        .existing(left_over(hook_job("j", "PreSync", ""), true));
    sim.slow_deletions.insert("j".into(), 1);
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for deletion of hook batch/Job/j"
    );
    assert_eq!(sim.wet_log(), ["remove finalizer of j", "delete hook j"]);
    sim.idle(&waiting);
    sim.idle(&waiting);
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
    assert_eq!(sim.wet_log()[2..], ["run hook j", "remove finalizer of j"]);
    assert_eq!(sim.created_hooks.len(), 1);
}

/// Its deletion may not be visible yet, or the request may have been lost: it is requested again,
/// but not immediately.
#[test]
fn an_old_hook_that_does_not_go_is_deleted_again_after_five_seconds() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")])
        .existing(left_over(hook_job("j", "PreSync", ""), false));
    let old = sim.live("Job", "j").cloned().expect("it is there");
    while !sim.log.contains(&"delete hook j".to_owned()) {
        sim.turn();
    }
    sim.world.insert(old.key(), old);
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for deletion of hook batch/Job/j"
    );
    sim.pass(Duration::from_millis(4_999));
    assert_eq!(sim.decide().effects.len(), 0);
    sim.pass(Duration::from_millis(1));
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(
        sim.wet_log(),
        [
            "delete hook j",
            "delete hook j",
            "run hook j",
            "remove finalizer of j"
        ]
    );
}

#[test]
fn s61_old_hooks_with_other_policies_stay() {
    let mut sim = Sim::new(vec![
        hook_job("a", "PreSync", ""),
        hook_job("b", "PreSync", "HookFailed"),
        hook_job("c", "PreSync", "HookSucceeded"),
    ])
    .existing(left_over(hook_job("a", "PreSync", ""), true))
    .existing(left_over(hook_job("b", "PreSync", "HookFailed"), true))
    .existing(left_over(hook_job("c", "PreSync", "HookSucceeded"), true));
    sim.turn();
    sim.turn();
    sim.turn();
    assert_eq!(
        sim.wet_log(),
        [
            "remove finalizer of a",
            "remove finalizer of b",
            "remove finalizer of c",
            "delete hook a"
        ]
    );
}

#[test]
fn s62_an_old_hook_that_is_gone_already() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")])
        .existing(left_over(hook_job("j", "PreSync", ""), false))
        .error("delete hook j", "!not found");
    let old = sim.live("Job", "j").cloned().expect("the old hook");
    sim.turn();
    sim.turn();
    // The cache may still show the deleted one.
    sim.world.insert(old.key(), old.clone());
    assert_eq!(sim.decide().effects.len(), 1);
    assert_eq!(sim.decide().effects[0].verb(), "run hook");
}

#[test]
fn a_hook_that_cannot_be_cleared_away_fails_the_sync() {
    for (effect, message) in [
        (
            "remove finalizer of j",
            "failed to remove hook finalizer: no",
        ),
        ("delete hook j", "failed to delete resource: no"),
    ] {
        let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")])
            .existing(left_over(hook_job("j", "PreSync", ""), true))
            .error(effect, "no");
        assert_eq!(
            says(&sim.run()),
            "Failed: one or more objects failed to apply"
        );
        assert_eq!(sim.result("j"), format!("- Error {message}"));
    }
}

#[test]
fn s63_a_completed_hook_is_let_go() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", ""), make("ConfigMap", "c")]);
    sim.run();
    assert_eq!(
        sim.wet_log(),
        ["run hook j", "remove finalizer of j", "apply c"]
    );
    assert!(
        sim.live("Job", "j")
            .is_some_and(|o| o.finalizers().is_empty())
    );
    let mut failing = Sim::new(vec![hook_job("j", "PreSync", ""), make("ConfigMap", "c")])
        .error("remove finalizer of j", "no");
    assert_eq!(
        says(&failing.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    assert_eq!(
        failing.result("j"),
        "Synced Error Failed to remove hook finalizer: no"
    );
    assert!(failing.live("ConfigMap", "c").is_none());
}

#[test]
fn s64_succeeded_hooks_go_when_the_operation_succeeded() {
    let jobs = || {
        vec![
            hook_job("pre", "PreSync", "HookSucceeded"),
            hook_job("post", "PostSync", "HookSucceeded,HookFailed"),
            make("ConfigMap", "c"),
        ]
    };
    let mut sim = Sim::new(jobs()).healthy("post", &[Progressing, Healthy]);
    let waiting = sim.run_to_wait();
    assert!(
        sim.live("Job", "pre").is_some(),
        "not as soon as its own phase completes"
    );
    sim.idle(&waiting);
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
    assert!(sim.live("Job", "pre").is_none() && sim.live("Job", "post").is_none());
    let mut failing = Sim::new(jobs()).healthy("post", &[Degraded]);
    assert_eq!(failing.run().phase, OperationPhase::Failed);
    assert!(failing.live("Job", "pre").is_some() && failing.live("Job", "post").is_none());
}

#[test]
fn s65_failed_hooks_go_when_the_operation_failed() {
    let mut sim = Sim::new(vec![
        hook_job("a", "PreSync", ""),
        hook_job("b", "PreSync", "HookFailed"),
        hook_job("c", "PreSync", "HookSucceeded"),
    ])
    .healthy("a", &[Degraded]);
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    let removed = sim
        .log
        .iter()
        .filter(|l| l.starts_with("remove finalizer"))
        .count();
    let deleted: Vec<&str> = sim
        .wet_log()
        .into_iter()
        .filter(|l| l.starts_with("delete hook"))
        .collect();
    assert_eq!((removed, deleted), (3, vec!["delete hook b"]));
}

#[test]
fn s66_a_hook_that_cannot_be_deleted_at_the_end() {
    let mut sim =
        Sim::new(vec![hook_job("j", "Sync", "HookSucceeded")]).error("delete hook j", "no");
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
    assert_eq!(
        sim.result("j"),
        "Synced Error failed to delete resource: no"
    );
    let mut gone =
        Sim::new(vec![hook_job("j", "Sync", "HookSucceeded")]).error("delete hook j", "!not found");
    assert_eq!(gone.run().phase, OperationPhase::Succeeded);
    assert_eq!(gone.result("j"), "Synced Succeeded j is Healthy");
}

/// The hook of the previous sync, and the one that this sync ran.
#[test]
fn s66_hooks_are_deleted_as_what_is_pruned() {
    for (option, expected) in [
        ("", Propagation::Foreground),
        ("PrunePropagationPolicy=background", Propagation::Background),
        ("PrunePropagationPolicy=orphan", Propagation::Orphan),
    ] {
        let job = || hook_job("j", "Sync", "BeforeHookCreation,HookSucceeded");
        let mut sim = Sim::new(vec![job()])
            .existing(job())
            .sync_options(&[option]);
        let mut seen = Vec::new();
        for _ in 0..30 {
            let decision = sim.turn();
            seen.extend(decision.effects.iter().filter_map(|e| match e {
                Effect::DeleteHook { propagation, .. } => Some(*propagation),
                _ => None,
            }));
            if decision.phase.completed() {
                break;
            }
            if decision.effects.is_empty() {
                sim.idle(&decision);
            }
        }
        assert_eq!(seen, [expected, expected], "{option}");
    }
}

#[test]
fn s67_sync_fail_hooks_run_only_after_a_failure() {
    let mut fine = Sim::new(vec![
        hook_job("j", "Sync", ""),
        make("Pod", "p"),
        hook_job("f", "SyncFail", "HookSucceeded"),
    ]);
    assert_eq!(
        says(&fine.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
    assert_eq!(fine.progress.results.len(), 2);

    let mut failing = Sim::new(vec![
        hook_job("j", "Sync", ""),
        make("Pod", "p"),
        hook_job("f", "SyncFail", "HookSucceeded"),
    ])
    .healthy("j", &[Degraded])
    .healthy("f", &[Progressing, Healthy]);
    assert_eq!(
        says(&failing.run_to_wait()),
        "Running: waiting for completion of hook batch/Job/f"
    );
    assert_eq!(
        says(&failing.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    assert_eq!(failing.progress.results.len(), 3);
}

#[test]
fn s68_sync_fail_hooks_that_fail_themselves() {
    let mut sim = Sim::new(vec![
        make("Pod", "p"),
        hook_job("bad", "SyncFail", ""),
        hook_job("good", "SyncFail", ""),
    ])
    .error("apply p", "fake pod failure")
    .error("run hook bad", "fake hook failure");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully, reason: fake pod failure\n\
         one or more SyncFail hooks failed, reason: fake hook failure"
    );
    assert_eq!(sim.result("good"), "Synced Succeeded good is Healthy");
    assert_eq!(sim.result("bad"), "SyncFailed Failed fake hook failure");
}

#[test]
fn s69_running_hooks_are_waited_for_after_a_failure() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "c"),
        hook_job("j", "Sync", ""),
        hook_job("f", "SyncFail", ""),
    ])
    .error("apply c", "no")
    .healthy("j", &[Progressing, Healthy])
    .healthy("f", &[Progressing, Progressing, Healthy]);
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for completion of hook batch/Job/j and 1 more hooks"
    );
    assert_eq!(sim.wet_log(), ["apply c", "run hook j", "run hook f"]);
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully, reason: no"
    );
}

#[test]
fn s70_the_same_reason_is_given_once() {
    let mut sim = Sim::new(vec![make("ConfigMap", "a"), make("ConfigMap", "b")])
        .error("apply a", "no")
        .error("apply b", "no");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more objects failed to apply, reason: no"
    );
}

#[test]
fn s71_a_failed_pre_sync_hook_stops_the_sync() {
    let mut sim = Sim::new(vec![hook_job("pre", "PreSync", ""), make("ConfigMap", "c")])
        .healthy("pre", &[Degraded]);
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    assert!(sim.live("ConfigMap", "c").is_none());
}

#[test]
fn s7_a_hook_of_two_phases_runs_twice() {
    let mut sim = Sim::new(vec![
        hook_job("j", "PreSync,PostSync", ""),
        make("ConfigMap", "c"),
    ]);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(
        sim.wet_log(),
        [
            "run hook j",
            "remove finalizer of j",
            "apply c",
            "delete hook j",
            "run hook j",
            "remove finalizer of j"
        ]
    );
    assert_eq!(sim.progress.results.len(), 3);
}

#[test]
fn hooks_of_one_wave_run_with_its_resources() {
    let mut sim = Sim::new(vec![
        wave(hook_job("j", "Sync", ""), 1),
        make("ConfigMap", "a"),
        wave(make("Deployment", "d"), 1),
        wave(make("ConfigMap", "z"), 2),
    ])
    .healthy("d", &[Progressing, Healthy]);
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for healthy state of apps/Deployment/d"
    );
    sim.run();
    assert_eq!(
        sim.wet_log(),
        [
            "apply a",
            "apply d",
            "run hook j",
            "remove finalizer of j",
            "apply z"
        ]
    );
}

#[test]
fn a_running_hook_that_somebody_deletes_fails() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]).healthy("j", &[Progressing]);
    sim.run_to_wait();
    let key = make("Job", "j").key();
    let live = sim.world.get_mut(&key).expect("the hook");
    live.metadata_mut()
        .insert("deletionTimestamp".into(), "2024-05-01T10:00:01Z".into());
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    assert_eq!(
        sim.result("j"),
        "Synced Failed the hook was deleted before it completed"
    );
    assert!(
        sim.live("Job", "j").is_none(),
        "the finalizer no longer holds it"
    );
}

/// Our hook runs, is force-deleted, and someone creates another one of the same name.
fn recreated(copy_marks: bool) -> Sim {
    let mut sim = Sim::new(vec![
        hook_job("j", "PreSync", "HookSucceeded,HookFailed"),
        make("ConfigMap", "c"),
    ])
    .healthy("j", &[Progressing]);
    sim.run_to_wait();
    let mut other = sim.world.remove(&make("Job", "j").key()).expect("ours");
    other.set_finalizers(Vec::new());
    if !copy_marks {
        other.remove_annotation(hook::OPERATION_ID);
        other.remove_annotation(hook::OPERATION_PHASE);
    }
    sim.put(other);
    sim.healthy("j", &[Healthy])
}

#[test]
fn a_hook_that_somebody_made_anew_is_not_ours() {
    for copy_marks in [false, true] {
        for restart in [false, true] {
            let mut sim = recreated(copy_marks);
            if restart {
                sim.restart(true);
            }
            assert_eq!(sim.run().phase, OperationPhase::Failed);
            assert_eq!(
                sim.result("j"),
                "SyncFailed Error Resource batch/Job/j is missing, it might have been deleted"
            );
            assert!(sim.live("Job", "j").is_some(), "it is not ours to delete");
            assert!(sim.live("ConfigMap", "c").is_none());
        }
    }
}

#[test]
fn a_hook_of_another_operation_is_not_ours_even_when_its_uid_is_forgotten() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]).healthy("j", &[Progressing]);
    sim.run_to_wait();
    let key = make("Job", "j").key();
    sim.world.remove(&key);
    sim.put(left_over(hook_job("j", "PreSync", ""), false));
    sim.restart(false);
    assert_eq!(sim.run().phase, OperationPhase::Failed);
}

#[test]
fn a_hook_that_its_ttl_deletes_has_ended_as_it_ended() {
    for (health, phase) in [
        (Healthy, OperationPhase::Succeeded),
        (Degraded, OperationPhase::Failed),
    ] {
        let mut sim = Sim::new(vec![hook_job("j", "PreSync", ""), make("ConfigMap", "c")])
            .healthy("j", &[Progressing]);
        let waiting = sim.run_to_wait();
        // It finishes and is deleted before the sync sees it; our finalizer holds it.
        let key = make("Job", "j").key();
        let mut job = sim.world[&key].clone();
        job.metadata_mut()
            .insert("deletionTimestamp".into(), "2024-05-01T10:00:01Z".into());
        sim.world.insert(key, job);
        sim = sim.healthy("j", &[health]);
        sim.idle(&waiting);
        assert_eq!(sim.run().phase, phase);
        assert!(sim.live("Job", "j").is_none(), "nothing holds it any more");
        assert_eq!(sim.created_hooks.values().sum::<usize>(), 1);
    }
}

#[test]
fn a_resource_that_becomes_a_hook_is_replaced_by_it() {
    for policies in ["", "HookSucceeded", "BeforeHookCreation,HookSucceeded"] {
        for keep_plan in [false, true] {
            let mut sim = Sim::new(vec![
                hook_job("j", "PreSync", policies),
                make("ConfigMap", "c"),
            ])
            .existing(make("Job", "j"));
            let old = sim.live("Job", "j").expect("the resource").uid().to_owned();
            if keep_plan {
                sim.keep_plan();
            }
            assert_eq!(sim.run().phase, OperationPhase::Succeeded);
            assert_eq!(
                sim.wet_log()[..4],
                [
                    "delete hook j",
                    "run hook j",
                    "remove finalizer of j",
                    "apply c"
                ],
                "{policies}"
            );
            assert!(sim.live("Job", "j").is_none_or(|j| j.uid() != old));
            assert_eq!(
                sim.live("Job", "j").is_some(),
                policies.is_empty(),
                "{policies}"
            );
            assert!(
                sim.progress
                    .results
                    .iter()
                    .all(|r| r.status == Some(ResultCode::Synced)),
                "no prune was recorded"
            );
        }
    }
}

#[test]
fn a_resource_that_becomes_a_hook_stays_when_nothing_may_be_pruned() {
    let mut sim =
        Sim::new(vec![hook_job("j", "PreSync", "HookSucceeded")]).existing(make("Job", "j"));
    sim.request.prune = false;
    let lines: Vec<String> = sim.plan().blocked.into_iter().map(|b| b.reason).collect();
    assert_eq!(lines, ["ignored (requires pruning)"]);
    // A resource that becomes a SyncFail hook only is pruned like any other.
    let mut sim = Sim::new(vec![hook_job("j", "SyncFail", "")]).existing(make("Job", "j"));
    sim.run();
    assert_eq!(sim.wet_log(), ["prune j"]);
}

#[test]
fn a_hook_that_becomes_a_resource_is_applied_over_the_old_hook() {
    let mut sim = Sim::new(vec![make("Job", "j"), make("ConfigMap", "c")])
        .existing(left_over(hook_job("j", "PreSync", ""), true));
    let lines: Vec<String> = sim
        .plan()
        .to_string()
        .lines()
        .skip(1)
        .map(|l| l.trim().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "Sync",
            "wave 0",
            "apply      ConfigMap app-ns/c",
            "apply      batch/Job app-ns/j"
        ]
    );
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.wet_log(), ["apply c", "apply j"]);
    assert!(!hook::is_hook(sim.live("Job", "j").expect("the resource")));
}

#[test]
fn delete_policies_of_both_notations_are_read_together() {
    use hook::DeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
    let read = |own: &str, helm: &str| {
        let mut o = hook_job("j", "PreSync", own);
        o.set_annotation("helm.sh/hook-delete-policy", helm);
        hook::delete_policies(&o)
    };
    assert_eq!(read("", ""), [BeforeHookCreation]);
    assert_eq!(read("Sometimes", "never"), [BeforeHookCreation]);
    assert_eq!(read("HookFailed", ""), [HookFailed]);
    assert_eq!(
        read("HookSucceeded,BeforeHookCreation", ""),
        [BeforeHookCreation, HookSucceeded]
    );
    assert_eq!(
        read("HookFailed", "before-hook-creation, hook-succeeded"),
        [BeforeHookCreation, HookSucceeded, HookFailed]
    );
    assert_eq!(read("HookFailed", "hook-failed"), [HookFailed]);
}

#[test]
fn a_hook_of_no_known_type_is_ignored_and_nothing_else_is() {
    assert!(hook::is_ignored(&hook_job("j", "Sometime", "")));
    assert!(!hook::is_ignored(&hook_job("j", "PreSync", "")));
    assert!(!hook::is_ignored(&make("Job", "j")));
    assert!(!hook::is_ignored(&hook_job("j", "Skip", "")));
}
