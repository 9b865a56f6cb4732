//! Suite `notify`: what Argo CD's notifications controller decides and sends.
//!
//! Main function: [`runner`].

#[path = "../../../crates/notify/tests/recorded/case.rs"]
mod case;
#[path = "../../../crates/notify/tests/recorded/compare.rs"]
mod compare;
#[path = "../../../crates/notify/tests/recorded/transport.rs"]
mod transport;

use super::{Difference, Runner};
use anyhow::Context;
use case::Case;
use serde_json::Value;

/// The runner with the fixtures of the suite's first line.
pub fn runner(lines: &str) -> anyhow::Result<Runner> {
    let first: Value = serde_json::from_str(lines.lines().next().unwrap_or_default())
        .context("the first line of notify.jsonl")?;
    let fixtures = first["fixtures"].clone();
    Ok(Box::new(move |line| {
        match compare::differs(&Case::new(line, &fixtures)) {
            None => Ok(()),
            Some(why) if line["expected"]["unstable"] == true => Err(Difference::Intended(
                format!("theirs depends on the order of a map: {why}"),
            )),
            Some(why) => Err(Difference::Wrong(why)),
        }
    }))
}
