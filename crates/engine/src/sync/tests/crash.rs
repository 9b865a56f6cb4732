//! Crashes: a sync that is killed at any point and resumed ends like one that is not, and no hook
//! runs twice.

use super::{
    scenarios::{self, SCENARIOS, rich},
    sim::{NS, Sim, hook_job, make, wave},
};
use crate::{
    sync::{OperationPhase, Progress},
    types::HealthStatus::{Degraded, Healthy, Progressing},
};
use std::collections::BTreeMap;

/// The relevant part of the end: phase, cluster content, results and how often each hook was
/// created.
#[derive(Clone, Debug, PartialEq)]
struct End {
    phase: OperationPhase,
    message: String,
    world: Vec<String>,
    results: BTreeMap<String, String>,
    created: BTreeMap<String, usize>,
    deleted: BTreeMap<String, usize>,
}

impl End {
    /// If the annotation is lost, a namespace that was created just before the crash is not
    /// reported, because it exists already.
    fn is_as_good_as(&self, other: &Self, annotation_kept: bool) -> bool {
        let reported = |end: &Self| {
            let counts = |key: &str| annotation_kept || !key.starts_with("/Namespace/");
            end.results
                .iter()
                .filter(|(k, _)| counts(k))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        let (mine, others) = (
            Self {
                results: reported(self),
                ..self.clone()
            },
            Self {
                results: reported(other),
                ..other.clone()
            },
        );
        mine == others
    }
}

fn end(sim: Sim, phase: OperationPhase, message: String) -> End {
    let held = |o: &tiphys_apimachinery::Object| {
        if o.finalizers().is_empty() {
            ""
        } else {
            " (held)"
        }
    };
    // Whether the very last wave is checked again depends on when the crash was.
    let verdict = |r: &crate::sync::ResourceResult| {
        let phase = r
            .hook_phase
            .filter(|p| *p != OperationPhase::Running)
            .unwrap_or(OperationPhase::Succeeded);
        format!("{:?} {phase}", r.status)
    };
    End {
        phase,
        // The wording depends on it as well; why a wave timed out is only in the annotation.
        message: [" (", ", reason: wave"]
            .iter()
            .fold(message.as_str(), |m, end| m.split(end).next().unwrap_or(m))
            .to_owned(),
        world: sim
            .world
            .values()
            .map(|o| format!("{}{}", o.key(), held(o)))
            .collect(),
        results: sim
            .progress
            .results
            .iter()
            .map(|r| (r.step_key().to_string(), verdict(r)))
            .collect(),
        created: sim.created_hooks,
        deleted: sim.deleted,
    }
}

/// Runs to the end with a user who acts on the way; a process that dies is restarted. Returns the
/// number of points passed too.
fn run(mut sim: Sim, user: scenarios::User, keep_annotation: bool) -> (End, usize) {
    for _ in 0..400 {
        let Some(decision) = sim.turn_or_die() else {
            sim.restart(keep_annotation);
            continue;
        };
        let goes_on = user(&mut sim, &decision);
        if decision.phase.completed() && !goes_on {
            let points = sim.points;
            return (end(sim, decision.phase, decision.message), points);
        }
        if decision.effects.is_empty() && !decision.phase.completed() {
            sim.idle(&decision);
        }
    }
    panic!("the sync did not end: {:?}", &sim.messages[390..]);
}

/// Kills it at every point in turn; then after every write without the annotation, and with the
/// effects of a group in reverse order.
fn killed_anywhere(name: &str, make_sim: fn() -> Sim, user: scenarios::User) -> (End, usize) {
    let (expected, points) = run(make_sim(), user, true);
    assert!(
        expected.created.values().all(|n| *n == 1),
        "{name}: {:?}",
        expected.created
    );
    // Points after a write and before the next one differ in little but the time.
    for (keep, backwards, every) in [(true, false, 1), (false, false, 2), (true, true, 2)] {
        for point in (every - 1..points).step_by(every) {
            let mut sim = make_sim();
            sim.backwards = backwards;
            sim.dies_in = Some(point);
            let (got, _) = run(sim, user, keep);
            if !got.is_as_good_as(&expected, keep) {
                let how = format!(
                    "{name}: killed at point {point}, annotation kept: {keep}, backwards: {backwards}"
                );
                panic!("{how}\n{:#?}\nand not\n{expected:#?}", got);
            }
        }
    }
    (expected, points)
}

/// Every fourth scenario, so that they run in parallel.
fn killed_at_any_point(first: usize) {
    let mut wrong = Vec::new();
    for (name, make_sim, user, phase, deleted) in SCENARIOS.iter().skip(first).step_by(4) {
        let (end, points) = killed_anywhere(name, *make_sim, *user);
        println!("{points:4} points: {name}");
        let gone: Vec<String> = end
            .deleted
            .iter()
            .map(|(key, n)| format!("{} {n}", key.rsplit('/').next().unwrap_or_default()))
            .collect();
        if (end.phase, gone.join(", ").as_str()) != (*phase, *deleted) {
            wrong.push(format!(
                "{name}: {} {:?} {}",
                end.phase,
                gone.join(", "),
                end.message
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn killed_at_any_point_scenarios_end_the_same_1() {
    killed_at_any_point(0);
}

#[test]
fn killed_at_any_point_scenarios_end_the_same_2() {
    killed_at_any_point(1);
}

#[test]
fn killed_at_any_point_scenarios_end_the_same_3() {
    killed_at_any_point(2);
}

#[test]
fn killed_at_any_point_scenarios_end_the_same_4() {
    killed_at_any_point(3);
}

#[test]
fn there_are_enough_points() {
    let points: usize = SCENARIOS
        .iter()
        .map(|(_, make_sim, user, ..)| run(make_sim(), *user, true).1)
        .sum();
    println!("{points} points in {} scenarios", SCENARIOS.len());
    assert!(SCENARIOS.len() >= 24 && points > 1_000, "{points} points");
}

#[test]
fn killed_in_every_single_turn_it_ends_the_same() {
    let (expected, _) = run(rich(), scenarios::nobody, true);
    for keep in [true, false] {
        let mut sim = rich();
        let last = (0..400).find_map(|_| {
            let decision = sim.turn();
            // Without the annotation and with no result except the namespace's, an operation has
            // not begun.
            sim.restart(keep || sim.progress.results.len() < 2);
            sim.pass(decision.wake_after.unwrap_or_default());
            decision.phase.completed().then_some(decision)
        });
        let last =
            last.unwrap_or_else(|| panic!("the sync did not end: {:?}", &sim.messages[380..]));
        assert_eq!(end(sim, last.phase, last.message), expected);
    }
}

#[test]
fn with_one_plan_for_all_turns_it_ends_the_same() {
    for make_sim in [rich, scenarios::failing, scenarios::refused] {
        let (expected, points) = run(make_sim(), scenarios::nobody, true);
        for dies_in in [
            None,
            Some(points / 4),
            Some(points / 2),
            Some(points * 3 / 4),
        ] {
            let mut sim = make_sim();
            sim.keep_plan();
            sim.dies_in = dies_in;
            let (got, _) = run(sim, scenarios::nobody, false);
            assert_eq!(got, expected, "killed at {dies_in:?}");
        }
    }
}

#[test]
fn a_hook_created_just_before_a_crash_is_adopted() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]);
    sim.turn();
    sim.turn_unrecorded();
    sim.restart(true);
    sim.run();
    assert_eq!(sim.wet_log(), ["run hook j", "remove finalizer of j"]);
}

#[test]
fn a_dry_run_adopts_no_hook() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]).healthy("j", &[Progressing]);
    sim.run_to_wait();
    sim.progress = Progress::new("op-1");
    sim.request.dry_run = true;
    sim.run();
    assert_eq!(sim.result("j"), "Synced Succeeded j dry run");
}

#[test]
fn a_hook_of_another_attempt_is_not_adopted() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", "")]).healthy("j", &[Degraded]);
    sim.run();
    sim.retry("op-2");
    sim = sim.healthy("j", &[Healthy]);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(
        sim.wet_log()[2..],
        ["delete hook j", "run hook j", "remove finalizer of j"]
    );
}

#[test]
fn a_completed_hook_that_was_deleted_under_our_eyes_is_done() {
    let mut sim = Sim::new(vec![
        hook_job("j", "PreSync", ""),
        wave(make("ConfigMap", "c"), 1),
    ]);
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
        let lets_go = decision
            .effects
            .iter()
            .any(|e| ["remove finalizer of", "delete hook", "prune"].contains(&e.verb()));
        assert!(!lets_go || decision.must_store, "{:?}", decision.effects);
        if sim.turn().phase.completed() {
            return;
        }
    }
    panic!("the sync did not end");
}

#[test]
fn a_namespace_made_just_before_a_crash_is_reported() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")]).sync_options(&["CreateNamespace=true"]);
    // A caller need not store a decision that only reads.
    sim.turn();
    sim.stored = None;
    sim.turn_unrecorded();
    assert_eq!(sim.log, ["read app-ns", "apply app-ns"]);
    sim.restart(true);
    assert_eq!(sim.run().phase, OperationPhase::Succeeded);
    assert_eq!(
        sim.result(NS),
        "Synced Running namespace/app-ns configured",
        "once it is there nobody looks at it again"
    );
}

#[test]
fn a_namespace_made_just_before_a_crash_is_reported_where_the_dry_run_fails() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")])
        .sync_options(&["CreateNamespace=true"])
        .error("dry-run c", "no");
    sim.turn();
    sim.turn_unrecorded();
    sim.restart(true);
    assert_eq!(sim.run().phase, OperationPhase::Failed);
    assert_eq!(
        sim.result(NS),
        "Synced Running namespace/app-ns configured",
        "no step comes after it"
    );
}

/// Numbers that look random but are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A sync of a few objects of all sorts, some of which fail.
fn random(seed: u64) -> Sim {
    let mut dice = Dice(seed);
    let mut desired = Vec::new();
    let mut health = BTreeMap::new();
    for i in 0..3 + dice.below(8) {
        let name = format!("n{i}");
        let wave_of = dice.pick(&[0, 0, 0, 1, 2]);
        let object = if dice.below(2) == 0 {
            let types = dice.pick(&[
                "PreSync",
                "Sync",
                "PostSync",
                "SyncFail",
                "PreSync,PostSync",
            ]);
            hook_job(
                &name,
                types,
                dice.pick(&[
                    "",
                    "HookSucceeded",
                    "HookFailed",
                    "BeforeHookCreation,HookSucceeded",
                ]),
            )
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
        sim.put(wave(
            make("ConfigMap", &format!("old{i}")),
            dice.pick(&[0, 1]),
        ));
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
        let (expected, points) = run(random(seed), scenarios::nobody, true);
        *phases.entry(expected.phase.as_str()).or_insert(0) += 1;
        let mut dice = Dice(seed + 1_000_000);
        let mut sim = random(seed);
        let last = (0..300).find_map(|_| {
            if sim.dies_in.is_none() && dice.below(3) == 0 {
                sim.dies_in = Some(dice.below(points / 2 + 1));
            }
            let Some(decision) = sim.turn_or_die() else {
                let begun = sim
                    .stored
                    .as_ref()
                    .is_some_and(|(results, _)| results != "[]");
                sim.restart(!begun || dice.below(2) == 0);
                return None;
            };
            if decision.phase.completed() {
                return Some(decision);
            }
            if decision.effects.is_empty() {
                sim.idle(&decision);
            }
            None
        });
        let last = last.unwrap_or_else(|| panic!("sync {seed} did not end"));
        let got = end(sim, last.phase, last.message);
        let what = |e: &End| {
            (
                e.phase,
                e.world.clone(),
                e.created.clone(),
                e.deleted.clone(),
            )
        };
        assert_eq!(what(&got), what(&expected), "sync {seed}");
        assert!(
            got.created.values().all(|n| *n == 1),
            "sync {seed}: {:?}",
            got.created
        );
    }
    assert!(
        phases["Succeeded"] > 20 && phases["Failed"] > 20,
        "{phases:?}"
    );
}
