//! Random YAML documents and values: compares what sigs.k8s.io/yaml and ours parse and print.
//!
//! Main function: [`run`]. The generator is that of the committed baseline
//! (crates/gocompat/tests/baseline/generate/yaml); the same count and seed generate the same cases.
//! The test's code replays them.

use super::{
    Random, generated,
    shrink::{Oracle, shrunk},
};
use anyhow::bail;
use replay::Difference;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};

#[path = "../../../crates/gocompat/tests/yaml/replay.rs"]
mod replay;

pub fn run(root: &Path, args: &Random) -> anyhow::Result<()> {
    let text = generated(root, "yaml", args)?;
    let failures = text
        .lines()
        .filter(|line| line.starts_with("{\"d\"") && line.contains("\"e\":\""))
        .count();
    let (count, wrong) = replay::replay(&text);
    let differing = wrong.len();
    let mut classes: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    wrong.iter().for_each(|(case, difference)| {
        classes
            .entry(difference.class)
            .or_default()
            .push((case, difference))
    });
    println!(
        "{count} documents and values, {failures} documents fail in Go: {} agree, {differing} differ",
        count - differing
    );
    let mut oracle = Oracle::start(root, "yaml")?;
    for (class, cases) in &classes {
        println!("{class}: {}", cases.len());
        for (case, difference) in cases.iter().take(args.show) {
            let (text, difference) = smallest(case, difference, &mut oracle);
            println!(
                "{text:?}\n    Go {}\n  ours {}\n",
                difference.theirs, difference.ours
            );
        }
    }
    if differing > 0 {
        bail!("{differing} of {count} differ");
    }
    Ok(())
}

/// The smallest part of a case that still differs in the same way.
fn smallest(case: &Value, difference: &Difference, oracle: &mut Oracle) -> (String, Difference) {
    let document = case["d"].as_str();
    let mut told = difference.clone();
    let text = shrunk(
        &document.map_or_else(|| case["v"].to_string(), str::to_owned),
        |smaller| {
            let asked = match (document, serde_json::from_str::<Value>(smaller)) {
                (Some(_), _) => json!({"d": smaller, "s": case["s"] == true}),
                (None, Ok(value)) => json!({"v": value}),
                (None, Err(_)) => return false,
            };
            let found = oracle
                .answer(&asked)
                .and_then(|answer| replay::differs(&answer))
                .filter(|found| found.class == told.class);
            found.map(|found| told = found).is_some()
        },
    );
    (text, told)
}
