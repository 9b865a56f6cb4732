//! Random templates and values: compares output and error texts of Go's text/template and ours.
//!
//! Main function: [`run`]. The generator is that of the committed baseline
//! (crates/gocompat/tests/baseline/generate/template); the same count and seed generate the same
//! templates. The test's code replays them.

use super::{Random, generated};
use anyhow::bail;
use std::{collections::BTreeMap, path::Path};

#[path = "../../../crates/gocompat/tests/template/replay.rs"]
mod replay;
#[path = "../../../crates/gocompat/tests/template/world.rs"]
pub mod world;

pub fn run(root: &Path, args: &Random) -> anyhow::Result<()> {
    let text = generated(root, "template", args)?;
    let failures = text
        .lines()
        .filter(|line| line.contains("\"e\":\""))
        .count();
    let (count, classes) = replay::replay(&text);
    report(count, failures, &classes, args.show)
}

fn report(
    count: usize,
    failures: usize,
    classes: &BTreeMap<&str, Vec<String>>,
    show: usize,
) -> anyhow::Result<()> {
    let differing: usize = classes.values().map(Vec::len).sum();
    println!(
        "{count} templates, {failures} of them fail in Go: {} agree, {differing} differ",
        count - differing
    );
    for (class, cases) in classes {
        println!("{class}: {}", cases.len());
        cases
            .iter()
            .take(show)
            .for_each(|case| println!("{case}\n"));
    }
    if differing > 0 {
        bail!("{differing} of {count} differ");
    }
    Ok(())
}
