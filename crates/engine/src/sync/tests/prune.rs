//! Pruning: S-39 to S-48.

use super::sim::{Sim, make, options, says, wave};
use crate::sync::{
    Effect, OperationPhase, Propagation,
    large_prune::{DEFAULT_LIMIT, LargePrune, limit},
};
use std::time::Duration;

#[test]
fn s39_without_prune_nothing_is_pruned() {
    for annotation in ["", "Prune=false", "Prune=confirm"] {
        let mut sim = Sim::new(vec![]).existing(options(make("Pod", "p"), annotation));
        sim.request.prune = false;
        assert_eq!(sim.run().phase, OperationPhase::Succeeded);
        assert_eq!(
            sim.result("p"),
            "PruneSkipped Succeeded ignored (requires pruning)"
        );
        assert!(sim.log.is_empty());
    }
}

#[test]
fn s40_prune_false() {
    let p = || make("Pod", "p");
    for (sim, pruned) in [
        (
            Sim::new(vec![]).existing(options(p(), "Prune=false")),
            false,
        ),
        (
            Sim::new(vec![])
                .existing(p())
                .sync_options(&["Prune=false"]),
            false,
        ),
        (
            Sim::new(vec![])
                .existing(options(p(), "Prune=true"))
                .sync_options(&["Prune=false"]),
            true,
        ),
        (
            Sim::new(vec![])
                .existing(options(p(), "Prune=false"))
                .sync_options(&["Prune=true"]),
            false,
        ),
    ] {
        let mut sim = sim;
        assert_eq!(
            says(&sim.run()),
            "Succeeded: successfully synced (all tasks run)"
        );
        let expected = if pruned {
            "Pruned Succeeded pruned"
        } else {
            "PruneSkipped Succeeded ignored (no prune)"
        };
        assert_eq!(sim.result("p"), expected);
        assert_eq!(sim.live("Pod", "p").is_none(), pruned);
    }
}

#[test]
fn s41_propagation() {
    for (option, expected) in [
        ("", Propagation::Foreground),
        ("PrunePropagationPolicy=background", Propagation::Background),
        ("PrunePropagationPolicy=orphan", Propagation::Orphan),
    ] {
        let sim = Sim::new(vec![])
            .existing(make("Pod", "p"))
            .sync_options(&[option]);
        let decision = sim.decide();
        assert!(
            decision.must_store,
            "which object is pruned is stored first"
        );
        let [
            Effect::Prune {
                propagation, uid, ..
            },
        ] = decision.effects.as_slice()
        else {
            panic!("{:?}", decision.effects)
        };
        assert_eq!((*propagation, uid.as_str()), (expected, "uid-1"));
    }
}

#[test]
fn s42_what_is_being_deleted_is_not_deleted_again() {
    let mut p = make("Pod", "p");
    p.metadata_mut()
        .insert("deletionTimestamp".into(), "2024-05-01T09:00:00Z".into());
    let mut sim = Sim::new(vec![]).existing(p);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.result("p"), "Pruned Succeeded pruned");
    assert!(sim.log.is_empty());
}

#[test]
fn s43_confirmation() {
    for (annotation, list) in [
        ("Prune=confirm", vec![]),
        ("", vec!["Prune=confirm"]),
        ("Prune=confirm", vec!["Prune=false"]),
    ] {
        let mut sim = Sim::new(vec![make("ConfigMap", "c")])
            .existing(options(make("Pod", "p"), annotation))
            .sync_options(&list);
        // The confirmation also applies to a plan made before it.
        sim.keep_plan();
        assert_eq!(
            says(&sim.run_to_wait()),
            "Running: waiting for pruning confirmation of /Pod/p"
        );
        assert!(sim.wet_log().is_empty() && sim.progress.results.is_empty());
        sim.request.prune_confirmed = true;
        assert_eq!(sim.run().phase, OperationPhase::Succeeded);
        assert_eq!(sim.wet_log(), ["prune p", "apply c"]);
    }
    let mut many = Sim::new(vec![])
        .existing(make("Pod", "z"))
        .sync_options(&["Prune=confirm"]);
    many.put(make("Secret", "s"));
    many.put(options(make("ConfigMap", "free"), "Prune=true"));
    assert_eq!(
        says(&many.run_to_wait()),
        "Running: waiting for pruning confirmation of /Secret/s and 1 more resources"
    );
}

#[test]
fn s44_a_failed_prune() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")])
        .existing(make("Pod", "p"))
        .error("prune p", "forbidden");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more objects failed to apply, reason: forbidden"
    );
    assert_eq!(sim.result("p"), "SyncFailed Failed forbidden");
    assert_eq!(
        sim.wet_log(),
        ["prune p"],
        "the creations of the wave do not begin"
    );
}

#[test]
fn s45_prunes_happen_in_reverse() {
    let mut sim = Sim::new(vec![]);
    for i in 0..3 {
        sim.put(wave(make("Pod", &format!("p{i}")), i));
    }
    sim.run();
    assert_eq!(sim.log, ["prune p2", "prune p1", "prune p0"]);
}

#[test]
fn s46_prune_last_comes_last() {
    let mut sim = Sim::new(vec![
        make("ConfigMap", "c"),
        wave(make("ConfigMap", "d"), 5),
    ])
    .existing(make("Pod", "p"))
    .sync_options(&["PruneLast=true"]);
    sim.run();
    assert_eq!(sim.wet_log(), ["apply c", "apply d", "prune p"]);
}

#[test]
fn s47_prunes_come_before_creations() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")]).existing(make("Pod", "p"));
    sim.run();
    assert_eq!(sim.wet_log(), ["prune p", "apply c"]);
}

#[test]
fn s48_the_next_wave_waits_for_deletions() {
    let mut sim = Sim::new(vec![wave(make("ConfigMap", "c"), 1)])
        .existing(make("Pod", "p"))
        .existing(make("Pod", "q"));
    sim.slow_deletions = [("p".to_owned(), 2), ("q".to_owned(), 1)].into();
    let waiting = sim.run_to_wait();
    assert_eq!(
        says(&waiting),
        "Running: waiting for deletion of /Pod/p and 1 more resources"
    );
    sim.idle(&waiting);
    sim.idle(&waiting);
    let waiting = sim.run_to_wait();
    assert_eq!(says(&waiting), "Running: waiting for deletion of /Pod/p");
    assert!(sim.live("ConfigMap", "c").is_none());
    sim.idle(&waiting);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.wet_log(), ["prune p", "prune q", "apply c"]);
}

#[test]
fn a_resource_that_is_gone_already_counts_as_pruned() {
    let mut sim = Sim::new(vec![])
        .existing(make("Pod", "p"))
        .error("prune p", "!pods \"p\" not found");
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.result("p"), "Pruned Succeeded pruned");
}

#[test]
fn only_the_object_that_was_compared_is_pruned() {
    let mut sim = Sim::new(vec![]).existing(make("Pod", "p"));
    let plan = sim.plan();
    // Someone creates a new one under the same name.
    let key = make("Pod", "p").key();
    sim.world.clear();
    sim.put(make("Pod", "p"));
    let live = |k: &_| sim.world.get(k).cloned().map(std::sync::Arc::new);
    let observed = crate::sync::Observed {
        live: &live,
        health: &|_| Ok(crate::health::Assessed::Without),
    };
    let decision = crate::sync::next(&plan, observed, &sim.progress, &sim.request, sim.now);
    assert!(decision.effects.is_empty() && sim.world.contains_key(&key));
}

#[test]
fn what_is_gone_is_not_waited_for_though_the_cache_still_shows_it() {
    let mut sim = Sim::new(vec![wave(make("ConfigMap", "c"), 1)])
        .existing(make("Pod", "p"))
        .error("prune p", "!not found");
    sim.keep_plan();
    let old = sim.live("Pod", "p").cloned().expect("it is there");
    while !sim.log.contains(&"prune p".to_owned()) {
        sim.turn();
    }
    sim.world.insert(old.key(), old);
    assert_eq!(
        sim.decide().effects.first().map(Effect::verb),
        Some("apply")
    );
}

#[test]
fn a_prune_that_was_done_but_not_recorded_is_still_reported() {
    let mut sim = Sim::new(vec![wave(make("ConfigMap", "c"), 1)]).existing(make("Pod", "p"));
    while !sim.log.contains(&"prune p".to_owned()) {
        if sim.decide().effects.iter().any(|e| e.verb() == "prune") {
            sim.turn_unrecorded();
        } else {
            sim.turn();
        }
    }
    sim.restart(false);
    sim.run();
    assert_eq!(sim.result("p"), "Pruned Succeeded pruned");
    assert_eq!(sim.wet_log(), ["prune p", "apply c"]);
}

#[test]
fn only_begun_prunes_whose_object_has_left_the_plan_are_closed() {
    use crate::sync::{ResourceResult, ResultCode};
    let mut sim = Sim::new(vec![wave(make("ConfigMap", "c"), 1)]).existing(make("Pod", "p"));
    sim.turn();
    sim.turn_unrecorded();
    let failed = ResourceResult {
        version: "v1".into(),
        kind: "Pod".into(),
        namespace: "app-ns".into(),
        name: "left".into(),
        status: Some(ResultCode::SyncFailed),
        hook_phase: Some(OperationPhase::Failed),
        ..ResourceResult::default()
    };
    sim.progress.results.push(failed);
    assert_eq!(sim.result("p"), "Pruned Running pruned");
    sim.progress = sim.decide().progress;
    assert_eq!(
        sim.result("p"),
        "Pruned Succeeded pruned",
        "gone, though nobody recorded it"
    );
    assert_eq!(sim.result("left"), "SyncFailed Failed ");
}

/// The cache may still show a deleted object without a deletionTimestamp; after ten seconds it is
/// believed.
#[test]
fn a_deletion_that_does_not_show_yet_is_waited_for() {
    let mut sim = Sim::new(vec![wave(make("ConfigMap", "c"), 1)]).existing(make("Pod", "p"));
    let shown = sim.live("Pod", "p").cloned().expect("it is there");
    while !sim.log.contains(&"prune p".to_owned()) {
        sim.turn();
    }
    sim.world.insert(shown.key(), shown.clone());
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for deletion of /Pod/p"
    );
    sim.pass(Duration::from_millis(9_999));
    assert_eq!(
        says(&sim.run_to_wait()),
        "Running: waiting for deletion of /Pod/p"
    );
    sim.pass(Duration::from_millis(1));
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.wet_log(), ["prune p", "apply c"]);
    // Another object of that name does not matter.
    let mut sim = Sim::new(vec![wave(make("ConfigMap", "c"), 1)]).existing(make("Pod", "p"));
    while !sim.log.contains(&"prune p".to_owned()) {
        sim.turn();
    }
    sim.put(make("Pod", "p"));
    assert_ne!(
        says(&sim.run_to_wait()),
        "Running: waiting for deletion of /Pod/p"
    );
}

#[test]
fn a_dry_run_reports_the_pruning_of_what_is_to_be_pruned() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")]).existing(make("Pod", "p"));
    sim.request.dry_run = true;
    sim.progress = sim.decide().progress;
    assert_eq!(
        (sim.result("p"), sim.result("c")),
        ("Pruned Succeeded pruned (dry run)".into(), "none".into())
    );
}

#[test]
fn a_prune_is_large_when_it_leaves_less_than_half() {
    let named = |prefix: &str, n: usize| {
        (0..n)
            .map(|i| make("ConfigMap", &format!("{prefix}{i}")))
            .collect::<Vec<_>>()
    };
    for (wanted, refused, gone, limit, large) in [
        (0, 0, 11, DEFAULT_LIMIT, true),
        (10, 0, 11, DEFAULT_LIMIT, true),
        (11, 0, 11, DEFAULT_LIMIT, false),
        (3, 0, 10, DEFAULT_LIMIT, false),
        // A resource with `Prune=false` stays.
        (3, 8, 10, DEFAULT_LIMIT, false),
        (0, 0, 3, 2, true),
        (0, 0, 500, 0, false),
    ] {
        let mut sim = Sim::new(named("kept", wanted));
        for object in named("kept", wanted).into_iter().chain(named("gone", gone)) {
            sim = sim.existing(object);
        }
        for object in named("refused", refused) {
            sim = sim.existing(options(object, "Prune=false"));
        }
        let expected = large.then_some(LargePrune {
            prunes: gone,
            live: wanted + gone,
        });
        assert_eq!(
            LargePrune::of(&sim.comparison(), limit),
            expected,
            "{wanted} {refused} {gone} {limit}"
        );
    }
    // Renamed resources are not lost: as many are created as pruned.
    let mut renamed = Sim::new(named("new", 20));
    for object in named("old", 20) {
        renamed = renamed.existing(object);
    }
    assert_eq!(LargePrune::of(&renamed.comparison(), DEFAULT_LIMIT), None);
}

#[test]
fn the_limit_of_prunes_is_an_option() {
    assert_eq!(
        (
            limit(&["Prune=false"]),
            limit(&["PruneLimit=3", "PruneLimit=0"])
        ),
        (Ok(None), Ok(Some(0)))
    );
    let error = "sync option \"PruneLimit=few\": the value must be a number of resources, or 0 for no limit";
    assert_eq!(limit(&["PruneLimit=few"]), Err(error.to_owned()));
}
