//! Every scenario of the table has the same outcome on the embedded server as on a real control
//! plane.
//!
//! The real outcomes are recorded in `outcomes.txt`. With `KUBECONFIG` of a full control plane
//! (scripts/control-plane up), `real_outcomes` runs the scenarios there: it compares with the
//! record, or writes it if `TIPHYS_RECORD=1` is set.

use crate::simulation::world::World;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_testkit::{
    Api,
    scenario::{self, Cluster, Scenario, difference},
};

/// Scenarios that may come out otherwise, and why.
const KNOWN: &[(&str, &str)] = &[(
    "ingress",
    "the simulated cluster's ingress controller writes an Event, what stands for one on the real cluster does not",
)];

fn record() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/outcomes.txt")
}

/// The recorded outcomes by scenario.
fn recorded() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(record()).unwrap_or_default();
    let mut outcomes: BTreeMap<String, String> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            title.clone_into(&mut name);
            outcomes.entry(name.clone()).or_default();
        } else if let Some(outcome) = outcomes.get_mut(&name) {
            outcome.push_str(line);
            outcome.push('\n');
        }
    }
    outcomes
}

/// The scenarios whose name contains `TIPHYS_SCENARIO`, or all.
fn chosen() -> Vec<Scenario> {
    let wanted = std::env::var("TIPHYS_SCENARIO").unwrap_or_default();
    let all = scenario::all();
    all.into_iter()
        .filter(|s| s.name.contains(&wanted))
        .collect()
}

/// Runs those scenarios for which `which` holds, several at a time; puts the outcomes' texts in the
/// scenarios' order.
fn run_some(
    scenarios: &[Scenario],
    which: fn(&Scenario) -> bool,
    at_once: usize,
    outcomes: &Mutex<Vec<String>>,
    run: &(dyn Fn(usize, &Scenario) -> String + Sync),
) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(at) else {
                return;
            };
            if which(scenario) {
                let text = run(at, scenario);
                outcomes.lock().expect("no panic")[at] = text;
            }
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
}

/// What differs from the record, as a report; and how many scenarios agree.
fn compare(scenarios: &[Scenario], outcomes: &[String]) -> (String, usize) {
    let recorded = recorded();
    let (mut report, mut same) = (String::new(), 0);
    for (scenario, outcome) in scenarios.iter().zip(outcomes) {
        let want = recorded.get(scenario.name).map_or("", String::as_str);
        let lines = difference(want, outcome);
        if lines.is_empty() && !want.is_empty() {
            same += 1;
            continue;
        }
        let _ = writeln!(report, "== {}\n{}", scenario.name, lines.join("\n"));
    }
    (report, same)
}

#[test]
fn the_embedded_cluster_comes_to_the_recorded_outcomes() {
    let scenarios = chosen();
    let outcomes = Mutex::new(vec![String::new(); scenarios.len()]);
    run_some(&scenarios, |_| true, 4, &outcomes, &|_, scenario| {
        scenario::run(&World::start(), scenario, "s1").text()
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    let (report, same) = compare(&scenarios, &outcomes);
    println!(
        "{same} of {} scenarios have the real outcome",
        scenarios.len()
    );
    let unknown: Vec<&str> = report
        .lines()
        .filter_map(|l| l.strip_prefix("== "))
        .filter(|n| !KNOWN.iter().any(|(k, _)| k == n))
        .collect();
    assert!(
        unknown.is_empty(),
        "{} differ (-: real, +: embedded):\n{report}",
        unknown.len()
    );
}

struct Real(Api);

impl Cluster for Real {
    fn api(&self) -> &Api {
        &self.0
    }

    fn pass(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Runs again, one at a time and twice at most, what came out otherwise than recorded: real
/// controllers race one another (two writing one claim leave an Event, or a scheduler's queue
/// waits), and what differs each time is no race.
fn repeat_unlike(real: &Real, scenarios: &[Scenario], outcomes: &Mutex<Vec<String>>, run: &str) {
    let recorded = recorded();
    let unlike = |s: &Scenario, outcome: &str| {
        recorded
            .get(s.name)
            .is_some_and(|want| !difference(want, outcome).is_empty())
    };
    for round in ["t", "u"] {
        for (at, scenario) in scenarios.iter().enumerate() {
            let outcome = outcomes.lock().expect("no panic")[at].clone();
            if unlike(scenario, &outcome) {
                println!(
                    "again: {}\n{}",
                    scenario.name,
                    difference(&recorded[scenario.name], &outcome).join("\n")
                );
                outcomes.lock().expect("no panic")[at] =
                    scenario::run(real, scenario, &format!("{round}{at}{run}")).text();
            }
        }
    }
}

#[test]
#[ignore = "needs a full control plane: make test-real"]
fn real_outcomes() {
    let kubeconfig = std::env::var_os("KUBECONFIG").expect("KUBECONFIG names a full control plane");
    let real = Real(Api::kubeconfig(Path::new(&kubeconfig)).expect("a kubeconfig"));
    let scenarios = chosen();
    let run = format!("r{}", std::process::id() % 10_000);
    let outcomes = Mutex::new(vec![String::new(); scenarios.len()]);
    let one =
        |at, scenario: &Scenario| scenario::run(&real, scenario, &format!("s{at}{run}")).text();
    run_some(&scenarios, |s| !s.is_alone(), 8, &outcomes, &one);
    run_some(&scenarios, Scenario::is_alone, 1, &outcomes, &one);
    let record_anew = std::env::var_os("TIPHYS_RECORD").is_some();
    if !record_anew {
        repeat_unlike(&real, &scenarios, &outcomes, &run);
    }
    let outcomes = outcomes.into_inner().expect("no panic");
    if record_anew {
        let mut all = recorded();
        all.retain(|name, _| scenario::all().iter().any(|s| s.name == name));
        all.extend(
            scenarios
                .iter()
                .map(|s| s.name.to_owned())
                .zip(outcomes.clone()),
        );
        let text = all.iter().fold(String::new(), |text, (name, outcome)| {
            text + "== " + name + "\n" + outcome
        });
        std::fs::write(record(), text).expect("the record can be written");
    }
    let (report, same) = compare(&scenarios, &outcomes);
    println!(
        "{same} of {} scenarios have the recorded outcome",
        scenarios.len()
    );
    assert!(report.is_empty(), "(-: recorded, +: now):\n{report}");
}
