//! What argocd-rbac-cm says.
//!
//! Main type: [`Settings`].

use crate::policy::MatchMode;
use std::collections::BTreeMap;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// The settings besides the policy's errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub policy: String,
    /// The role of everybody; empty: none.
    pub default_role: String,
    pub mode: MatchMode,
    /// The claims that have a caller's groups.
    pub scopes: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: String::new(),
            default_role: String::new(),
            mode: MatchMode::Glob,
            scopes: vec!["groups".to_owned()],
        }
    }
}

/// `scopes` is not a list of texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scopes must be a list of claims, such as [groups, email]: {0}")]
pub struct SettingsFault(String);

impl Settings {
    /// # Errors
    /// `scopes` cannot be read.
    pub fn new(data: &BTreeMap<String, String>) -> Result<Self, SettingsFault> {
        let text = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
        Ok(Self {
            policy: policy_text(data),
            default_role: text("policy.default").to_owned(),
            mode: match text("policy.matchMode") {
                "regex" => MatchMode::Regex,
                _ => MatchMode::Glob,
            },
            scopes: scopes(text("scopes"))?,
        })
    }
}

/// `policy.csv`, and behind it the values of all `policy.*.csv` in the order of their keys.
pub fn policy_text(data: &BTreeMap<String, String>) -> String {
    let texts: Vec<&str> = policies(data).map(|(_, text)| text).collect();
    texts.join("\n")
}

/// The key, and the line of its value, of a line of [`policy_text`]; all from 1.
pub fn place(data: &BTreeMap<String, String>, number: usize) -> (&str, usize) {
    let mut above = 0;
    for (key, text) in policies(data) {
        let lines = text.split('\n').count();
        if number <= above + lines {
            return (key, number - above);
        }
        above += lines;
    }
    (FIRST, number)
}

const FIRST: &str = "policy.csv";

fn policies(data: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let first = data.get(FIRST).map(String::as_str).unwrap_or_default();
    let others = data
        .iter()
        .filter(|(key, _)| *key != FIRST && key.starts_with("policy.") && key.ends_with(".csv"));
    std::iter::once((FIRST, first)).chain(others.map(|(key, text)| (key.as_str(), text.as_str())))
}

fn scopes(text: &str) -> Result<Vec<String>, SettingsFault> {
    if text.is_empty() {
        return Ok(Settings::default().scopes);
    }
    let fault = |why: &str| SettingsFault(why.to_owned());
    let value = yaml::parse_document(text, &Limits::default(), Duplicates::LastWins)
        .map_err(|e| SettingsFault(e.to_string()))?;
    match value {
        serde_json::Value::Null => Ok(Vec::new()),
        serde_json::Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                serde_json::Value::String(scope) => Ok(scope),
                serde_json::Value::Number(number) => Ok(number.to_string()),
                serde_json::Value::Bool(flag) => Ok(flag.to_string()),
                serde_json::Value::Null => Ok(String::new()),
                _ => Err(fault("an entry is not a text")),
            })
            .collect(),
        _ => Err(fault("it is not a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_joined_text_has_its_key() {
        let data = [
            ("policy.b.csv", "g, c, d\ng, e, f"),
            ("policy.csv", "g, a, b\n"),
            ("policy.default", ""),
            ("policy.a.csv", "# none"),
        ];
        let data = data.map(|(key, text)| (key.to_owned(), text.to_owned()));
        let data = BTreeMap::from(data);
        let text = policy_text(&data);
        let lines: Vec<_> = text.split('\n').enumerate().collect();
        let found: Vec<_> = lines
            .iter()
            .map(|(index, line)| (*line, place(&data, index + 1)))
            .collect();
        assert_eq!(
            found,
            [
                ("g, a, b", ("policy.csv", 1)),
                ("", ("policy.csv", 2)),
                ("# none", ("policy.a.csv", 1)),
                ("g, c, d", ("policy.b.csv", 1)),
                ("g, e, f", ("policy.b.csv", 2)),
            ]
        );
    }
}
