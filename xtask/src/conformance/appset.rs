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

/// Why our result differs, by the id.
const INTENDED: [(&str, &str); 9] = [
    ("appset/pull-request/0000", ROUNDED),
    ("appset/pull-request/0010", ROUNDED),
    ("appset/unit-render_template/0250", OF_GO),
    ("appset/unit-render_template/0251", OF_GO),
    ("appset/unit-render_template/0253", OF_GO),
    ("appset/unit-render_template/0254", OF_GO),
    ("appset/unit-render_template/0255", OF_GO),
    ("appset/unit-render_template/0257", OF_GO),
    ("appset/ignore-differences/0027", WORDS),
];
const ROUNDED: &str = "the recording rounds the number of a pull request";
const OF_GO: &str = "the parameter is a function of Go, which no generator makes";
const WORDS: &str = "our jq words its error otherwise";

/// Why a case may differ.
pub fn excuse(id: &str) -> Option<&'static str> {
    let known = INTENDED.iter().find(|(known, _)| *known == id);
    let known = known.map(|(_, reason)| *reason);
    known.or_else(|| suite::on_purpose(id))
}

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
        let id = case["id"].as_str().unwrap_or_default();
        verdict.map_err(|why| match excuse(id) {
            Some(reason) => Difference::Intended(format!("{reason}: {why}")),
            None => Difference::Wrong(why),
        })
    }))
}
