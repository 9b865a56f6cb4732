//! Suite `expr`: programs that expr-lang has run.
//!
//! Main function: [`runner`].

#[path = "../../../crates/gocompat/tests/expr/replay.rs"]
mod replay;

use super::{Runner, strict};
use anyhow::Context;
use serde_json::Value;

/// The runner with the environment of the suite's first line.
pub fn runner(lines: &str) -> anyhow::Result<Runner> {
    let first: Value = serde_json::from_str(lines.lines().next().unwrap_or_default())
        .context("the first line of expr.jsonl")?;
    let env = replay::environment(&first);
    Ok(strict(move |case| {
        replay::differs(case, &env).map_or(Ok(()), Err)
    }))
}
