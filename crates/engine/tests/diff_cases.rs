//! Differences, against what Argo CD's own engine gave for the same objects.

mod common;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tiphys_apimachinery::Object;
use tiphys_engine::{
    diff::{self, Options, steps},
    types::{Diff, IgnoreStatus},
};

const PLAIN: &str = "*diff.noopNormalizer";

fn object(value: &Value) -> Option<Object> {
    if value.is_null() { None } else { Some(Object::from_value(value.clone()).expect("an object")) }
}

fn options(case: &Value) -> Options<'static> {
    let ignore_aggregated_roles = case["options"]["ignore_aggregated_roles"].as_bool().unwrap_or(false);
    Options { ignore: &[], ignore_status: IgnoreStatus::None, ignore_aggregated_roles, server_side_apply: false }
}

fn as_json(diff: &Diff) -> Value {
    json!({"modified": diff.modified, "normalized_live": *diff.normalized_live, "predicted_live": *diff.predicted_live})
}

/// Runs a suite; cases with a normalizer in Go code are left out.
fn suite(file: &str, missing: usize, run: impl Fn(&Value) -> Value) {
    let Some(cases) = common::cases(&format!("diff/{file}")) else { return };
    let plain = |case: &&Value| case["options"]["normalizer"].as_str().is_none_or(|n| n == PLAIN);
    let cases: Vec<&Value> = cases.iter().filter(plain).collect();
    let mut failures = Vec::new();
    for case in &cases {
        let got = run(case);
        if got != case["expected"] {
            failures.push(format!("{}: {}", case["id"], first_difference(&case["expected"], &got, "")));
        }
    }
    common::report(file, &failures, cases.len(), cases.len() - missing);
}

/// Where two documents differ first, for a message that can be read.
fn first_difference(expected: &Value, got: &Value, path: &str) -> String {
    match (expected, got) {
        (Value::Object(e), Value::Object(g)) => {
            let keys: BTreeSet<&String> = e.keys().chain(g.keys()).collect();
            let differing = keys.into_iter().find(|k| e.get(*k) != g.get(*k)).expect("they differ");
            let or_absent = |m: &serde_json::Map<String, Value>| m.get(differing).cloned().unwrap_or(json!("<absent>"));
            first_difference(&or_absent(e), &or_absent(g), &format!("{path}/{differing}"))
        }
        (Value::Array(e), Value::Array(g)) if e.len() == g.len() => {
            let index = e.iter().zip(g).position(|(e, g)| e != g).expect("they differ");
            first_difference(&e[index], &g[index], &format!("{path}/{index}"))
        }
        _ => format!("at {path}: expected {expected}, got {got}"),
    }
}

#[test]
fn differences() {
    // Missing: the ports of an Endpoints object, which Go orders by a hash of its own memory layout.
    suite("diff.jsonl", 1, |case| as_json(&diff::diff(object(&case["target"]).as_ref(), object(&case["live"]).as_ref(), &options(case))));
}

#[test]
fn two_way() {
    suite("two_way.jsonl", 0, |case| as_json(&steps::two_way(object(&case["target"]).as_ref(), object(&case["live"]).as_ref())));
}

#[test]
fn three_way() {
    suite("three_way.jsonl", 0, |case| {
        let [original, target, live] = ["orig", "target", "live"].map(|side| object(&case[side]).expect("three sides"));
        as_json(&diff::three_way(&original, &target, &live).unwrap_or_default())
    });
}

#[test]
fn structured_merge() {
    suite("structured_merge.jsonl", 0, |case| {
        let [target, live] = ["target", "live"].map(|side| object(&case[side]).expect("two sides"));
        as_json(&diff::structured(&target, &live, case["manager"].as_str().unwrap_or_default()).unwrap_or_default())
    });
}

#[test]
fn normalize() {
    // Missing: the same Endpoints object.
    suite("normalize.jsonl", 1, |case| {
        let mut input = object(&case["input"]).expect("an object");
        steps::normalize(&mut input, &options(case));
        input.into_value()
    });
}

#[test]
fn normalize_secret() {
    suite("normalize_secret.jsonl", 0, |case| {
        let mut input = object(&case["input"]).expect("an object");
        steps::normalize_secret(&mut input);
        input.into_value()
    });
}

#[test]
fn remarshal() {
    suite("remarshal.jsonl", 0, |case| steps::remarshal(&object(&case["input"]).expect("an object")).into_value());
}

#[test]
fn secrets_are_masked() {
    suite("hide_secret.jsonl", 0, |case| {
        let hidden = match &case["hide_annotations"] {
            Value::Object(map) => map.keys().cloned().collect(),
            _ => BTreeSet::new(),
        };
        let (target, live) = diff::mask_secret(object(&case["target"]).as_ref(), object(&case["live"]).as_ref(), &hidden);
        json!({"target": target.map(Object::into_value), "live": live.map(Object::into_value)})
    });
}
