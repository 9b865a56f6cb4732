//! Suite `appset`: recorded ApplicationSets, what Argo CD's controller generated of them and did.
//!
//! Main function: [`runner`]. The cases are run by the code of the crates' own tests.

#[path = "../../../crates/appset/tests/conformance/suite/mod.rs"]
mod suite;

#[path = "../../../crates/sources/tests/hosts/recorded.rs"]
mod recorded;
#[path = "../../../crates/sources/tests/hosts/server.rs"]
mod server;

use super::{Difference, Runner};
use anyhow::Context;
use serde_json::Value;

/// Why our result differs, by the beginning of the id.
const INTENDED: [(&str, &str); 4] = [
    (
        "appset/pull-request/0000",
        "the recording rounds the number of a pull request",
    ),
    (
        "appset/pull-request/0010",
        "the recording rounds the number of a pull request",
    ),
    (
        "appset/unit-render_template/025",
        "the parameter is a function of Go, which no generator makes",
    ),
    (
        "appset/ignore-differences/0027",
        "our jq words its error otherwise",
    ),
];

/// The first line of the cases has what others refer to.
pub fn runner(text: &str) -> anyhow::Result<Runner> {
    let first = text.lines().next().unwrap_or_default();
    let fixtures: Value = serde_json::from_str(first).context("the fixtures are not JSON")?;
    let hosts = recorded::Recorded::new();
    Ok(Box::new(move |case| {
        let case = suite::expanded(case.clone(), &fixtures);
        let verdict = match recorded::is_one(&case) {
            true => hosts.run(&case),
            false => suite::run(&case),
        };
        verdict.map_err(|why| {
            let id = case["id"].as_str().unwrap_or_default();
            let known = INTENDED.iter().find(|(begin, _)| id.starts_with(begin));
            let known = known.map(|(_, reason)| *reason);
            match known.or_else(|| suite::on_purpose(id)) {
                Some(reason) => Difference::Intended(format!("{reason}: {why}")),
                None => Difference::Wrong(why),
            }
        })
    }))
}
