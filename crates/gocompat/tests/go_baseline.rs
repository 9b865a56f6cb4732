//! Globs and durations compared with the results of the Go libraries (tests/baseline, made by
//! tests/baseline/generate).

use serde_json::Value;
use tiphys_gocompat::{duration, glob::Glob};

fn baseline(text: &str) -> Vec<Value> {
    text.lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a baseline line is JSON"))
        .collect()
}

/// Bugs of gobwas v0.2.3 that we do not reproduce: pattern, text (None: any), what it does.
const KNOWN: &[(&str, Option<&str>, &str)] = &[
    ("?", Some(""), "one character also matches no character"),
    (
        "[!abc]",
        Some(""),
        "a negated class also matches no character",
    ),
    (
        "[!a-c]",
        Some(""),
        "a negated class also matches no character",
    ),
    (
        "{*,a}b",
        None,
        "an alternative that starts with * hides the others",
    ),
    (
        "?本",
        Some("日本"),
        "? in front of a character of several bytes",
    ),
];

#[test]
fn globs_match_as_gobwas() {
    let mut wrong = Vec::new();
    for case in baseline(include_str!("baseline/glob.jsonl")) {
        let pattern = case["pattern"].as_str().expect("pattern");
        let separators: Vec<char> = case["separators"]
            .as_str()
            .expect("separators")
            .chars()
            .collect();
        match (Glob::new(pattern, &separators), case["matches"].as_object()) {
            (Ok(glob), Some(matches)) => {
                for (text, want) in matches {
                    let known = KNOWN
                        .iter()
                        .any(|(p, on, _)| *p == pattern && on.is_none_or(|on| on == text));
                    if glob.matches(text) != *want && !known {
                        wrong.push(format!(
                            "{pattern:?} {separators:?} on {text:?}: want {want}"
                        ));
                    }
                }
            }
            (Err(_), None) => {}
            (got, _) => wrong.push(format!("{pattern:?}: {got:?}, want {}", case["error"])),
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
fn hostile_globs_end_quickly() {
    let pattern = "{*a,*b}".repeat(200);
    let glob = Glob::new(&pattern, &[]).expect("a long pattern");
    assert!(!glob.matches(&format!("{}c", "ab".repeat(2000))));
    assert!(Glob::new(&"{".repeat(1000), &[]).is_err());
    assert!(Glob::new(&"a".repeat(20_000), &[]).is_err());
}

#[test]
fn durations_as_go() {
    for case in baseline(include_str!("baseline/duration.jsonl")) {
        let text = case["in"].as_str().expect("in");
        match (duration::parse(text), case["nanos"].as_str()) {
            (Ok(nanos), Some(want)) => {
                assert_eq!(nanos.to_string(), want, "{text:?}");
                assert_eq!(
                    duration::to_string(nanos),
                    case["out"].as_str().expect("out"),
                    "{text:?}"
                );
            }
            (Err(e), None) => assert_eq!(
                e.to_string(),
                case["error"].as_str().expect("error"),
                "{text:?}"
            ),
            (got, _) => panic!("{text:?}: {got:?}, want {case}"),
        }
    }
}
