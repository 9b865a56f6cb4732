//! Suite `sources`: what Argo CD's functions around sources, projects, sync windows and settings
//! answered.
//!
//! Main function: [`runner`]. A case names its function (`op`) and often has many questions; it
//! passes if all answers are the same. Where we differ on purpose, a rule next to the question
//! tells when and why, and the case is counted as intended if such rules explain all that differs.

mod generate;
mod projects;
mod revisions;
mod settings;
mod urls;
mod windows;

use super::{Difference, Runner, text};
use anyhow::Context;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The runner for the cases of a file; the first line contains texts that the others refer to.
pub fn runner(file: &str) -> anyhow::Result<Runner> {
    let first: Value = serde_json::from_str(file.lines().next().unwrap_or_default())
        .context("sources.jsonl line 1")?;
    let fixtures = first["fixtures"].as_object().cloned().unwrap_or_default();
    let urls = urls::known(file);
    Ok(Box::new(move |case| {
        let case = &whole(case, &fixtures);
        match text(case, "op").as_str() {
            "max_version" => revisions::max_version(case),
            "resolve" => revisions::resolve(case),
            "sha" => revisions::sha(case),
            "normalize" => urls::normalize(case),
            "same_url" => urls::same(case, &urls),
            "source_permitted" => projects::source(case),
            "destination_permitted" => projects::destination(case),
            "kind_permitted" => projects::kind(case),
            "app_namespace_permitted" => projects::app_namespace(case),
            "can_sync" => windows::can_sync(case),
            "window_matches" => windows::matches(case),
            "window_validate" => windows::validate(case),
            "generate_paths" => settings::generate_paths(case),
            "envsubst" => settings::substitute(case),
            "get_repository" => settings::repository(case),
            "resource_overrides" => settings::overrides(case),
            "resource_filter" => settings::filter(case),
            "generate" => generate::run(case),
            other => Err(format!("nothing can run `{other}` yet").into()),
        }
    }))
}

/// The case with the texts that it refers to.
fn whole(case: &Value, fixtures: &Map<String, Value>) -> Value {
    let mut case = case.clone();
    for value in case.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(fixture) = value.as_str().and_then(|name| fixtures.get(name)) {
            *value = fixture.clone();
        }
    }
    case
}

fn list<'a>(case: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    case[key].as_array().into_iter().flatten()
}

fn texts(case: &Value, key: &str) -> Vec<String> {
    let texts = list(case, key).filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Part of a case as one of our types.
fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|e| format!("{e} in {value}"))
}

/// All reasons for which an answer may differ.
const REASONS: [&str; 10] = [
    generate::NO_NAME,
    projects::DENIALS,
    revisions::SHORT,
    settings::REPORTED,
    settings::SEGMENTS,
    urls::FORM,
    urls::REFUSED,
    urls::SPELLING,
    urls::USER,
    windows::OFFSET,
];

/// The reasons that are not among those of the cases (ids, and all reasons of each).
pub fn unused(intended: &[(String, String)]) -> impl Iterator<Item = &'static str> {
    let is_used = move |reason: &&str| intended.iter().any(|(_, all)| all.contains(reason));
    REASONS.into_iter().filter(move |reason| !is_used(reason))
}

/// The answers to the questions of a case.
#[derive(Default)]
struct Answers {
    wrong: Vec<String>,
    intended: BTreeSet<&'static str>,
}

impl Answers {
    /// Notes our answer to a question. `reason` tells why it differs, if that is on purpose.
    fn note<T: PartialEq + std::fmt::Debug>(
        &mut self,
        question: impl std::fmt::Display,
        expected: T,
        got: T,
        reason: impl FnOnce() -> Option<&'static str>,
    ) {
        if expected == got {
            return;
        }
        match reason() {
            Some(reason) => drop(self.intended.insert(reason)),
            None => self
                .wrong
                .push(format!("{question}: expected {expected:?}, got {got:?}")),
        }
    }

    fn verdict(self) -> Result<(), Difference> {
        if !self.wrong.is_empty() {
            return Err(Difference::Wrong(self.wrong.join("; ")));
        }
        if self.intended.is_empty() {
            return Ok(());
        }
        let reasons: Vec<&str> = self.intended.into_iter().collect();
        Err(Difference::Intended(reasons.join("; ")))
    }
}

/// No difference is on purpose.
fn never() -> Option<&'static str> {
    None
}
