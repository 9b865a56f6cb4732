//! Field selectors, as in `kubectl --field-selector`.

use super::{MAX_SELECTOR_BYTES, SelectorError, error};
use crate::object::Object;
use serde_json::Value;

/// `metadata.name=web,status.phase!=Running`: every term must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    pub terms: Vec<FieldTerm>,
}

/// One comparison of one field, by its dotted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm {
    pub path: String,
    pub equal: bool,
    pub value: String,
}

impl FieldSelector {
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR_BYTES {
            return Err(error(
                "",
                format!(
                    "it has {} bytes; the limit is {MAX_SELECTOR_BYTES}",
                    text.len()
                ),
            ));
        }
        let mut terms = Vec::new();
        let mut parts = split_unescaped(text);
        parts.sort_unstable();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (path, equal, value) = split_term(part).ok_or_else(|| {
                error(
                    text,
                    format!("invalid selector: '{text}'; can't understand '{part}'"),
                )
            })?;
            let term = FieldTerm {
                path: path.to_owned(),
                equal,
                value: unescape(text, value)?,
            };
            // An empty term requires nothing.
            terms.extend((!(path.is_empty() && value.is_empty())).then_some(term));
        }
        Ok(Self { terms })
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that the selector requires for `path`, if any.
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|t| t.equal && t.path == path)
            .map(|t| t.value.as_str())
    }

    /// A missing field compares as the empty string, numbers and booleans as printed.
    pub fn matches(&self, object: &Object) -> bool {
        self.matches_as(|path| field_text(object, path))
    }

    /// The same with the caller's own text for each field.
    pub fn matches_as(&self, text: impl Fn(&str) -> String) -> bool {
        self.terms
            .iter()
            .all(|t| (text(&t.path) == t.value) == t.equal)
    }
}

/// The text of a field for comparison; empty if it is absent.
pub fn field_text(object: &Object, path: &str) -> String {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|p| object.0.get(p));
    match parts.try_fold(first, |value, part| value.map(|v| v.get(part))) {
        Some(Some(Value::String(s))) => s.clone(),
        Some(Some(v @ (Value::Number(_) | Value::Bool(_)))) => v.to_string(),
        _ => String::new(),
    }
}

/// Splits at commas that are not escaped by a backslash.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The first operator counts; `!=` takes precedence over the `=` in it.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    if at > 0 && term.as_bytes()[at - 1] == b'!' {
        return Some((&term[..at - 1], false, &term[at + 1..]));
    }
    let value = &term[at + 1..];
    Some((&term[..at], true, value.strip_prefix('=').unwrap_or(value)))
}

fn unescape(text: &str, value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let escaped = other.map(String::from).unwrap_or_default();
                    return Err(error(
                        text,
                        format!("invalid field selector: invalid escape sequence: \\{escaped}"),
                    ));
                }
            },
            // Escaped as its number.
            ',' | '=' => {
                return Err(error(
                    text,
                    format!(
                        "invalid field selector: unescaped character in value: {}",
                        u32::from(c)
                    ),
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn field_selectors() {
        let o = Object::from_value(
            json!({"metadata": {"name": "web", "namespace": "a,b"}, "spec": {"replicas": 3}}),
        )
        .expect("a map");
        for (selector, expected) in [
            ("metadata.name=web", true),
            ("metadata.name==web,metadata.namespace!=a\\,b", false),
            ("spec.replicas=3", true),
            ("status.phase=", true),
            ("status.phase!=Running", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector).expect(selector).matches(&o),
                expected,
                "{selector}"
            );
        }
        assert!(FieldSelector::parse("metadata.name").is_err());
        assert!(FieldSelector::parse("a=\\x").is_err());
    }
}
