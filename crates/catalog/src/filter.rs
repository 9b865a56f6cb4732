//! The jq rule that decides which charts of a repository are kept.
//!
//! Main type: [`Filter`]. The rule is run on the chart's document; its first result must be a
//! boolean.

use crate::{CatalogError, fields, model::Chart};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tiphys_gocompat::jq::{Limits, Program};

/// `filterRule` of an AppRepository. Without a program, everything is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    pub jq: String,
    /// Text by variable, the names with their `$`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

impl Filter {
    /// From the JSON of a `filterRule`; empty text is no rule.
    ///
    /// # Errors
    /// It is no such document.
    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let rule = serde_json::from_str::<serde_json::Value>(text).and_then(|value| {
            if value.is_null() {
                return Ok(Self::default());
            }
            let mut value = fields::named(&value, &["jq", "variables"]).into_owned();
            let Some(map) = value.as_object_mut() else {
                return Err(serde::de::Error::custom("not an object"));
            };
            // As Go reads it, where `null` leaves a field as it is.
            map.retain(|_, field| !field.is_null());
            serde_json::from_value(value)
        });
        rule.map_err(|e| CatalogError::FilterRule(e.to_string()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{}\n{:?}", self.jq, self.variables)
    }

    /// # Errors
    /// The program, or the name of a variable, is invalid.
    pub(crate) fn compile(&self) -> Result<Option<Compiled>, CatalogError> {
        if self.jq.is_empty() {
            return Ok(None);
        }
        let mut text = String::new();
        if self.jq.contains("now") {
            // The language has no clock of its own here.
            let now = Timestamp::now();
            let (second, part) = (now.as_second(), now.subsec_millisecond());
            text.push_str(&format!("def now: {second}.{part:03}; "));
        }
        for (name, value) in &self.variables {
            if !is_variable(name) {
                let why = format!("unable to compile jq: invalid variable name: {name}");
                return Err(CatalogError::Filter(why));
            }
            // A string of JSON is one of jq: it has no `\\(`.
            let value = serde_json::Value::from(value.as_str());
            text.push_str(&format!("{value} as {name} | "));
        }
        text.push_str(&self.jq);
        let invalid = |e| CatalogError::Filter(format!("unable to parse jq query: {e}"));
        Ok(Some(Compiled(Program::parse(&text).map_err(invalid)?)))
    }
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.strip_prefix('$').unwrap_or_default().chars();
    let first = letters.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A rule that can be asked.
pub(crate) struct Compiled(Program);

impl Compiled {
    /// # Errors
    /// The program fails on the chart, or its result is no boolean.
    pub fn keeps(&self, chart: &Chart) -> Result<bool, CatalogError> {
        let document = serde_json::to_value(chart)?;
        match self.0.run(&document, Limits::default()).next() {
            Some(Ok(serde_json::Value::Bool(keeps))) => Ok(keeps),
            Some(Ok(other)) => Err(CatalogError::Filter(format!(
                "unable to convert jq result to boolean. Got: {other}"
            ))),
            Some(Err(e)) => Err(CatalogError::Filter(format!("unable to run jq: {e}"))),
            None => Err(CatalogError::Filter(
                "unable to convert jq result to boolean. Got: <nil>".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each as a genuine asset-syncer takes it.
    #[test]
    fn rules_are_read_as_go_reads_them() {
        for (text, jq) in [
            ("", Some("")),
            ("null", Some("")),
            ("{}", Some("")),
            (r#"{"jq": "true", "variables": null}"#, Some("true")),
            (r#"{"jq": null}"#, Some("")),
            (r#"{"JQ": "true", "z": 1}"#, Some("true")),
            (r#"{"jq": 1}"#, None),
            (r#"{"jq": "true", "variables": {"$x": 1}}"#, None),
            ("[]", None),
            (r#""x""#, None),
        ] {
            let read = Filter::parse(text).ok();
            assert_eq!(read.map(|rule| rule.jq).as_deref(), jq, "{text}");
        }
    }

    #[test]
    fn a_rule_may_ask_for_the_time() {
        let keeps = |jq: &str| {
            let rule = Filter {
                jq: jq.to_owned(),
                variables: BTreeMap::from([("$x".to_owned(), "1".to_owned())]),
            };
            let compiled = rule.compile().expect("a program").expect("a rule");
            compiled.keeps(&Chart::default()).expect("an answer")
        };
        assert!(keeps("now > 1700000000"));
        assert!(keeps("def f: $x; f == \"1\""));
        assert!(!keeps("now < 1700000000"));
    }
}
