//! Seeded faults of notifications: a service that fails, and a controller that dies at a write. No
//! state that lasts is untold, and none is told twice but where the controller died between telling
//! it and remembering that, which a webhook cannot tell.
//!
//! Eight seeds, other ones for each commit; `TIPHYS_FAULTS=N` plays N, `all` plays 20,000,
//! `TIPHYS_SEED=S` begins there. `make test-seeds` plays all of them.

use super::{
    applicationset_seeds::parts,
    notifications::{Ground, Hook, PATIENCE},
    scripts::wire::{Moment, Wire},
};
use std::{ops::Range, sync::Arc, time::Duration};
use tiphys_testkit::Rng;
use tokio::time::{Instant, sleep};

const FEW: u64 = 8;
const STEPS: usize = 6;
const APPLICATIONS: u64 = 3;
/// Longer than a reconcile.
const LATER: Duration = Duration::from_millis(200);

/// Waits until a process runs: one that starts and one that dies each have a number.
async fn alive(wire: &Wire) {
    let began = Instant::now();
    while wire.process().is_multiple_of(2) {
        assert!(began.elapsed() < PATIENCE, "no process starts");
        sleep(Duration::from_millis(5)).await;
    }
}

/// One Application becomes degraded, and healthy again. `seen`: the messages so far. Returns what was
/// wrong.
async fn step(
    (ground, wire, hook): (&Ground, &Wire, &Hook),
    (app, rng): (&str, &mut Rng),
    seen: &mut usize,
) -> Vec<String> {
    let failures: Vec<u16> = (0..rng.below(3)).map(|_| 500).collect();
    alive(wire).await;
    let mut wrong = Vec::new();
    let before = (hook.got().len(), wire.process());
    if before.0 > *seen {
        wrong.push(format!(
            "told afterwards: {:?}",
            hook.got().split_off(*seen)
        ));
    }
    hook.say(&failures);
    let dies = rng.below(2) == 0;
    if dies {
        let at = wire.writes().len() + usize::try_from(rng.below(3)).expect("small");
        let moment = match rng.below(2) {
            0 => Moment::Before,
            _ => Moment::After,
        };
        wire.plan(|plan| plan.deaths.push((at, moment)));
    }
    ground.health(app, "Degraded").await;
    ground.wait_notified(app, true).await;
    let message = format!("{app} is Degraded");
    let told = hook.got().split_off(before.0);
    let refused = failures.len() - hook.say(&[]);
    alive(wire).await;
    let deaths = (wire.process() - before.1) / 2;
    ground.health(app, "Healthy").await;
    ground.wait_notified(app, false).await;
    let what = format!("{app} with {failures:?}, dies: {dies}, {deaths} deaths: {told:?}");
    *seen = before.0 + told.len();
    if told.iter().any(|text| *text != message) {
        wrong.push(format!("another message: {what}"));
    }
    let accepted = told.len() - refused;
    if accepted == 0 {
        wrong.push(format!("untold: {what}"));
    }
    if accepted > 1 + deaths {
        wrong.push(format!("told too often: {what}"));
    }
    wrong
}

/// Plays the seeds of one part, and returns what was wrong.
async fn play(part: Range<u64>) -> Vec<String> {
    let (wire, hook) = (Wire::default(), Hook::default());
    let ground = Arc::new(Ground::new().await);
    let url = hook.clone().start().await;
    ground.configure(&url, &[]).await;
    let _running = ground.start_behind(&wire);
    for number in 0..APPLICATIONS {
        ground.application(&format!("a{number}")).await;
    }
    let (began, mut wrong, mut seen) = (Instant::now(), Vec::new(), 0);
    for seed in part.clone() {
        let mut rng = Rng::new(seed);
        for _ in 0..STEPS {
            let app = format!("a{}", rng.below(APPLICATIONS));
            let found = step((&ground, &wire, &hook), (&app, &mut rng), &mut seen).await;
            let told = |what| format!("TIPHYS_SEED={seed} TIPHYS_FAULTS=1: {what}");
            wrong.extend(found.into_iter().map(told));
        }
        // What is told about states that have ended would come now.
        sleep(LATER).await;
        if hook.got().len() > seen {
            wrong.push(format!(
                "TIPHYS_SEED={seed} TIPHYS_FAULTS=1: told afterwards"
            ));
        }
    }
    println!(
        "seeds {part:?} in {:.0} s, {} failures: {:?}",
        began.elapsed().as_secs_f64(),
        wrong.len(),
        wire.faults()
    );
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_silence_nothing_and_repeat_nothing() {
    let mut wrong = Vec::new();
    for part in parts(FEW) {
        wrong.extend(play(part).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
