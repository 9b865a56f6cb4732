//! What is wrong with a text in go-yaml's words, for those who compare them.
//!
//! Main function: [`YamlError::go_text`].

use super::YamlError;

/// What is said of an anchor or an alias whose name does not end where names may end.
const NAME: &str = "did not find expected alphabetic or numeric character";

/// Parts of our messages, what go-yaml says instead, and whether its scanner does, which counts lines from 1; its parser counts from 0.
const WORDS: &[(&str, &str, bool)] = &[
    ("mapping values are not allowed", "mapping values are not allowed in this context", true),
    ("found a tab that cannot be used", "found character that cannot start any token", true),
    ("tabs disallowed within this context", "found character that cannot start any token", true),
    ("unexpected character: `", "found character that cannot start any token", true),
    ("while scanning an anchor or alias", NAME, true),
    ("did not find the expected '>'", "did not find the expected '>'", true),
    ("the handle wasn't declared", "found undefined tag handle", false),
    ("simple key expect", "could not find expected ':'", true),
    ("found unknown escape character", "found unknown escape character", true),
    ("found unexpected end of stream", "found unexpected end of stream", true),
    ("expected ',' or ']'", "did not find expected ',' or ']'", false),
    ("expected ',' or '}'", "did not find expected ',' or '}'", false),
    ("did not find expected key", "did not find expected key", false),
    ("did not find expected '-' indicator", "did not find expected '-' indicator", false),
    ("did not find expected node content", "did not find expected node content", false),
];

impl YamlError {
    /// The text as go-yaml v2 words it; what it has no words for stays as it is.
    pub fn go_text(&self, input: &[u8]) -> String {
        if self.message.contains("found unknown anchor") {
            return match self.anchor(input) {
                None => self.placed(NAME, self.line),
                Some(name) => format!("unknown anchor '{name}' referenced"),
            };
        }
        if let Some(told) = self.braces(input) {
            return told;
        }
        let Some((_, words, scanner)) = WORDS.iter().find(|(ours, _, _)| self.message.contains(ours)) else { return self.to_string() };
        // A quote that is left open is found at the end.
        let ends = words.ends_with("end of stream");
        let line = if ends { 1 + input.iter().filter(|b| **b == b'\n').count() } else { self.line };
        match (line, scanner) {
            (..=1, _) => (*words).to_owned(),
            (line, true) => self.placed(words, line),
            (line, false) => self.placed(words, line - 1),
        }
    }

    fn placed(&self, words: &str, line: usize) -> String {
        if self.line <= 1 && line <= 1 { words.to_owned() } else { format!("line {line}: {words}") }
    }

    /// What is said of `{{ name }}`, which is a map that is the key of a map; nothing of other keys.
    fn braces(&self, input: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(input);
        let line = text.lines().nth(self.line.checked_sub(1)?)?;
        let (name, rest) = line.get(self.column.checked_sub(1)?..)?.strip_prefix('{')?.split_once("}}")?;
        if !self.message.contains("invalid map key") || name.contains(['{', ',', ':', '"', '\'']) {
            return None;
        }
        if !rest.trim().is_empty() {
            return Some(self.placed("did not find expected key", self.line - 1)).filter(|_| self.line > 1);
        }
        let name = crate::text::quote(name.trim());
        Some(format!("invalid map key: map[interface {{}}]interface {{}}{{{name}:interface {{}}(nil)}}"))
    }

    /// The name behind the `*` at the place of the error, unless something is behind it that go-yaml does not expect there.
    fn anchor(&self, input: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(input);
        let line = text.lines().nth(self.line.checked_sub(1)?)?;
        let rest: String = line.chars().skip(self.column).collect();
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).next()?;
        let ends = rest[name.len()..].chars().next().is_none_or(|c| c.is_whitespace() || "?:,]}%@`".contains(c));
        (ends && !name.is_empty()).then(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use crate::yaml::{Duplicates, Limits, parse_document};

    #[test]
    fn errors_have_the_words_and_lines_of_go_yaml() {
        for (text, want) in [
            ("a: b: c", "mapping values are not allowed in this context"),
            ("x: 1\na: b: c", "line 2: mapping values are not allowed in this context"),
            ("a:\n  b: 1\n c: 2", "line 2: did not find expected key"),
            ("a: [1", "line 1: did not find expected ',' or ']'"),
            ("a: \"x\n", "line 2: found unexpected end of stream"),
            ("a: *x-y_1", "unknown anchor 'x-y_1' referenced"),
            ("*x : 1", "unknown anchor 'x' referenced"),
            ("a: {b: *x}", "unknown anchor 'x' referenced"),
            ("a: *x% y", "unknown anchor 'x' referenced"),
            ("a: *x.", "did not find expected alphabetic or numeric character"),
            ("b: |\n  x\na: *x/y", "line 3: did not find expected alphabetic or numeric character"),
            ("b: 1\na: {b: *x. }", "line 2: did not find expected alphabetic or numeric character"),
            ("a: *", "did not find expected alphabetic or numeric character"),
            ("a: **.log", "did not find expected alphabetic or numeric character"),
            ("a: & 1", "did not find expected alphabetic or numeric character"),
            ("a: !<x", "did not find the expected '>'"),
            ("a: !a!b 1", "found undefined tag handle"),
        ] {
            let error = parse_document(text, &Limits::default(), Duplicates::LastWins).expect_err(text);
            assert_eq!(error.go_text(text.as_bytes()), want);
        }
    }
}
