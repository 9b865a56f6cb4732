//! Termination: S-76 to S-80.

use super::sim::{Sim, hook_job, make, says, wave};
use crate::{
    sync::OperationPhase,
    types::HealthStatus::{Degraded, Healthy, Progressing},
};

/// Runs until it waits, then terminates.
fn terminated(mut sim: Sim) -> (Sim, String) {
    sim.run_to_wait();
    sim.request.terminate = true;
    let last = sim.run();
    (sim, says(&last))
}

#[test]
fn s76_without_running_hooks() {
    let sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .healthy("d", &[Progressing]);
    let (sim, said) = terminated(sim);
    assert_eq!(said, "Failed: Operation terminated");
    assert_eq!(sim.wet_log(), ["apply d"]);
    let mut nothing = Sim::new(vec![make("ConfigMap", "c")]);
    nothing.request.terminate = true;
    assert_eq!(says(&nothing.run()), "Failed: Operation terminated");
    assert!(nothing.log.is_empty());
}

/// The message of a hook comes from its container, a controller or a script.
#[test]
fn a_hook_that_only_says_that_a_deletion_failed_is_no_error() {
    let hooks = vec![hook_job("a", "Sync", ""), hook_job("b", "Sync", "")];
    let sim = Sim::new(hooks)
        .healthy("a", &[Progressing])
        .healthy("b", &[Degraded])
        .saying("b", "Failed to delete: the rows of last year");
    let (sim, said) = terminated(sim);
    assert_eq!(said, "Failed: Operation terminated");
    let said_by_hook = "Synced Failed Failed to delete: the rows of last year";
    assert_eq!(sim.result("b"), said_by_hook);
}

#[test]
fn s77_running_hooks_are_ended() {
    let sim = Sim::new(vec![
        hook_job("a", "Sync", ""),
        hook_job("b", "Sync", "HookSucceeded"),
        make("ConfigMap", "c"),
    ])
    .healthy("a", &[Progressing])
    .healthy("b", &[Progressing]);
    let (sim, said) = terminated(sim);
    assert_eq!(said, "Failed: Operation terminated");
    assert_eq!(
        (sim.result("a"), sim.result("b")),
        (
            "Synced Failed Terminated".into(),
            "Synced Failed Terminated".into()
        )
    );
    assert!(sim.live("Job", "a").is_none() && sim.live("Job", "b").is_none());
    assert_eq!(
        sim.wet_log()[3..],
        [
            "delete hook a",
            "delete hook b",
            "remove finalizer of a",
            "remove finalizer of b"
        ]
    );
}

#[test]
fn s77_a_hook_that_turns_out_completed_keeps_its_result() {
    for (health, result) in [
        (Healthy, "Synced Succeeded j is Healthy"),
        (Degraded, "Synced Failed j is Degraded"),
    ] {
        for (policy, stays) in [("", true), ("HookSucceeded", true), ("HookFailed", false)] {
            let mut sim =
                Sim::new(vec![hook_job("j", "Sync", policy)]).healthy("j", &[Progressing]);
            sim.run_to_wait();
            sim = sim.healthy("j", &[health]);
            sim.request.terminate = true;
            assert_eq!(says(&sim.run()), "Failed: Operation terminated");
            assert_eq!(
                (sim.result("j").as_str(), sim.live("Job", "j").is_some()),
                (result, stays),
                "{policy}"
            );
        }
    }
}

#[test]
fn s78_a_hook_that_is_gone() {
    let mut sim = Sim::new(vec![hook_job("j", "Sync", "")]).healthy("j", &[Progressing]);
    sim.run_to_wait();
    sim.world.clear();
    sim.request.terminate = true;
    assert_eq!(says(&sim.run()), "Failed: Operation terminated");
    assert_eq!(sim.result("j"), "Synced Succeeded Terminated");
}

#[test]
fn s79_errors_while_ending_hooks() {
    for (effect, result) in [
        ("delete hook j", "Synced Failed Failed to delete: no"),
        (
            "remove finalizer of j",
            "Synced Error Failed to remove hook finalizer: no",
        ),
    ] {
        let sim = Sim::new(vec![hook_job("j", "Sync", "")])
            .healthy("j", &[Progressing])
            .error(effect, "no");
        let (sim, said) = terminated(sim);
        assert_eq!(
            (said.as_str(), sim.result("j").as_str()),
            ("Error: Operation termination had errors", result)
        );
    }
}

#[test]
fn s80_completed_hooks_are_only_let_go() {
    for policy in ["", "HookFailed"] {
        let mut sim = Sim::new(vec![
            hook_job("a", "Sync", policy),
            hook_job("b", "Sync", policy),
        ])
        .healthy("b", &[Progressing]);
        sim.run_to_wait();
        assert_eq!(sim.result("a"), "Synced Succeeded a is Healthy");
        sim.request.terminate = true;
        assert_eq!(sim.run().phase, OperationPhase::Failed);
        assert!(
            sim.live("Job", "a")
                .is_some_and(|o| o.finalizers().is_empty()),
            "{policy}"
        );
        assert!(sim.live("Job", "b").is_none());
    }
}

#[test]
fn a_hook_whose_health_cannot_be_told_is_ended() {
    let mut sim = Sim::new(vec![hook_job("j", "Sync", "")]).healthy("j", &[Progressing]);
    sim.run_to_wait();
    sim = sim.error("health j", "no");
    sim.request.terminate = true;
    assert_eq!(says(&sim.run()), "Failed: Operation terminated");
    assert_eq!(
        (sim.result("j").as_str(), sim.live("Job", "j")),
        ("Synced Error Failed to get hook health: no", None)
    );
}

#[test]
fn a_hook_that_nothing_holds_is_ended_too() {
    let mut sim = Sim::new(vec![hook_job("j", "Sync", "")]).healthy("j", &[Progressing]);
    sim.run_to_wait();
    sim.world
        .values_mut()
        .for_each(|o| o.set_finalizers(Vec::new()));
    sim.request.terminate = true;
    assert_eq!(says(&sim.run()), "Failed: Operation terminated");
    assert_eq!(
        (sim.result("j").as_str(), sim.live("Job", "j")),
        ("Synced Failed Terminated", None)
    );
}

#[test]
fn a_hook_created_just_before_a_crash_is_ended_too() {
    let mut sim = Sim::new(vec![hook_job("j", "Sync", "")]).healthy("j", &[Progressing]);
    sim.turn();
    sim.turn_unrecorded();
    assert_eq!(sim.created_hooks.len(), 1);
    sim.restart(true);
    sim.request.terminate = true;
    assert_eq!(says(&sim.run()), "Failed: Operation terminated");
    assert!(sim.live("Job", "j").is_none());
    assert_eq!(sim.result("j"), "Synced Failed Terminated");
}
