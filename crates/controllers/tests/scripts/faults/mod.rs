//! The scripts with faults injected on the wire: whatever happens to the controller, each step ends
//! as it does without faults.
//!
//! Tables are played completely. Of unbounded families `make test` plays a few cases, different
//! ones for each commit. `TIPHYS_FAULTS=200` plays that many of each, `TIPHYS_FAULTS=all` every one
//! that can be numbered (each write, each event). `TIPHYS_SEED` is the first case's seed, and a
//! failure names the seed that repeats it alone. `TIPHYS_SCRIPT=part` selects scripts by name,
//! `TIPHYS_CASE=part` cases of tables. Main types: [`Reference`], the result of a script without
//! faults, and [`FaultFamily`].

mod blast;
mod delete;
mod dry_runs;
mod errors;
mod explained;
mod families;
mod groups;
mod loops;
mod played;
mod prune;
mod retries;
mod scopes;
mod stage;
mod too_large;

use crate::scripts::{
    chosen,
    script::Script,
    wire::{Plan, Write},
};
use played::Played;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use tiphys_testkit::{Rng, first_seed};

/// Cases of each test by default.
const FEW: usize = 4;
/// Cases of an unbounded family with `TIPHYS_FAULTS=all`.
const MANY: usize = 1000;

/// A script and its result without faults.
pub struct Reference {
    pub script: Script,
    played: OnceLock<Played>,
}

impl Reference {
    pub fn played(&self) -> &Played {
        self.played
            .get_or_init(|| Played::of(&self.script, Plan::default()))
    }
}

/// A family of faults.
pub struct FaultFamily {
    pub name: &'static str,
    /// The scripts that it can be applied to.
    pub fits: fn(&Script) -> bool,
    /// The fault for a seed.
    pub any: fn(&Reference, &mut Rng) -> Plan,
    /// All faults, if they can be numbered.
    pub all: Option<fn(&Reference) -> Vec<Plan>>,
    /// What is wrong with the result.
    pub judge: fn(&Reference, &Played) -> Vec<String>,
}

/// Scripts that can be played with faults. Excluded are those in which a panic is timed to one
/// reconcile, and those in which Git is unavailable, because only one process knows its previous
/// manifests.
fn scripts() -> Vec<Reference> {
    let scripts = chosen()
        .into_iter()
        .filter(|script| !script.is_for_embedded_only() && !script.loses_git());
    scripts
        .map(|script| Reference {
            script,
            played: OnceLock::new(),
        })
        .collect()
}

/// How many cases are requested, if not all.
fn asked() -> Option<usize> {
    match std::env::var("TIPHYS_FAULTS") {
        Err(_) => Some(FEW),
        Ok(all) if all == "all" => None,
        Ok(number) => Some(
            number
                .parse()
                .unwrap_or_else(|_| panic!("TIPHYS_FAULTS={number} is not a number")),
        ),
    }
}

/// Processes the items concurrently; returns what was wrong, in no particular order.
fn side_by_side<T: Sync>(items: &[T], work: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let lane = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let problems = work(item);
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            wrong.lock().expect("no panic").extend(problems);
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(lane))));
    wrong.into_inner().expect("no panic")
}

/// The cases of a table: all, or those with `TIPHYS_CASE` in their names.
fn cases<T>(table: &[T], name: fn(&T) -> &str) -> Vec<&T> {
    let part = std::env::var("TIPHYS_CASE").unwrap_or_default();
    table
        .iter()
        .filter(|case| name(case).contains(&part))
        .collect()
}

/// A few of the cases, different ones for each commit, unless more or a specific one is requested.
fn some<T>(cases: Vec<T>, few: usize) -> Vec<T> {
    if std::env::var_os("TIPHYS_CASE").is_some() {
        return cases;
    }
    let (mut rest, mut rng) = (cases, Rng::new(first_seed()));
    let few = asked().map_or(usize::MAX, |asked| if asked == FEW { few } else { asked });
    std::iter::from_fn(|| {
        (!rest.is_empty()).then(|| {
            rest.swap_remove(usize::try_from(rng.below(rest.len() as u64)).expect("small"))
        })
    })
    .take(few)
    .collect()
}

/// Injects the faults into the scripts; panics if a result differs.
fn run_family(fault: &FaultFamily) {
    let (references, began, seed) = (scripts(), Instant::now(), first_seed());
    assert!(!references.is_empty(), "no script of that name");
    let (done, totals) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let judge = |reference: &Reference, plan: Plan, seed: Option<u64>| {
        if !(fault.fits)(&reference.script) {
            return None;
        }
        let played = Played::of(&reference.script, plan.clone());
        done.fetch_add(1, Ordering::Relaxed);
        played
            .faults
            .iter()
            .for_each(|(what, n)| *totals.lock().expect("no panic").entry(*what).or_insert(0) += n);
        let problems = (fault.judge)(reference, &played);
        let again = seed.map_or(String::new(), |seed| {
            format!("TIPHYS_SEED={seed} TIPHYS_FAULTS=1: ")
        });
        let since = |at: tokio::time::Instant| {
            played
                .writes
                .first()
                .map_or(0.0, |first| at.duration_since(first.at).as_secs_f64())
        };
        let line = |(n, w): (usize, &Write)| {
            format!("  {n} after {:.2} s: {} {}", since(w.at), w.what, w.code)
        };
        let writes = || {
            played
                .writes
                .iter()
                .enumerate()
                .map(line)
                .collect::<Vec<_>>()
                .join("\n")
        };
        (!problems.is_empty()).then(|| {
            format!(
                "== {again}{} with {plan:?}\n{}\n{}",
                reference.script.name,
                problems.join("\n"),
                writes()
            )
        })
    };
    let wrong = match (asked(), fault.all) {
        (None, Some(all)) => side_by_side(&references, |r| {
            all(r)
                .into_iter()
                .filter_map(|plan| judge(r, plan, None))
                .collect()
        }),
        (number, _) => {
            let seeds: Vec<u64> = (seed..).take(number.unwrap_or(MANY)).collect();
            side_by_side(&seeds, |seed| {
                let mut rng = Rng::new(*seed);
                let reference = &references
                    [usize::try_from(rng.below(references.len() as u64)).expect("small")];
                judge(reference, (fault.any)(reference, &mut rng), Some(*seed))
                    .into_iter()
                    .collect()
            })
        }
    };
    let totals: Vec<String> = totals
        .into_inner()
        .expect("no panic")
        .iter()
        .map(|(what, n)| format!("{what} {n}"))
        .collect();
    let done = done.into_inner();
    println!(
        "{}: {done} cases from seed {seed} in {:.0} s: {}",
        fault.name,
        began.elapsed().as_secs_f64(),
        totals.join(", ")
    );
    assert!(
        wrong.is_empty(),
        "{} of {done} came out otherwise:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
