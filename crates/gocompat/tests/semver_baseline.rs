//! Versions and constraints against what Masterminds/semver answered (tests/baseline, made by tests/baseline/generate/helm).

use serde_json::Value;
use std::collections::BTreeMap;
use tiphys_gocompat::semver::{Constraints, SemverError, Version};

fn lines() -> Vec<Value> {
    let text = include_str!("baseline/semver.jsonl");
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a baseline line is JSON")).collect()
}

fn checked(lines: &[Value]) -> Vec<Version> {
    let texts = lines[0]["checked"].as_array().expect("checked");
    texts.iter().map(|t| Version::parse(t.as_str().expect("text")).expect("a version")).collect()
}

fn shown(parsed: Result<Version, SemverError>) -> String {
    parsed.map_or_else(|e| format!("!{e}"), |v| v.to_string())
}

#[test]
fn versions_are_read_as_go_does() {
    let mut seen = 0;
    for line in lines() {
        let Some(text) = line["version"].as_str() else { continue };
        assert_eq!(shown(Version::parse(text)), line["loose"], "{text:?}");
        assert_eq!(shown(Version::parse_strict(text)), line["strict"], "{text:?}");
        seen += 1;
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn versions_order_as_go_does() {
    let lines = lines();
    let versions = checked(&lines);
    for line in &lines {
        if let Some(text) = line["compare"].as_str() {
            let version = Version::parse(text).expect("a version");
            let order: String = versions.iter().map(|o| ['<', '=', '>'][(version.precedence(o) as i8 + 1) as usize]).collect();
            assert_eq!(order, line["order"], "{text}");
        }
        if let Some(sorted) = line["sorted"].as_array() {
            let mut ours = versions.clone();
            ours.sort_by(Version::precedence);
            assert_eq!(
                ours.iter().map(Version::original).collect::<Vec<_>>(),
                sorted.iter().map(|v| v.as_str().expect("text")).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn constraints_hold_as_in_go() {
    let lines = lines();
    let versions = checked(&lines);
    let mut pairs = 0;
    for line in &lines {
        let Some(text) = line["constraint"].as_str() else { continue };
        let constraints = match (Constraints::parse(text), line["error"].as_str()) {
            (Err(e), Some(want)) => {
                assert_eq!(e.to_string(), want, "{text:?}");
                continue;
            }
            (Ok(constraints), None) => constraints,
            (got, _) => panic!("{text:?}: {got:?}, want {line}"),
        };
        assert_eq!(constraints.to_string(), line["string"], "{text:?}");
        let checks: String = versions.iter().map(|v| if constraints.check(v) { '1' } else { '0' }).collect();
        assert_eq!(checks, line["checks"], "{text:?}");
        pairs += versions.len();
        let why: BTreeMap<String, Vec<String>> = serde_json::from_value(line["why"].clone()).expect("why");
        for (version, reasons) in why {
            let version = Version::parse(&version).expect("a version");
            assert_eq!(constraints.validate(&version).err().unwrap_or_default(), reasons, "{text:?} on {version}");
        }
    }
    assert!(pairs > 10_000, "{pairs}");
}
