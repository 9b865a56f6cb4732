//! The YAML reader and printer against what sigs.k8s.io/yaml answered (tests/baseline, made by tests/baseline/generate).

use serde_json::Value;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

fn baseline(text: &str) -> Vec<Value> {
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a baseline line is JSON")).collect()
}

/// Inputs where we differ on purpose or because the grammar of the parser underneath is YAML 1.2; each with its reason.
const KNOWN_PARSE: &[(&str, bool, &str)] = &[
    ("...\n", false, "a lone document end is an empty document"),
    ("...\n", true, "a lone document end is an empty document"),
    ("{\"a\":1,\"b\":\"\\/\"}\n", false, "the JSON escape \\/ is read"),
    ("{\"a\":1,\"b\":\"\\/\"}\n", true, "the JSON escape \\/ is read"),
    ("a: \u{2028}\n", false, "U+2028 is text, not a line break, since YAML 1.2"),
    ("a: \u{2028}\n", true, "U+2028 is text, not a line break, since YAML 1.2"),
];

#[test]
fn reads_as_sigs_yaml() {
    let mut wrong = Vec::new();
    for case in baseline(include_str!("baseline/yaml_parse.jsonl")) {
        let input = case["in"].as_str().expect("in");
        let duplicates = if case["strict"] == Value::Bool(true) { Duplicates::Refuse } else { Duplicates::LastWins };
        let got = yaml::parse_document(input, &Limits::default(), duplicates);
        let same = match (&got, case.get("out")) {
            (Ok(got), Some(want)) => equal(got, want),
            (Err(_), None) => true,
            _ => false,
        };
        let known = KNOWN_PARSE.iter().any(|(text, strict, _)| *text == input && *strict == (duplicates == Duplicates::Refuse));
        if same == known {
            wrong.push(format!("{input:?} strict={} known={known}\n   got {got:?}\n  want {case}", case["strict"]));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Numbers by value: Go prints 1e20 as digits, serde_json reads those as a float.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || ((x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64()),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y)),
        (Value::Object(x), Value::Object(y)) => x.len() == y.len() && x.iter().zip(y).all(|((k, x), (l, y))| k == l && equal(x, y)),
        _ => a == b,
    }
}

#[test]
fn prints_as_sigs_yaml() {
    let mut wrong = Vec::new();
    for case in baseline(include_str!("baseline/yaml_emit.jsonl")) {
        let Some(want) = case["out"].as_str() else { continue };
        let got = yaml::to_string(&case["in"]);
        if got != want {
            wrong.push(format!("{}\n   got {got:?}\n  want {want:?}", case["in"]));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn printed_text_reads_back() {
    for case in baseline(include_str!("baseline/yaml_emit.jsonl")) {
        let text = yaml::to_string(&case["in"]);
        if text.contains(['\u{2028}', '\u{2029}']) || text.starts_with("<<:") {
            continue; // a line break for the printer only; a key that merges when read
        }
        let back = yaml::parse_document(&text, &Limits::default(), Duplicates::Refuse);
        let back = back.unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert!(equal(&back, &case["in"]), "{text:?} reads back as {back}");
    }
}
