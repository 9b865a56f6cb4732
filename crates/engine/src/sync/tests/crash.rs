//! Crashes: a sync that is killed and forgotten at any point ends like one that is not, and no hook runs twice.

use super::sim::{Cut, NS, Sim, hook_job, make, options, wave, widget_crd};
use crate::{
    sync::{OperationPhase, hook},
    types::HealthStatus::{Degraded, Healthy, Progressing},
};
use std::collections::BTreeMap;

/// A sync with everything in it.
fn rich() -> Sim {
    let mut sim = Sim::new(vec![
        make("Namespace", NS),
        hook_job("pre", "PreSync", ""),
        wave(hook_job("pre-2", "PreSync", "HookSucceeded"), 1),
        make("ConfigMap", "a"),
        widget_crd(),
        make("Widget", "w"),
        wave(make("Deployment", "b"), 1),
        wave(make("Deployment", "c"), 2),
        wave(hook_job("mid", "Sync", "HookFailed"), 2),
        options(wave(make("ConfigMap", "d"), 3), "Replace=true"),
        hook_job("both", "PreSync,PostSync", ""),
        hook_job("post", "PostSync", "BeforeHookCreation,HookSucceeded"),
        hook_job("fail", "SyncFail", ""),
    ])
    .existing(make("ConfigMap", "old"))
    .existing(wave(make("Secret", "old-2"), 2))
    .existing(wave(make("ConfigMap", "d"), 3))
    .healthy("pre", &[Progressing, Healthy])
    .healthy("b", &[Progressing, Healthy])
    .healthy("post", &[Progressing, Progressing, Healthy]);
    let mut left = hook_job("post", "PostSync", "BeforeHookCreation,HookSucceeded");
    left.set_finalizers(vec![hook::HOOK_FINALIZER.into()]);
    sim.put(left);
    sim.unknown_kinds.insert("Widget".into());
    sim.slow_deletions.insert("old-2".into(), 1);
    sim
}

/// The same, failing late.
fn failing() -> Sim {
    rich().healthy("c", &[Progressing, Degraded]).healthy("fail", &[Progressing, Healthy])
}

fn refused() -> Sim {
    rich().error("apply c", "no").healthy("mid", &[Progressing, Healthy])
}

/// What counts of the end: phase, what is in the cluster, results and how often each hook was created.
#[derive(Debug, PartialEq)]
struct End {
    phase: OperationPhase,
    message: String,
    world: Vec<String>,
    results: BTreeMap<String, String>,
    created: BTreeMap<String, usize>,
}

fn end(sim: Sim, phase: OperationPhase, message: String) -> End {
    let held = |o: &tiphys_apimachinery::Object| if o.finalizers().is_empty() { "" } else { " (held)" };
    // Whether the very last wave is looked at again depends on when the crash was.
    let verdict = |r: &crate::sync::ResourceResult| {
        let phase = r.hook_phase.filter(|p| *p != OperationPhase::Running).unwrap_or(OperationPhase::Succeeded);
        format!("{:?} {phase}", r.status)
    };
    End {
        phase,
        // Which of the two texts says so depends on it as well.
        message: message.split(" (").next().unwrap_or_default().to_owned(),
        world: sim.world.values().map(|o| format!("{}{}", o.key(), held(o))).collect(),
        results: sim.progress.results.iter().map(|r| (r.step_key().to_string(), verdict(r))).collect(),
        created: sim.created_hooks,
    }
}

/// Runs to the end, cut off once in turn `at` (or never), and tells whether there was such a turn.
fn run_cut(mut sim: Sim, at: Option<usize>, cut: Cut, keep_annotation: bool) -> (End, bool) {
    for turn in 0..400 {
        let cut_now = at == Some(turn);
        let decision = sim.turn_cut(cut_now.then_some(cut));
        if decision.phase.completed() {
            return (end(sim, decision.phase, decision.message), false);
        }
        if cut_now {
            sim.restart(keep_annotation);
            let last = sim.run();
            return (end(sim, last.phase, last.message), true);
        }
        if decision.effects.is_empty() {
            sim.idle(&decision);
        }
    }
    panic!("the sync did not end");
}

const CUTS: [Cut; 4] = [Cut::BeforeEffects, Cut::MidEffects, Cut::AfterEffects, Cut::AfterRecord];

fn killed_anywhere(make_sim: fn() -> Sim, cuts: &[Cut], keep_annotation: bool) {
    let (expected, _) = run_cut(make_sim(), None, Cut::AfterRecord, true);
    assert!(expected.created.values().all(|n| *n == 1), "{:?}", expected.created);
    for &cut in cuts {
        let mut turn = 0;
        loop {
            let (got, was_cut) = run_cut(make_sim(), Some(turn), cut, keep_annotation);
            if !was_cut {
                break;
            }
            assert_eq!(got, expected, "killed {cut:?} in turn {turn}, annotation kept: {keep_annotation}");
            turn += 1;
        }
        assert!(turn > 15, "only {turn} turns");
    }
}

#[test]
fn killed_anywhere_it_ends_the_same() {
    killed_anywhere(rich, &CUTS, true);
}

#[test]
fn killed_anywhere_without_the_annotation_it_ends_the_same() {
    killed_anywhere(rich, &CUTS, false);
}

#[test]
fn a_failing_sync_killed_anywhere_fails_the_same() {
    killed_anywhere(failing, &[Cut::MidEffects], true);
    killed_anywhere(failing, &[Cut::AfterRecord], false);
}

#[test]
fn a_refused_apply_killed_anywhere_fails_the_same() {
    killed_anywhere(refused, &[Cut::MidEffects], true);
    killed_anywhere(refused, &[Cut::AfterRecord], false);
}

#[test]
fn killed_in_every_single_turn_it_ends_the_same() {
    let (expected, _) = run_cut(rich(), None, Cut::AfterRecord, true);
    for keep in [true, false] {
        let mut sim = rich();
        let last = (0..400).find_map(|_| {
            let decision = sim.turn();
            // Without the annotation and with no result but the namespace's, an operation has not begun.
            sim.restart(keep || sim.progress.results.len() < 2);
            sim.pass(decision.wake_after.unwrap_or_default());
            decision.phase.completed().then_some(decision)
        });
        let last = last.unwrap_or_else(|| panic!("the sync did not end: {:?}", &sim.messages[380..]));
        assert_eq!(end(sim, last.phase, last.message), expected);
    }
}

#[test]
fn with_one_plan_for_all_turns_it_ends_the_same() {
    for make_sim in [rich, failing, refused] {
        let (expected, _) = run_cut(make_sim(), None, Cut::AfterRecord, true);
        let mut sim = make_sim();
        sim.keep_plan();
        let (got, _) = run_cut(sim, None, Cut::AfterRecord, true);
        assert_eq!(got, expected);
        for turn in [5, 12, 16] {
            let mut sim = make_sim();
            sim.keep_plan();
            let (got, was_cut) = run_cut(sim, Some(turn), Cut::AfterEffects, false);
            assert!(was_cut);
            assert_eq!(got, expected, "killed in turn {turn}");
        }
    }
}

#[test]
fn a_hook_created_just_before_a_crash_is_adopted() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]);
    sim.turn();
    sim.turn_cut(Some(Cut::AfterEffects));
    sim.restart(true);
    sim.run();
    assert_eq!(sim.wet_log(), ["run hook j", "remove finalizer of j"]);
}

#[test]
fn a_hook_of_another_attempt_is_not_adopted() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]).healthy("j", &[Degraded]);
    sim.run();
    sim.request.operation_id = "op-2".into();
    sim.progress = crate::sync::Progress::new("op-2");
    sim = sim.healthy("j", &[Healthy]);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.wet_log()[2..], ["delete hook j", "run hook j", "remove finalizer of j"]);
}

#[test]
fn a_completed_hook_that_was_deleted_under_our_eyes_is_done() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", ""), wave(make("ConfigMap", "c"), 1)]);
    while !sim.log.contains(&"remove finalizer of j".to_owned()) {
        sim.turn();
    }
    sim.world.remove(&make("Job", "j").key());
    sim.restart(true);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(sim.created_hooks.values().sum::<usize>(), 1);
}

#[test]
fn results_are_durable_before_a_hook_is_let_go() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "HookSucceeded")]);
    for _ in 0..20 {
        let decision = sim.decide();
        let lets_go = decision.effects.iter().any(|e| ["remove finalizer of", "delete hook", "prune"].contains(&e.verb()));
        assert!(!lets_go || decision.must_store, "{:?}", decision.effects);
        if sim.turn().phase.completed() {
            return;
        }
    }
    panic!("the sync did not end");
}

/// Numbers that look random but are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A sync of a few things of all sorts, some of which go wrong.
fn random(seed: u64) -> Sim {
    let mut dice = Dice(seed);
    let mut desired = Vec::new();
    let mut health = BTreeMap::new();
    for i in 0..3 + dice.below(8) {
        let name = format!("n{i}");
        let wave_of = dice.pick(&[0, 0, 0, 1, 2]);
        let object = if dice.below(2) == 0 {
            let types = dice.pick(&["PreSync", "Sync", "PostSync", "SyncFail", "PreSync,PostSync"]);
            hook_job(&name, types, dice.pick(&["", "HookSucceeded", "HookFailed", "BeforeHookCreation,HookSucceeded"]))
        } else {
            make(dice.pick(&["ConfigMap", "Deployment", "Secret"]), &name)
        };
        desired.push(wave(object, wave_of));
        let mut states = vec![Progressing; dice.below(3)];
        states.push(dice.pick(&[Healthy, Healthy, Healthy, Healthy, Healthy, Degraded]));
        health.insert(name, states);
    }
    let mut sim = Sim::new(desired.clone());
    for object in desired.into_iter().filter(|o| o.name().len() == 2) {
        if dice.below(4) == 0 {
            sim.put(object);
        }
    }
    for i in 0..dice.below(3) {
        sim.put(wave(make("ConfigMap", &format!("old{i}")), dice.pick(&[0, 1])));
        sim.slow_deletions.insert(format!("old{i}"), dice.below(2));
    }
    if dice.below(4) == 0 {
        sim = sim.error(&format!("apply n{}", dice.below(4)), "no");
    }
    if dice.below(8) == 0 {
        sim = sim.error(&format!("run hook n{}", dice.below(4)), "no");
    }
    sim.health = health;
    sim
}

#[test]
fn whatever_is_synced_and_whenever_it_is_killed() {
    let mut phases = BTreeMap::new();
    for seed in 0..150 {
        let (expected, _) = run_cut(random(seed), None, Cut::AfterRecord, true);
        *phases.entry(expected.phase.as_str()).or_insert(0) += 1;
        let mut dice = Dice(seed + 1_000_000);
        let mut sim = random(seed);
        let last = (0..300).find_map(|_| {
            let cut = (dice.below(3) == 0).then(|| dice.pick(&CUTS));
            let decision = sim.turn_cut(cut);
            if decision.phase.completed() {
                return Some(decision);
            }
            if cut.is_some() {
                let begun = sim.stored.as_ref().is_some_and(|(results, _)| results != "[]");
                sim.restart(!begun || dice.below(2) == 0);
            } else if decision.effects.is_empty() {
                sim.idle(&decision);
            }
            None
        });
        let last = last.unwrap_or_else(|| panic!("sync {seed} did not end"));
        let got = end(sim, last.phase, last.message);
        assert_eq!((got.phase, &got.world, &got.created), (expected.phase, &expected.world, &expected.created), "sync {seed}");
        assert!(got.created.values().all(|n| *n == 1), "sync {seed}: {:?}", got.created);
    }
    assert!(phases["Succeeded"] > 20 && phases["Failed"] > 20, "{phases:?}");
}
