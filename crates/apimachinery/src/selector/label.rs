//! Label selectors, as in `kubectl -l` and in LabelSelector fields.

use super::{MAX_SELECTOR_BYTES, SelectorError, error};
use crate::object::Object;
use serde_json::Value;
use std::{collections::BTreeMap, fmt};

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOperator {
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One comparison of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    pub key: String,
    pub operator: LabelOperator,
    /// Sorted, without duplicates.
    pub values: Vec<String>,
}

/// All requirements must match. The default value selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    pub requirements: Vec<LabelRequirement>,
    nothing: bool,
}

impl LabelSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects nothing, as a `null` LabelSelector field does.
    pub fn nothing() -> Self {
        Self {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`.
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
        let tokens = tokenize(text);
        let mut parser = LabelParser {
            text,
            tokens: &tokens,
            at: 0,
        };
        let mut requirements = Vec::new();
        if tokens.is_empty() {
            return Ok(Self::everything());
        }
        loop {
            if !parser.peek().is_some_and(|t| t == "!" || is_word(t)) {
                return parser.fail(parser.peek(), "!, identifier, or 'end of string'");
            }
            let one = parser.requirement();
            requirements.push(
                one.map_err(|e| error(text, format!("unable to parse requirement: {}", e.reason)))?,
            );
            match parser.next() {
                None => break,
                Some(",") if !parser.peek().is_some_and(|t| t == "!" || is_word(t)) => {
                    return parser.fail(parser.peek(), "identifier after ','");
                }
                Some(",") => {}
                other => return parser.fail(other, "',' or 'end of string'"),
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements,
            nothing: false,
        })
    }

    /// Parses `{matchLabels, matchExpressions}`; `null` selects nothing and `{}` everything.
    pub fn from_json(value: &Value) -> Result<Self, SelectorError> {
        let map = match value {
            Value::Null => return Ok(Self::nothing()),
            Value::Object(map) => map,
            other => {
                return Err(error(
                    &other.to_string(),
                    "a label selector must be a map".into(),
                ));
            }
        };
        let bad = |what: &str| error(&value.to_string(), what.to_owned());
        let mut requirements = Vec::new();
        match map.get("matchLabels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                for (key, value) in labels {
                    let value = value
                        .as_str()
                        .ok_or_else(|| bad("values of matchLabels must be strings"))?;
                    requirements.push(requirement(
                        &map_text(map),
                        key,
                        LabelOperator::Equals,
                        vec![value.to_owned()],
                    )?);
                }
            }
            Some(_) => return Err(bad("matchLabels must be a map")),
        }
        match map.get("matchExpressions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                for entry in list {
                    requirements.push(expression(&map_text(map), entry)?);
                }
            }
            Some(_) => return Err(bad("matchExpressions must be a list")),
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements,
            nothing: false,
        })
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(|key| labels.get(key).map(String::as_str))
    }

    /// The same without building a map of the labels.
    pub fn matches_object(&self, object: &Object) -> bool {
        self.matches_with(|key| object.label(key))
    }

    fn matches_with<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.holds(label(&r.key)))
    }
}

fn map_text(map: &serde_json::Map<String, Value>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

impl LabelRequirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|w| w == v);
        match (self.operator, value) {
            (LabelOperator::Exists, v) => v.is_some(),
            (LabelOperator::DoesNotExist, v) => v.is_none(),
            (LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In, Some(v)) => {
                listed(v)
            }
            (LabelOperator::NotEquals | LabelOperator::NotIn, v) => !v.is_some_and(listed),
            (LabelOperator::GreaterThan | LabelOperator::LessThan, Some(v)) => {
                let (Ok(have), Some(Ok(limit))) = (
                    v.parse::<i64>(),
                    self.values.first().map(|l| l.parse::<i64>()),
                ) else {
                    return false;
                };
                if self.operator == LabelOperator::GreaterThan {
                    have > limit
                } else {
                    have < limit
                }
            }
            (_, None) => false,
        }
    }
}

/// As the API server prints it, sorted by key: `a=b,c in (d,e),!f`.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            let values = r.values.join(",");
            match r.operator {
                LabelOperator::Exists => f.write_str(&r.key)?,
                LabelOperator::DoesNotExist => write!(f, "!{}", r.key)?,
                LabelOperator::Equals => write!(f, "{}={values}", r.key)?,
                LabelOperator::DoubleEquals => write!(f, "{}=={values}", r.key)?,
                LabelOperator::NotEquals => write!(f, "{}!={values}", r.key)?,
                LabelOperator::In => write!(f, "{} in ({values})", r.key)?,
                LabelOperator::NotIn => write!(f, "{} notin ({values})", r.key)?,
                LabelOperator::GreaterThan => write!(f, "{}>{values}", r.key)?,
                LabelOperator::LessThan => write!(f, "{}<{values}", r.key)?,
            }
        }
        Ok(())
    }
}

fn expression(text: &str, entry: &Value) -> Result<LabelRequirement, SelectorError> {
    let str_of = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or("");
    let operator = match str_of("operator") {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        other => {
            return Err(error(
                text,
                format!("{other:?} is not a valid label selector operator"),
            ));
        }
    };
    let values = match entry.get("values") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list
            .iter()
            .map(|v| {
                v.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| error(text, "values must be strings".into()))
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(error(text, "values must be a list".into())),
    };
    requirement(text, str_of("key"), operator, values)
}

fn requirement(
    text: &str,
    key: &str,
    operator: LabelOperator,
    mut values: Vec<String>,
) -> Result<LabelRequirement, SelectorError> {
    if let Some(why) = key_problem(key) {
        return Err(error(text, format!("<nil>: Invalid value: {key:?}: {why}")));
    }
    match operator {
        LabelOperator::In | LabelOperator::NotIn if values.is_empty() => {
            return Err(error(
                text,
                format!("key {key:?}: for 'in', 'notin' operators, values set can't be empty"),
            ));
        }
        LabelOperator::Exists | LabelOperator::DoesNotExist if !values.is_empty() => {
            return Err(error(
                text,
                format!("key {key:?}: values set must be empty for exists and does not exist"),
            ));
        }
        LabelOperator::GreaterThan | LabelOperator::LessThan
            if values.len() != 1 || values[0].parse::<i64>().is_err() =>
        {
            let value = values.first().map_or("", String::as_str);
            return Err(error(
                text,
                format!(
                    "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ),
            ));
        }
        _ => {}
    }
    if let Some(at) = values.iter().position(|v| !is_label_value(v)) {
        let bad = &values[at];
        let why = if bad.len() > 63 {
            "must be no more than 63 bytes"
        } else {
            BAD_VALUE
        };
        return Err(error(
            text,
            format!("values[{at}][{key}]: Invalid value: {bad:?}: {why}"),
        ));
    }
    values.sort();
    values.dedup();
    Ok(LabelRequirement {
        key: key.to_owned(),
        operator,
        values,
    })
}

const BAD_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const BAD_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                        'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Why a label key is invalid, with the API server's message.
fn key_problem(key: &str) -> Option<String> {
    if is_qualified_name(key) {
        return None;
    }
    Some(match key.split('/').collect::<Vec<_>>()[..] {
        ["", _] => "prefix part must be non-empty".to_owned(),
        [_] | [_, _] => {
            let name = key.rsplit('/').next().unwrap_or_default();
            let mut problems = Vec::new();
            if name.is_empty() {
                problems.push("name part must be non-empty".to_owned());
            }
            if name.len() > 63 {
                problems.push("name part must be no more than 63 bytes".to_owned());
            }
            if name.is_empty() || name.len() <= 63 && !is_label_value(name) {
                problems.push(format!("name part {BAD_NAME}"));
            }
            if problems.is_empty() {
                problems.push(
                    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'".to_owned(),
                );
            }
            problems.join("; ")
        }
        _ => format!(
            "a valid label key {BAD_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ),
    })
}

/// Whether the key has the form `[prefix/]name` of label keys.
pub fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_ok =
        prefix.is_none_or(|p| !p.is_empty() && p.len() <= 253 && p.split('.').all(is_dns_label));
    prefix_ok && !name.is_empty() && is_label_value(name)
}

fn is_dns_label(s: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = s.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// Empty, or at most 63 characters that start and end with a letter or digit.
pub fn is_label_value(s: &str) -> bool {
    let bytes = s.as_bytes();
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Splits into words and the tokens `( ) , ! = == != > <`.
fn tokenize(text: &str) -> Vec<&str> {
    let special = |b: u8| matches!(b, b'(' | b')' | b',' | b'!' | b'=' | b'>' | b'<');
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if special(bytes[at]) {
            at += 1;
            if matches!(bytes[start], b'!' | b'=') && bytes.get(at) == Some(&b'=') {
                at += 1;
            }
        } else {
            while at < bytes.len() && !special(bytes[at]) && !bytes[at].is_ascii_whitespace() {
                at += 1;
            }
        }
        tokens.push(&text[start..at]);
    }
    tokens
}

struct LabelParser<'a> {
    text: &'a str,
    tokens: &'a [&'a str],
    at: usize,
}

impl<'a> LabelParser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token
    }

    fn fail<T>(&self, found: Option<&str>, expected: &str) -> Result<T, SelectorError> {
        Err(error(
            self.text,
            format!("found '{}', expected: {expected}", found.unwrap_or("")),
        ))
    }

    fn requirement(&mut self) -> Result<LabelRequirement, SelectorError> {
        let negated = self.peek() == Some("!");
        self.at += usize::from(negated);
        let key = match self.next() {
            Some(word) if is_word(word) => word,
            other => return self.fail(other, "identifier"),
        };
        if negated {
            return requirement(self.text, key, LabelOperator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), None | Some(",")) {
            return requirement(self.text, key, LabelOperator::Exists, Vec::new());
        }
        let (operator, many) = match self.next() {
            Some("=") => (LabelOperator::Equals, false),
            Some("==") => (LabelOperator::DoubleEquals, false),
            Some("!=") => (LabelOperator::NotEquals, false),
            Some("in") => (LabelOperator::In, true),
            Some("notin") => (LabelOperator::NotIn, true),
            Some(">") => (LabelOperator::GreaterThan, false),
            Some("<") => (LabelOperator::LessThan, false),
            other => return self.fail(other, "in, notin, =, ==, !=, gt, lt"),
        };
        let values = if many {
            self.value_list()?
        } else {
            vec![self.single_value()?]
        };
        requirement(self.text, key, operator, values)
    }

    /// One value; before a comma or the end it is empty.
    fn single_value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            None | Some(",") => Ok(String::new()),
            Some(word) if is_word(word) => {
                self.at += 1;
                Ok(word.to_owned())
            }
            other => self.fail(other, "identifier"),
        }
    }

    fn value_list(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Some("(") => {}
            other => {
                return Err(error(
                    self.text,
                    format!("found '{}' expected: '('", other.unwrap_or("")),
                ));
            }
        }
        let mut values = Vec::new();
        match self.peek() {
            Some(")") => values.push(String::new()),
            Some(word) if word == "," || is_word(word) => self.values(&mut values)?,
            other => return self.fail(other, "',', ')' or identifier"),
        }
        self.at += 1;
        Ok(values)
    }

    /// The values before the closing parenthesis; a missing one next to a comma is empty.
    fn values(&mut self, values: &mut Vec<String>) -> Result<(), SelectorError> {
        loop {
            match self.next() {
                Some(",") => {
                    if values.is_empty() || matches!(self.peek(), Some("," | ")")) {
                        values.push(String::new());
                    }
                }
                Some(word) if is_word(word) => {
                    values.push(word.to_owned());
                    if !matches!(self.peek(), Some("," | ")")) {
                        return self.fail(self.peek(), "',' or ')'");
                    }
                }
                other => return self.fail(other, "',', or identifier"),
            }
            if self.peek() == Some(")") {
                return Ok(());
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    !token.starts_with(['(', ')', ',', '!', '=', '>', '<'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn label_selectors_select() {
        let l = labels(&[("app", "web"), ("tier", "front"), ("n", "5"), ("empty", "")]);
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=back", false),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (api, web)", true),
            ("app notin (api,web)", false),
            ("missing notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!missing", true),
            ("n>4,n<6", true),
            ("n>5", false),
            ("empty=", true),
            ("missing=", false),
            ("argocd.argoproj.io/secret-type=cluster", false),
        ] {
            assert_eq!(
                LabelSelector::parse(selector).expect(selector).matches(&l),
                expected,
                "{selector}"
            );
        }
    }

    #[test]
    fn bad_label_selectors_say_what_was_expected() {
        for selector in [
            "a=b=c", "a in b", "a in (b", "=b", "a b", "a in ()x", "-a=b", "a=b!", "a>x",
        ] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
        assert_eq!(
            LabelSelector::parse("b in (y,x),!a,c!=d")
                .expect("valid")
                .to_string(),
            "!a,b in (x,y),c!=d"
        );
    }

    #[test]
    fn structured_selectors() {
        let s =
            LabelSelector::from_json(&json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}))
                .expect("valid");
        assert!(s.matches(&labels(&[("a", "1")])));
        assert!(!s.matches(&labels(&[("a", "1"), ("b", "")])));
        assert!(
            !LabelSelector::from_json(&Value::Null)
                .expect("null")
                .matches(&labels(&[]))
        );
        assert!(
            LabelSelector::from_json(&json!({}))
                .expect("empty")
                .matches(&labels(&[]))
        );
        assert!(
            LabelSelector::from_json(
                &json!({"matchExpressions": [{"key": "a", "operator": "In"}]})
            )
            .is_err()
        );
    }
}
