//! Compares the results of Masterminds/semver for versions and constraints, one JSON line per case,
//! with ours.
//!
//! Main functions: [`replay`] and, for one case, [`differs`].

use serde_json::Value;
use tiphys_gocompat::semver::{Constraints, SemverError, Version};

/// The number of cases, and those that differ, with the difference.
pub fn replay(lines: &str) -> (usize, Vec<(Value, String)>) {
    let cases: Vec<Value> = lines
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a baseline line is JSON"))
        .collect();
    let checked = versions(&cases[0]["checked"]);
    let wrong = cases
        .iter()
        .filter_map(|case| Some((case.clone(), differs(case, &checked)?)))
        .collect();
    (cases.len(), wrong)
}

/// The versions of a list.
pub fn versions(texts: &Value) -> Vec<Version> {
    texts
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| Version::parse(text.as_str().expect("a text")).expect("a version"))
        .collect()
}

/// Both results for a case, if they differ.
pub fn differs(case: &Value, checked: &[Version]) -> Option<String> {
    let (theirs, ours) = if let Some(text) = case["version"].as_str() {
        let said = |parsed: Result<Version, SemverError>| {
            parsed.map_or_else(|e| format!("!{e}"), |version| version.to_string())
        };
        (
            format!("{} {}", case["loose"], case["strict"]),
            format!(
                "{} {}",
                Value::from(said(Version::parse(text))),
                Value::from(said(Version::parse_strict(text)))
            ),
        )
    } else if let Some(text) = case["compare"].as_str() {
        let version = Version::parse(text).ok()?;
        let order = checked
            .iter()
            .map(|other| ['<', '=', '>'][(version.precedence(other) as i8 + 1) as usize]);
        (
            case["order"].to_string(),
            Value::from(order.collect::<String>()).to_string(),
        )
    } else if case["sorted"].is_array() {
        let mut ours = checked.to_vec();
        ours.sort_by(Version::precedence);
        (
            case["sorted"].to_string(),
            Value::from(ours.iter().map(Version::original).collect::<Vec<_>>()).to_string(),
        )
    } else {
        let theirs = case.get("error").map_or_else(
            || format!("{} {} {}", case["string"], case["checks"], case["why"]),
            Value::to_string,
        );
        (theirs, constraint(case, checked)?)
    };
    (theirs != ours).then(|| format!("{case}\n    Go {theirs}\n  ours {ours}"))
}

/// Our result for a constraint; None if the case has none.
fn constraint(case: &Value, checked: &[Version]) -> Option<String> {
    let constraints = match Constraints::parse(case["constraint"].as_str()?) {
        Ok(constraints) => constraints,
        Err(e) => return Some(Value::from(e.to_string()).to_string()),
    };
    let checks: String = checked
        .iter()
        .map(|version| if constraints.check(version) { '1' } else { '0' })
        .collect();
    let asked = checked.get(usize::try_from(case["asked"].as_u64()?).ok()?)?;
    let why = Value::from(constraints.validate(asked).err().unwrap_or_default());
    Some(format!(
        "{} {} {why}",
        Value::from(constraints.to_string()),
        Value::from(checks)
    ))
}
