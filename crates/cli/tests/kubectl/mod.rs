//! `tiphys apply` compared with upstream `kubectl apply`: output, exit codes, and the resulting
//! objects.
//!
//! The scenarios, with the output of kubectl 1.36 on a real API server, are in `scenarios/`; `make
//! test` replays them with our program on the embedded server. `make test-real` replays them on a
//! real one, and with `KUBECTL=<path of kubectl 1.36>` checks upstream kubectl too; with
//! `UPDATE_TRANSCRIPT=1` it records them again, on an API server without controllers.
//! `SCENARIO=<words>` selects scenarios.

mod run;
mod script;

use run::{Place, Program};
use script::Script;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

/// Concurrent scenarios.
const THREADS: usize = 3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/scenarios")
}

/// All scenarios, in order.
fn all_scripts() -> Vec<Script> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|e| e.expect("readable").path())
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|f| script::parse(f, &fs::read_to_string(f).expect("readable")))
        .collect()
}

fn scripts() -> Vec<Script> {
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    all_scripts()
        .into_iter()
        .filter(|s| s.name.contains(&wanted) || s.file.to_string_lossy().contains(&wanted))
        .collect()
}

/// Writes the results; scenarios that were not run stay unchanged.
fn record(found: &[Script]) {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for script in all_scripts() {
        let newest = found
            .iter()
            .find(|f| f.file == script.file && f.name == script.name)
            .unwrap_or(&script);
        files
            .entry(script.file.clone())
            .or_default()
            .push_str(&newest.text());
    }
    files
        .iter()
        .for_each(|(file, text)| fs::write(file, text).expect("writable"));
}

/// Runs all of them; returns the results in order.
fn run_all(scripts: &[Script], program: &Program, place: &Place) -> Vec<Script> {
    let waiting = Mutex::new((0..scripts.len()).rev().collect::<Vec<_>>());
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(at) = waiting.lock().expect("nobody panics with it").pop() else {
                        return;
                    };
                    let result = run::run(&scripts[at], at, program, place);
                    done.lock()
                        .expect("nobody panics with it")
                        .insert(at, result);
                }
            });
        }
    });
    done.into_inner()
        .expect("nobody panics with it")
        .into_values()
        .collect()
}

/// Compares the results with the committed ones; shows every difference.
#[track_caller]
fn compare(what: &str, expected: &[Script], found: &[Script], place: &Place) {
    assert_eq!(expected.len(), found.len(), "a scenario did not end");
    let mut differing = Vec::new();
    let mut excused = 0;
    for (expected, found) in expected.iter().zip(found) {
        let (expected_text, found_text) = (expected.compared(), found.compared());
        if expected_text == found_text {
            continue;
        }
        if place.is_embedded() && expected.embedded_differs {
            excused += 1;
            continue;
        }
        let diff = similar::TextDiff::from_lines(&expected_text, &found_text);
        println!(
            "=== {}\n{}",
            expected.name,
            diff.unified_diff().context_radius(2)
        );
        differing.push(expected.name.clone());
    }
    println!(
        "{what}: {} of {} scenarios equal, {excused} explained",
        expected.len() - differing.len() - excused,
        expected.len()
    );
    assert!(
        differing.is_empty(),
        "{what}: {} scenarios differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn our_apply_does_what_kubectl_did() {
    let scripts = scripts();
    assert!(
        scripts.len() >= 120 || std::env::var_os("SCENARIO").is_some(),
        "only {} scenarios",
        scripts.len()
    );
    let place = Place::embedded();
    compare(
        "tiphys on the embedded server",
        &scripts,
        &run_all(&scripts, &Program::tiphys(), &place),
        &place,
    );
}

#[test]
fn real_server_our_apply_does_what_kubectl_did() {
    let Some(place) = Place::real() else { return };
    let scripts = scripts();
    compare(
        "tiphys on the real server",
        &scripts,
        &run_all(&scripts, &Program::tiphys(), &place),
        &place,
    );
}

#[test]
fn real_server_kubectl_does_what_it_did() {
    let Some(kubectl) = Program::kubectl() else {
        return;
    };
    let Some(place) = Place::real() else { return };
    let scripts = scripts();
    let found = run_all(&scripts, &kubectl, &place);
    if std::env::var_os("UPDATE_TRANSCRIPT").is_some() {
        record(&found);
        return;
    }
    compare("kubectl on the real server", &scripts, &found, &place);
}

#[test]
fn kubectl_does_the_same_on_the_embedded_server() {
    let Some(kubectl) = Program::kubectl() else {
        return;
    };
    let (scripts, place) = (scripts(), Place::embedded());
    compare(
        "kubectl on the embedded server",
        &scripts,
        &run_all(&scripts, &kubectl, &place),
        &place,
    );
}
