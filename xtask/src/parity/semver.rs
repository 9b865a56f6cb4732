//! Random versions and constraints: compares Masterminds/semver with ours.
//!
//! Main function: [`run`]. The generator is that of the committed baseline
//! (crates/gocompat/tests/baseline/generate/semver); the same count and seed generate the same
//! cases. The test's code replays them.

use super::{
    Random, generated,
    shrink::{Oracle, shrunk},
};
use anyhow::bail;
use serde_json::{Value, json};
use std::path::Path;

#[path = "../../../crates/gocompat/tests/semver/replay.rs"]
mod replay;

pub fn run(root: &Path, args: &Random) -> anyhow::Result<()> {
    let text = generated(root, "semver", args)?;
    let failures = text
        .lines()
        .filter(|line| line.contains("\"error\":"))
        .count();
    let (count, wrong) = replay::replay(&text);
    println!(
        "{count} constraints and versions, {failures} constraints fail in Go: {} agree, {} differ",
        count - wrong.len(),
        wrong.len()
    );
    let heading: Value = serde_json::from_str(text.lines().nth(1).unwrap_or_default())?;
    let mut oracle = Oracle::start(root, "semver")?;
    for (case, told) in wrong.iter().take(args.show) {
        println!(
            "{}\n",
            smallest(case, told, &heading["checked"], &mut oracle)
        );
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        bail!("{} of {count} differ", wrong.len())
    }
}

/// The smallest part of a case that still differs.
fn smallest(case: &Value, told: &str, checked: &Value, oracle: &mut Oracle) -> String {
    let (mut told, versions) = (told.to_owned(), replay::versions(checked));
    let Some((key, text)) = ["constraint", "version"]
        .iter()
        .find_map(|key| Some((key, case[*key].as_str()?)))
    else {
        return told;
    };
    shrunk(text, |smaller| {
        let answer = oracle.answer(&json!({*key: smaller, "checked": checked, "asked": case["asked"].as_u64().unwrap_or(0)}));
        let found = answer.and_then(|answer| replay::differs(&answer, &versions));
        found.map(|found| told = found).is_some()
    });
    told
}
