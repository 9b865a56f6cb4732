//! Waves, phases and waiting: S-49 to S-56, S-59, S-60, and the messages shown meanwhile.

use super::sim::{Sim, hook_job, make, says, wave};
use crate::{
    sync::{
        Effect, OperationPhase,
        step::Step,
        waiting::{For, waiting_for},
    },
    types::HealthStatus::{Degraded, Healthy, Missing, Progressing, Suspended, Unknown},
};

#[test]
fn s49_a_single_wave_succeeds_at_once() {
    for health in [Healthy, Progressing, Degraded] {
        let mut sim =
            Sim::new(vec![make("Deployment", "d"), make("ConfigMap", "c")]).healthy("d", &[health]);
        assert_eq!(
            says(&sim.run()),
            "Succeeded: successfully synced (all tasks run)"
        );
        assert_eq!(sim.result("d"), "Synced Running deployment/d created");
    }
}

#[test]
fn s50_nothing_to_do() {
    assert_eq!(
        says(&Sim::new(vec![]).run()),
        "Succeeded: successfully synced (no more tasks)"
    );
}

#[test]
fn s51_the_next_wave_waits_for_health() {
    let mut sim = Sim::new(vec![
        make("Deployment", "a"),
        make("Deployment", "b"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .healthy("a", &[Progressing, Healthy])
    .healthy("b", &[Progressing, Progressing, Healthy]);
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for healthy state of apps/Deployment/a and 1 more resources"
    );
    sim.idle(&waiting);
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for healthy state of apps/Deployment/b"
    );
    sim.idle(&waiting);
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
    assert_eq!(sim.wet_log(), ["apply a", "apply b", "apply c"]);
}

/// As Argo CD: only what has no health at all is complete by being there.
#[test]
fn s51_a_script_that_returns_no_health_is_waited_for() {
    let objects = vec![make("ConfigMap", "a"), wave(make("ConfigMap", "b"), 1)];
    let mut sim = Sim::new(objects);
    sim.silent.insert("a".to_owned());
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for healthy state of /ConfigMap/a"
    );
    sim.silent.clear();
    sim.idle(&waiting);
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
    assert_eq!(sim.wet_log(), ["apply a", "apply b"]);
    // A hook is complete, and says so as one without health.
    let mut sim = Sim::new(vec![hook_job("pre", "PreSync", ""), make("ConfigMap", "c")]);
    sim.silent.insert("pre".to_owned());
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
}

#[test]
fn s51_phases_and_hooks_wait_too() {
    let mut sim = Sim::new(vec![
        hook_job("pre", "PreSync", ""),
        make("ConfigMap", "c"),
        hook_job("post", "PostSync", ""),
    ])
    .healthy("pre", &[Progressing, Healthy])
    .healthy("post", &[Suspended, Healthy]);
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for completion of hook batch/Job/pre"
    );
    assert_eq!(sim.wet_log(), ["run hook pre"]);
    sim.idle(&waiting);
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for completion of hook batch/Job/post"
    );
    sim.idle(&waiting);
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (no more tasks)"
    );
}

#[test]
fn s51_s52_what_is_waited_for() {
    let sim = Sim::new(vec![
        make("Pod", "my-pod"),
        make("Pod", "other"),
        hook_job("j", "Sync", ""),
        hook_job("k", "Sync", ""),
    ]);
    let plan = sim.plan();
    let step = |name: &str| plan.steps().find(|s| s.key.name == name).expect("a step");
    let say = |names: &[&str], what: For| {
        waiting_for(&names.iter().map(|n| step(n)).collect::<Vec<&Step>>(), what)
    };
    assert_eq!(
        say(&["my-pod"], For::Completion),
        "waiting for healthy state of /Pod/my-pod"
    );
    assert_eq!(
        say(&["my-pod", "other"], For::Completion),
        "waiting for healthy state of /Pod/my-pod and 1 more resources"
    );
    assert_eq!(
        say(&["my-pod", "j"], For::Completion),
        "waiting for completion of hook batch/Job/j and 1 more resources"
    );
    assert_eq!(
        say(&["j", "k"], For::Completion),
        "waiting for completion of hook batch/Job/j and 1 more hooks"
    );
    assert_eq!(
        say(&["my-pod", "other"], For::Deletion),
        "waiting for deletion of /Pod/my-pod and 1 more resources"
    );
    assert_eq!(
        say(&["j", "k"], For::Deletion),
        "waiting for deletion of hook batch/Job/j and 1 more hooks"
    );
}

#[test]
fn s53_a_degraded_resource_fails_the_sync() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .healthy("d", &[Progressing, Degraded]);
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    assert_eq!(sim.result("d"), "Synced Failed d is Degraded");
    assert!(sim.live("ConfigMap", "c").is_none());
    for health in [Progressing, Missing, Suspended, Unknown] {
        let mut waits = Sim::new(vec![
            make("Deployment", "d"),
            wave(make("ConfigMap", "c"), 1),
        ])
        .healthy("d", &[health]);
        assert_eq!(
            says(&waits.run_to_wait()),
            "Running: waiting for healthy state of apps/Deployment/d"
        );
    }
}

#[test]
fn s54_what_the_health_of_a_hook_means() {
    for (health, message, result) in [
        (
            Healthy,
            "Succeeded: successfully synced (no more tasks)",
            "Synced Succeeded j is Healthy",
        ),
        (
            Degraded,
            "Failed: one or more synchronization tasks completed unsuccessfully",
            "Synced Failed j is Degraded",
        ),
        (
            Unknown,
            "Failed: one or more synchronization tasks completed unsuccessfully",
            "Synced Failed j is Unknown",
        ),
        (
            Progressing,
            "Running: waiting for completion of hook batch/Job/j",
            "Synced Running j is Progressing",
        ),
        (
            Suspended,
            "Running: waiting for completion of hook batch/Job/j",
            "Synced Running j is Suspended",
        ),
    ] {
        let mut sim = Sim::new(vec![hook_job("j", "Sync", "")]).healthy("j", &[health]);
        assert_eq!(says(&sim.run_to_wait()), message);
        assert_eq!(sim.result("j"), result);
    }
    // It finishes, although the hook's health cannot be read.
    let mut untold = Sim::new(vec![hook_job("j", "PreSync", ""), make("ConfigMap", "c")])
        .error("health j", "no");
    assert_eq!(
        says(&untold.run()),
        "Failed: one or more synchronization tasks completed unsuccessfully"
    );
    assert_eq!(
        (untold.result("j").as_str(), untold.result("c").as_str()),
        (
            "Synced Error failed to get resource health: failed to get resource health: no",
            "none"
        )
    );
    let mut plain = Sim::new(vec![super::sim::with(
        make("ConfigMap", "h"),
        &[("argocd.argoproj.io/hook", "Sync")],
    )]);
    plain.run();
    assert_eq!(plain.result("h"), "Synced Succeeded h created");
}

#[test]
fn a_resource_whose_health_cannot_be_told_is_waited_for() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .error("health d", "no");
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for healthy state of apps/Deployment/d"
    );
}

#[test]
fn s55_a_resource_that_vanishes_while_it_is_waited_for() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .healthy("d", &[Progressing]);
    let waiting = sim.run_to_wait();
    sim.world.clear();
    sim.idle(&waiting);
    let last = sim.run();
    let missing = "Resource apps/Deployment/d is missing, it might have been deleted";
    assert_eq!(
        says(&last),
        format!(
            "Failed: one or more synchronization tasks completed unsuccessfully, reason: {missing}"
        )
    );
    assert_eq!(sim.result("d"), format!("SyncFailed Error {missing}"));
    assert!(
        sim.log.contains(&"read d".to_owned()),
        "the API server was asked first"
    );
}

#[test]
fn a_cache_that_lags_is_not_a_missing_resource() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ]);
    while !sim.log.contains(&"apply d".to_owned()) {
        sim.turn();
    }
    sim.unseen.insert("d".into());
    let waiting = sim.turn();
    assert_eq!(
        says(&waiting),
        "Running: waiting for healthy state of apps/Deployment/d"
    );
    assert!(waiting.wake_after.expect("a time").as_millis() <= 3000);
    sim.idle(&waiting);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert!(!sim.log.contains(&"read d".to_owned()));
}

#[test]
fn an_object_that_never_reaches_the_cache_is_read() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ]);
    while !sim.log.contains(&"apply d".to_owned()) {
        sim.turn();
    }
    for _ in 0..3 {
        sim.unseen.insert("d".into());
        let decision = sim.turn();
        if decision.effects.is_empty() {
            sim.idle(&decision);
        }
    }
    assert!(sim.log.contains(&"read d".to_owned()));
    assert_eq!(sim.result("d"), "Synced Succeeded d is Healthy");
}

/// Continues with a cache that does not show an object, until it is read from the API server.
fn until_read(sim: &mut Sim, name: &str) {
    for _ in 0..20 {
        sim.unseen.insert(name.into());
        let decision = sim.turn();
        if sim.log.contains(&format!("read {name}")) {
            return;
        }
        if decision.effects.is_empty() {
            sim.idle(&decision);
        }
    }
    panic!("nobody asked: {:?}", sim.log);
}

#[test]
fn a_read_that_fails_says_nothing_of_the_resource() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .error("read d", "timeout");
    until_read(&mut sim, "d");
    assert_eq!(sim.result("d"), "Synced Running deployment/d created");
    sim.unseen.insert("d".into());
    let waiting = sim.turn();
    assert_eq!(
        (says(&waiting), waiting.effects.len()),
        (
            "Running: waiting for healthy state of apps/Deployment/d".into(),
            0
        )
    );
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
}

#[test]
fn a_hook_that_only_the_api_server_shows_is_ours() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", ""), make("ConfigMap", "c")])
        .healthy("j", &[Progressing]);
    sim.turn();
    sim.turn();
    until_read(&mut sim, "j");
    assert_eq!(sim.result("j"), "Synced Running j is Progressing");
    assert_eq!(
        sim.healthy("j", &[Healthy]).run().phase,
        OperationPhase::Succeeded
    );
}

#[test]
fn a_resource_that_somebody_made_anew_is_still_the_resource() {
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ]);
    while !sim.log.contains(&"apply d".to_owned()) {
        sim.turn();
    }
    let other = sim
        .world
        .remove(&make("Deployment", "d").key())
        .expect("it was applied");
    sim.put(other);
    until_read(&mut sim, "d");
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
}

#[test]
fn an_older_view_of_a_resource_is_not_taken_for_the_new_one() {
    // The cache still shows the healthy Deployment from before the apply.
    let mut sim = Sim::new(vec![
        make("Deployment", "d"),
        wave(make("ConfigMap", "c"), 1),
    ])
    .existing(make("Deployment", "d"));
    let old = sim.live("Deployment", "d").cloned().expect("it is there");
    while !sim.log.contains(&"apply d".to_owned()) {
        sim.turn();
    }
    let new = sim.world.insert(old.key(), old).expect("it is there");
    assert_eq!(
        says(&sim.decide()),
        "Running: waiting for healthy state of apps/Deployment/d"
    );
    sim.world.insert(new.key(), new);
    assert!(matches!(
        sim.decide().effects.as_slice(),
        [Effect::Apply(_)]
    ));
}

#[test]
fn s56_a_failed_apply_without_sync_fail_hooks() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "a"),
        make("ConfigMap", "b"),
        make("Secret", "s"),
    ])
    .error("apply a", "no")
    .error("apply b", "never")
    .error("apply s", "no");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more objects failed to apply, reason: no,never"
    );
}

#[test]
fn s56_later_waves_are_not_begun_after_a_failure() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "a"),
        wave(make("ConfigMap", "b"), 1),
        hook_job("post", "PostSync", ""),
    ])
    .error("apply a", "no");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more objects failed to apply, reason: no"
    );
    assert_eq!(sim.wet_log(), ["apply a"]);
}

#[test]
fn s59_waves_may_be_spaced() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "a"),
        wave(make("ConfigMap", "b"), 1),
        wave(make("ConfigMap", "c"), 2),
    ]);
    sim.request.wave_delay_secs = 2;
    let started = sim.now;
    let waiting = sim.run_to_wait();
    assert_eq!(
        (
            says(&waiting).as_str(),
            waiting.wake_after.map(|d| d.as_secs())
        ),
        ("Running: one or more tasks are running", Some(2))
    );
    sim.run();
    // Between waves, not after the last.
    assert_eq!(sim.now.duration_since(started).as_secs(), 4);
    let mut unspaced = Sim::new(vec![
        make("ConfigMap", "a"),
        wave(make("ConfigMap", "b"), 1),
    ]);
    unspaced.run();
    assert_eq!(unspaced.now, started);
}

/// Argo CD allows a callback to stop the sync between two waves. Here no callback is called that
/// could fail, because the pause is part of the request. The only thing that stops a sync between
/// waves is a termination, and it leaves the same state as such a failure.
#[test]
fn s60_a_sync_that_is_stopped_between_waves_ends_its_hooks_and_runs_no_others() {
    let later = wave(make("ConfigMap", "later"), 1);
    let mut sim = Sim::new(vec![
        hook_job("running", "Sync", ""),
        make("ConfigMap", "c"),
        later,
        hook_job("fail", "SyncFail", ""),
    ])
    .healthy("running", &[Progressing]);
    sim.run_to_wait();
    sim.request.terminate = true;
    assert_eq!(says(&sim.run()), "Failed: Operation terminated");
    assert_eq!(
        sim.wet_log(),
        [
            "apply c",
            "run hook running",
            "delete hook running",
            "remove finalizer of running"
        ]
    );
}

#[test]
fn beside_a_hook_of_the_only_wave_resources_are_not_waited_for() {
    let mut sim = Sim::new(vec![make("Deployment", "d"), hook_job("j", "Sync", "")])
        .healthy("d", &[Progressing])
        .healthy("j", &[Progressing]);
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for completion of hook batch/Job/j"
    );
    assert_eq!(
        sim.healthy("j", &[Healthy]).run().phase,
        OperationPhase::Succeeded
    );
}

#[test]
fn a_sync_of_one_wave_does_not_wait_for_health() {
    let mut sim = Sim::new(vec![make("Deployment", "a"), make("Deployment", "b")])
        .healthy("a", &[Progressing]);
    assert_eq!(
        says(&sim.run()),
        "Succeeded: successfully synced (all tasks run)"
    );
    assert_eq!(sim.result("a"), "Synced Running deployment/a created");
}
