//! Random jq programs and inputs: compares results and error texts of gojq and ours.
//!
//! Main function: [`run`]. The generator is that of the committed baseline
//! (crates/gocompat/tests/baseline/generate/jq); the same count and seed generate the same
//! programs. The test's code replays them.

use super::{Random, generated};
use anyhow::bail;
use std::path::Path;

#[path = "../../../crates/gocompat/tests/jq/replay.rs"]
mod replay;

pub fn run(root: &Path, args: &Random) -> anyhow::Result<()> {
    let text = generated(root, "jq", args)?;
    let (count, wrong) = replay::replay(&text);
    println!(
        "{count} programs end in gojq: {} agree, {} differ",
        count - wrong.len(),
        wrong.len()
    );
    wrong
        .iter()
        .take(args.show)
        .for_each(|case| println!("{case}\n"));
    if wrong.is_empty() {
        Ok(())
    } else {
        bail!("{} of {count} differ", wrong.len())
    }
}
