//! The families of faults, one test each.

use super::{FaultFamily, Reference, played::Played, run_family};
use crate::scripts::wire::{Fate, Moment, Plan};
use tiphys_testkit::Rng;

/// A number below `bound`, from the seed.
fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("it was one")
}

/// As without faults. A process that starts while settings or a plugin are broken cannot know what its
/// predecessor knew, so there nothing may be harmed.
fn after_restart(reference: &Reference, played: &Played) -> Vec<String> {
    if reference.script.changes_settings() {
        harmless(reference, played)
    } else {
        as_without(reference, played)
    }
}

/// The state after every step is the same, nothing else was deleted, no hook ran twice, and then
/// nothing more happens.
fn as_without(reference: &Reference, played: &Played) -> Vec<String> {
    let mut problems = played.differences(reference.played(), |_| true);
    problems.extend(harmless(reference, played));
    problems
}

/// The same is in the cluster after every step, nothing else was deleted, no hook ran twice, and then
/// nothing more happens. What the Application's status says may be older: what changes while no
/// process runs is compared when the comparison expires.
fn deployed_as_without(reference: &Reference, played: &Played) -> Vec<String> {
    let mut problems = played.differences(reference.played(), |title| title.ends_with("cluster"));
    problems.extend(harmless(reference, played));
    problems
}

/// Nothing else was deleted, no hook ran twice, and after the end nothing more happens.
fn harmless(reference: &Reference, played: &Played) -> Vec<String> {
    let before = reference.played();
    let panic = played.panic.iter();
    let mut problems: Vec<String> = panic
        .map(|panic| format!("it was not played to its end: {panic}"))
        .collect();
    let more: Vec<String> = played
        .deletions()
        .difference(&before.deletions())
        .cloned()
        .collect();
    if !more.is_empty() {
        problems.push(format!("deleted only with faults: {more:?}"));
    }
    // A hook of two phases is created twice even without faults.
    if played.repeated_hooks.len() > before.repeated_hooks.len() {
        problems.extend(
            played
                .repeated_hooks
                .iter()
                .map(|hook| format!("a hook ran twice: {hook}")),
        );
    }
    if played.restless.len() > before.restless.len() {
        problems.push(format!(
            "written after the end: {:?} instead of {:?}",
            played.restless, before.restless
        ));
    }
    problems
}

fn death(rng: &mut Rng, writes: usize) -> (usize, Moment) {
    (
        below(rng, writes),
        if rng.below(2) == 0 {
            Moment::Before
        } else {
            Moment::After
        },
    )
}

#[test]
fn death_before_and_after_each_write() {
    run_family(&FaultFamily {
        name: "one death",
        fits: |_| true,
        any: |r, rng| Plan {
            deaths: vec![death(rng, r.played().writes.len())],
            ..Plan::default()
        },
        all: Some(|r| {
            let points = (0..r.played().writes.len())
                .flat_map(|at| [(at, Moment::Before), (at, Moment::After)]);
            points
                .map(|point| Plan {
                    deaths: vec![point],
                    ..Plan::default()
                })
                .collect()
        }),
        judge: after_restart,
    });
}

#[test]
fn two_deaths() {
    run_family(&FaultFamily {
        name: "two deaths",
        // A process that starts with broken settings records another reason, and heals afterwards.
        fits: |script| !script.changes_settings(),
        any: |r, rng| {
            let writes = r.played().writes.len();
            let first = death(rng, writes);
            // Often during the recovery from the first.
            let second = if rng.below(2) == 0 {
                (first.0 + 1 + below(rng, 4), Moment::After)
            } else {
                death(rng, writes)
            };
            Plan {
                deaths: vec![first, second],
                ..Plan::default()
            }
        },
        all: None,
        judge: deployed_as_without,
    });
}

#[test]
fn news_that_come_late() {
    const LAGS: [usize; 3] = [1, 5, 50];
    run_family(&FaultFamily {
        name: "stale reads",
        fits: |_| true,
        any: |_, rng| Plan {
            lag: LAGS[below(rng, LAGS.len())],
            ..Plan::default()
        },
        all: Some(|_| {
            LAGS.into_iter()
                .map(|lag| Plan {
                    lag,
                    ..Plan::default()
                })
                .collect()
        }),
        judge: as_without,
    });
}

#[test]
fn a_new_process_that_first_sees_the_past() {
    run_family(&FaultFamily {
        name: "time travel",
        // With stale settings and projects the controller obeys those: a sync in a project that
        // does not exist yet is retried later.
        fits: |script| !script.changes_settings() && !script.changes_projects(),
        any: |r, rng| Plan {
            deaths: vec![death(rng, r.played().writes.len())],
            old_lists: Some("/"),
            lag: below(rng, 6),
            ..Plan::default()
        },
        all: None,
        // An API server answers these lists as of now; only one that was restored from a copy does
        // not. A decision that was taken meanwhile may differ, but must do no harm.
        judge: harmless,
    });
}

#[test]
fn events_that_are_lost_or_merged() {
    const FATES: [Fate; 3] = [Fate::Dropped, Fate::Merged, Fate::Broken];
    run_family(&FaultFamily {
        name: "events",
        fits: |_| true,
        any: |r, rng| Plan {
            event: Some((below(rng, r.played().events), FATES[below(rng, 3)])),
            ..Plan::default()
        },
        all: Some(|r| {
            let events = (0..r.played().events).flat_map(|at| FATES.map(|fate| (at, fate)));
            events
                .map(|event| Plan {
                    event: Some(event),
                    ..Plan::default()
                })
                .collect()
        }),
        judge: as_without,
    });
}
