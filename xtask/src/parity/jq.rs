//! Random jq programs and inputs: results and error texts of gojq against ours.
//!
//! Main function: [`run`]. The generator is that of the committed baseline (crates/gocompat/tests/baseline/generate/jq); the same count and
//! seed make the same programs. Replaying is the code of the test.

use anyhow::bail;
use std::path::Path;

#[path = "../../../crates/gocompat/tests/jq/replay.rs"]
mod replay;

#[derive(clap::Args)]
pub struct Args {
    /// How many programs
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// Another seed, other programs
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// How many differences to print
    #[arg(long, default_value_t = 10)]
    show: usize,
}

pub fn run(root: &Path, args: &Args) -> anyhow::Result<()> {
    let text = super::generated(root, "jq", args.count, args.seed)?;
    let (count, wrong) = replay::replay(&text);
    println!("{count} programs end in gojq: {} agree, {} differ", count - wrong.len(), wrong.len());
    wrong.iter().take(args.show).for_each(|case| println!("{case}\n"));
    if wrong.is_empty() { Ok(()) } else { bail!("{} of {count} differ", wrong.len()) }
}
