//! Errors with go-yaml's wording, for comparisons.
//!
//! Main function: [`YamlError::go_text`].

use super::YamlError;
use serde_json::Value;

impl YamlError {
    /// The text of go-yaml v2, with its line number.
    pub fn go_text(&self) -> String {
        if self.is_repeated_key() {
            format!("unmarshal errors:\n  line {}: {}", self.line, self.message)
        } else if self.go_line == 0 {
            self.message.clone()
        } else {
            format!("line {}: {}", self.go_line, self.message)
        }
    }

    /// The text of sigs.k8s.io/yaml, which parses YAML as JSON. go-yaml does not report errors that
    /// only concern JSON.
    pub fn json_text(&self) -> String {
        let source = if self.is_not_json() { "" } else { "yaml: " };
        format!("error converting YAML to JSON: {source}{}", self.go_text())
    }
}

/// A value as Go's `%#v` prints it.
pub(super) fn go_syntax(value: &Value) -> String {
    let listed = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => crate::text::quote(text),
        Value::Array(items) => format!(
            "[]interface {{}}{{{}}}",
            listed(items.iter().map(go_syntax).collect())
        ),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{}:{}", crate::text::quote(key), go_syntax(value)));
            format!(
                "map[interface {{}}]interface {{}}{{{}}}",
                listed(entries.collect())
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::yaml::{Duplicates, Limits, parse_document};

    #[test]
    fn errors_have_the_words_and_lines_of_go_yaml() {
        for (text, want) in [
            ("a: b: c", "mapping values are not allowed in this context"),
            (
                "x: 1\na: b: c",
                "line 2: mapping values are not allowed in this context",
            ),
            ("a:\n  b: 1\n c: 2", "line 2: did not find expected key"),
            ("a: [1", "line 1: did not find expected ',' or ']'"),
            ("a: \"x\n", "line 2: found unexpected end of stream"),
            ("a: *x-y_1", "unknown anchor 'x-y_1' referenced"),
            ("*x : 1", "unknown anchor 'x' referenced"),
            ("a: {b: *x}", "unknown anchor 'x' referenced"),
            ("a: *x% y", "unknown anchor 'x' referenced"),
            (
                "a: *x.",
                "did not find expected alphabetic or numeric character",
            ),
            (
                "b: |\n  x\na: *x/y",
                "line 3: did not find expected alphabetic or numeric character",
            ),
            (
                "b: 1\na: {b: *x. }",
                "line 2: did not find expected alphabetic or numeric character",
            ),
            (
                "a: *",
                "did not find expected alphabetic or numeric character",
            ),
            (
                "a: **.log",
                "did not find expected alphabetic or numeric character",
            ),
            (
                "a: & 1",
                "did not find expected alphabetic or numeric character",
            ),
            ("a: !<x", "did not find the expected '>'"),
            ("a: !a!b 1", "found undefined tag handle"),
        ] {
            let error =
                parse_document(text, &Limits::default(), Duplicates::LastWins).expect_err(text);
            assert_eq!(error.go_text(), want);
        }
    }
    #[test]
    fn keys_that_occur_twice_are_told_together() {
        let text = "a: 1\nb: 2\na: 3\nc: {d: 1, d: 2}\n";
        let error =
            parse_document(text, &Limits::default(), Duplicates::Refuse).expect_err("twice");
        assert_eq!(
            error.json_text(),
            "error converting YAML to JSON: yaml: unmarshal errors:\n  line 3: key \"a\" already \
             set in map\n  line 4: key \"d\" already set in map"
        );
    }
}
