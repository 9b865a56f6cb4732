//! Minimal objects for which each rule decides, from `examples/`. The tests check that every rule
//! and every kind has one.
//!
//! An example is a line `STATUS "message" {object}` (or `none {object}`) below `kind GROUP/KIND`,
//! with the result of Argo CD 3.6.

use super::{COMMON, FILES, Known, eval, syntax::Statement};
use serde_json::{Value, json};
use std::collections::BTreeSet;

macro_rules! example_files {
    ($($name:literal),* $(,)?) => {
        [$((concat!($name, ".examples"), include_str!(concat!("examples/", $name, ".examples")))),*]
    };
}

const EXAMPLES: &[(&str, &str)] = &families!(example_files);

struct Example {
    place: String,
    group: String,
    kind: String,
    /// Status and message; `none` for no health.
    wanted: String,
    object: Value,
}

fn all() -> Vec<Example> {
    EXAMPLES
        .iter()
        .flat_map(|(file, text)| read(file, text))
        .collect()
}

fn read(file: &str, text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let (mut group, mut kind) = ("", "");
    for (at, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", at + 1);
        if line.starts_with('#') {
            continue;
        } else if let Some(name) = line.strip_prefix("kind ") {
            (group, kind) = name
                .split_once('/')
                .unwrap_or_else(|| panic!("{place}: expected GROUP/KIND"));
        } else if let Some((status, rest)) = line.trim().split_once(' ') {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let mut next = || {
                values
                    .next()
                    .and_then(Result::ok)
                    .unwrap_or_else(|| panic!("{place}: not JSON"))
            };
            let wanted = if status == "none" {
                json!("none")
            } else {
                json!(format!("{status} {}", next().as_str().expect("a text")))
            };
            let mut object = next();
            object["apiVersion"] = format!("{group}/v1").into();
            object["kind"] = kind.into();
            let wanted = wanted.as_str().unwrap_or_default().to_owned();
            examples.push(Example {
                place,
                group: group.to_owned(),
                kind: kind.to_owned(),
                wanted,
                object,
            });
        }
    }
    examples
}

/// The verdicts of a block and of its nested blocks.
fn verdicts<'a>(block: &'a [Statement], into: &mut Vec<&'a Statement>) {
    for statement in block {
        match statement {
            Statement::Each { body, .. } | Statement::If { body, .. } => verdicts(body, into),
            Statement::Verdict { .. } => into.push(statement),
            Statement::Let(_) => {}
        }
    }
}

/// Shared rules are parsed once for each kind that uses them, with different numbers for names; one
/// example is enough for all of them.
fn as_written(rule: &Statement) -> String {
    let text = format!("{rule:?}");
    let mut parts = text.split("Name(");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "Name(" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn every_example_comes_out_and_every_rule_has_one() {
    let known = Known::read(FILES).unwrap_or_else(|error| panic!("{error} (with {})", COMMON.0));
    let mut used = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for example in all() {
        let Example {
            place,
            group,
            kind,
            wanted,
            object,
        } = example;
        let rules = known
            .rules_of(&group, &kind)
            .unwrap_or_else(|| panic!("{place}: {group}/{kind} has no rules"));
        let found = eval::decide(rules, object.as_object().expect("a map"));
        let got = found.as_ref().map_or("none".to_owned(), |(_, h)| {
            format!("{} {}", h.status.as_str(), h.message)
        });
        assert_eq!(got, wanted, "{place}");
        used.extend(found.map(|(rule, _)| as_written(rule)));
        kinds.insert((group, kind));
    }
    let mut rules = Vec::new();
    known
        .rules
        .iter()
        .for_each(|block| verdicts(block, &mut rules));
    rules.retain(|rule| !used.contains(&as_written(rule)));
    assert!(rules.is_empty(), "no examples for {rules:?}");
    for (kind, groups) in &known.exact {
        for (group, _) in groups {
            assert!(
                kinds.contains(&(group.clone(), kind.clone())),
                "no example of {group}/{kind}"
            );
        }
    }
}
