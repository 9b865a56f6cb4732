//! The YAML parser and printer compared with the results of sigs.k8s.io/yaml (tests/baseline, made
//! by tests/baseline/generate).

use serde_json::Value;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

fn baseline(text: &str) -> Vec<Value> {
    text.lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a baseline line is JSON"))
        .collect()
}

#[test]
fn reads_as_sigs_yaml() {
    let mut wrong = Vec::new();
    for case in baseline(include_str!("baseline/yaml_parse.jsonl")) {
        let input = case["in"].as_str().expect("in");
        let duplicates = if case["strict"] == Value::Bool(true) {
            Duplicates::Refuse
        } else {
            Duplicates::LastWins
        };
        let got = yaml::parse_document(input, &Limits::default(), duplicates);
        let same = match (&got, case.get("out")) {
            (Ok(got), Some(want)) => equal(got, want),
            (Err(_), None) => true,
            _ => false,
        };
        if !same {
            wrong.push(format!(
                "{input:?} strict={}\n   got {got:?}\n  want {case}",
                case["strict"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Compares numbers by value: Go prints 1e20 as digits, which serde_json parses as a float.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || ((x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64())
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|((k, x), (l, y))| k == l && equal(x, y))
        }
        _ => a == b,
    }
}

#[test]
fn prints_as_sigs_yaml() {
    let mut wrong = Vec::new();
    for case in baseline(include_str!("baseline/yaml_emit.jsonl")) {
        let Some(want) = case["out"].as_str() else {
            continue;
        };
        let got = yaml::to_string(&case["in"]);
        if got != want {
            wrong.push(format!("{}\n   got {got:?}\n  want {want:?}", case["in"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn printed_text_reads_back() {
    for case in baseline(include_str!("baseline/yaml_emit.jsonl")) {
        let text = yaml::to_string(&case["in"]);
        if text.starts_with("<<:") {
            continue; // a key that merges when read
        }
        let back = yaml::parse_document(&text, &Limits::default(), Duplicates::Refuse);
        let back = back.unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert!(equal(&back, &case["in"]), "{text:?} reads back as {back}");
    }
}
