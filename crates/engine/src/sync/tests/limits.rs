//! Syncs that end early: waves that time out, and newer revisions.

use super::sim::{Sim, hook_job, make, says, wave};
use crate::{
    sync::{Ending, OperationPhase},
    types::HealthStatus::{Degraded, Healthy, Progressing},
};
use std::time::Duration;

/// Two waves; the first may be waited for up to a minute.
fn two_waves() -> Sim {
    let mut sim = Sim::new(vec![
        make("Deployment", "a"),
        wave(make("Deployment", "b"), 1),
    ])
    .healthy("a", &[Progressing]);
    sim.request.wave_timeout_secs = 60;
    sim
}

#[test]
fn a_wave_that_takes_too_long_fails_the_sync() {
    let mut sim = two_waves();
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for healthy state of apps/Deployment/a"
    );
    let end = sim.run();
    let why =
        "wave 0 of Sync took longer than 1m0s, waiting for healthy state of apps/Deployment/a";
    assert_eq!(
        says(&end),
        format!(
            "Failed: one or more synchronization tasks completed unsuccessfully, reason: {why}"
        )
    );
    assert_eq!(
        end.progress.notes.ending,
        Some(Ending::TimedOut(why.to_owned()))
    );
    assert_eq!(
        sim.result("a"),
        "Synced Failed timed out: not done within 1m0s"
    );
    assert!(sim.live("Deployment", "b").is_none());
}

#[test]
fn a_wave_is_over_when_its_time_is() {
    let mut sim = two_waves();
    let waiting = sim.run_to_wait();
    sim.pass(Duration::from_secs(60) - Duration::from_millis(1));
    assert_eq!(
        sim.decide().wake_after,
        Some(Duration::from_millis(1)),
        "{waiting:?}"
    );
    sim.pass(Duration::from_millis(1));
    assert_eq!(sim.run().phase, OperationPhase::Failed);
    assert_eq!(sim.now, sim.request.started_at + Duration::from_secs(60));
}

#[test]
fn without_a_limit_nothing_is_timed() {
    let mut sim = two_waves();
    sim.request.wave_timeout_secs = 0;
    for _ in 0..50 {
        let waiting = sim.run_to_wait();
        assert_eq!(waiting.phase, OperationPhase::Running);
        sim.pass(Duration::from_secs(3600));
    }
    assert_eq!(sim.progress.notes.wave, None);
}

#[test]
fn a_restart_keeps_the_time_and_each_wave_has_its_own() {
    let mut sim = two_waves().healthy("b", &[Progressing]);
    // The sync does not wait for the last wave.
    sim.desired.push(wave(make("ConfigMap", "last"), 2));
    sim.run_to_wait();
    sim.pass(Duration::from_secs(50));
    sim.restart(true);
    let waiting = sim.run_to_wait();
    assert_eq!(
        waiting.wake_after,
        Some(Duration::from_secs(10)),
        "what is left of the minute"
    );
    sim = sim.healthy("a", &[Healthy]);
    sim.pass(Duration::from_secs(9));
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for healthy state of apps/Deployment/b"
    );
    sim.pass(Duration::from_secs(59));
    assert_eq!(sim.run_to_wait().phase, OperationPhase::Running);
    sim.pass(Duration::from_secs(1));
    assert_eq!(sim.run().phase, OperationPhase::Failed);
}

#[test]
fn what_is_well_just_in_time_is_in_time() {
    let mut sim = two_waves();
    let waiting = sim.run_to_wait();
    assert_eq!(waiting.wake_after, Some(Duration::from_secs(10)));
    sim = sim.healthy("a", &[Healthy]);
    sim.pass(Duration::from_secs(600));
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
}

#[test]
fn hooks_that_take_too_long_are_ended_and_sync_fail_hooks_run() {
    let mut sim = Sim::new(vec![
        hook_job("slow", "PreSync", ""),
        make("ConfigMap", "c"),
        hook_job("fail", "SyncFail", ""),
    ])
    .healthy("slow", &[Progressing]);
    sim.request.wave_timeout_secs = 60;
    let end = sim.run();
    assert_eq!(end.phase, OperationPhase::Failed);
    let done = [
        "run hook slow",
        "remove finalizer of slow",
        "delete hook slow",
        "run hook fail",
        "remove finalizer of fail",
    ];
    assert_eq!(sim.wet_log(), done);
    assert!(sim.live("Job", "slow").is_none() && sim.live("Job", "fail").is_some());
}

/// The message of a hook comes from its container, a controller or a script.
#[test]
fn a_hook_that_only_says_that_it_timed_out_stays() {
    for message in ["no", "timed out: the database does not answer"] {
        let sim = Sim::new(vec![hook_job("j", "PreSync", "HookSucceeded")]);
        let mut sim = sim.healthy("j", &[Degraded]).saying("j", message);
        assert_eq!(sim.run().phase, OperationPhase::Failed);
        assert_eq!(sim.result("j"), format!("Synced Failed {message}"));
        assert!(sim.live("Job", "j").is_some(), "{message}");
    }
}

#[test]
fn a_deletion_that_takes_too_long() {
    let mut sim =
        Sim::new(vec![wave(make("ConfigMap", "c"), 1)]).existing(make("ConfigMap", "old"));
    sim.slow_deletions.insert("old".into(), 1000);
    sim.request.wave_timeout_secs = 30;
    let why = "wave 0 of Sync took longer than 30s, waiting for deletion of /ConfigMap/old";
    assert_eq!(
        says(&sim.run()),
        format!(
            "Failed: one or more synchronization tasks completed unsuccessfully, reason: {why}"
        )
    );
    let mut sim =
        Sim::new(vec![hook_job("j", "PreSync", "")]).existing(hook_job("j", "PreSync", ""));
    sim.slow_deletions.insert("j".into(), 1000);
    sim.request.wave_timeout_secs = 30;
    let why = "wave 0 of PreSync took longer than 30s, waiting for deletion of hook batch/Job/j";
    assert_eq!(
        says(&sim.run()),
        format!(
            "Failed: one or more synchronization tasks completed unsuccessfully, reason: {why}"
        )
    );
    assert!(!sim.wet_log().contains(&"run hook j"));
}

#[test]
fn nobody_is_hurried_to_confirm() {
    let mut sim = Sim::new(vec![])
        .existing(make("ConfigMap", "old"))
        .sync_options(&["Prune=confirm"]);
    sim.request.wave_timeout_secs = 5;
    for _ in 0..5 {
        assert_eq!(
            says(&sim.run_to_wait()),
            "Running: waiting for pruning confirmation of /ConfigMap/old"
        );
        sim.pass(Duration::from_secs(60));
    }
}

/// A newer revision is available from now on.
fn superseded(mut sim: Sim) -> Sim {
    sim.request.superseded_by = Some("fedcba9".into());
    sim
}

#[test]
fn a_newer_revision_ends_a_sync_that_waits_for_health() {
    let mut sim = two_waves();
    sim.run_to_wait();
    let mut sim = superseded(sim);
    let end = sim.run();
    let when = "while waiting for healthy state of apps/Deployment/a";
    let (old, new) = (sim.request.revision.clone(), "fedcba9");
    assert_eq!(
        says(&end),
        format!("Failed: superseded: the sync of {old} was ended {when}, because {new} is newer")
    );
    assert_eq!(end.progress.notes.ending, Some(Ending::Superseded));
    assert!(sim.live("Deployment", "b").is_none());
}

#[test]
fn a_newer_revision_waits_for_hooks() {
    let wanted = vec![
        hook_job("pre", "PreSync", "HookSucceeded"),
        make("ConfigMap", "c"),
    ];
    let mut sim = Sim::new(wanted).healthy("pre", &[Progressing]);
    sim.run_to_wait();
    let mut sim = superseded(sim);
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for completion of hook batch/Job/pre"
    );
    let mut sim = sim.healthy("pre", &[Healthy]);
    let end = sim.run();
    let old = &sim.request.revision;
    assert_eq!(
        says(&end),
        format!(
            "Failed: superseded: the sync of {old} was ended before wave 0 of Sync, because fedcba9 is newer"
        )
    );
    assert_eq!(
        sim.wet_log(),
        ["run hook pre", "remove finalizer of pre", "delete hook pre"],
        "it succeeded, and goes as its policy says"
    );
    assert!(sim.live("ConfigMap", "c").is_none());
}

#[test]
fn a_newer_revision_does_not_touch_a_sync_that_is_over() {
    let mut failing = Sim::new(vec![make("ConfigMap", "c"), hook_job("f", "SyncFail", "")])
        .error("apply c", "no");
    while failing.result("c") == "none" {
        failing.turn();
    }
    let mut failing = superseded(failing);
    assert_eq!(
        says(&failing.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully, reason: no"
    );
    assert!(failing.wet_log().contains(&"run hook f"));
    let mut last = Sim::new(vec![make("ConfigMap", "c")]);
    last.run();
    assert_eq!(superseded(last).run().phase, OperationPhase::Succeeded);
}
