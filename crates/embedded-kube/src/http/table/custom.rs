//! Rows of custom resources: the additional printer columns of the definition, selected by JSON
//! path.

use super::{age, definition};
use crate::catalog::crd::Custom;
use jiff::Timestamp;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::{gofmt, gotypes};

pub fn definitions(custom: &Custom) -> Vec<Value> {
    let mut list = vec![definition("Name", "string", "name", 0, "Name")];
    if custom.columns.is_empty() {
        list.push(definition("Age", "date", "", 0, "Age"));
    }
    list.extend(custom.columns.iter().map(|c| {
        let usual = format!(
            "Custom resource definition column (in JSONPath format): {}",
            c.json_path
        );
        definition(
            &c.name,
            &c.kind,
            &c.format,
            c.priority,
            if c.description.is_empty() {
                &usual
            } else {
                &c.description
            },
        )
    }));
    list
}

pub fn cells(custom: &Custom, object: &Object, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![Value::from(object.name())];
    if custom.columns.is_empty() {
        cells.push(
            object
                .metadata("creationTimestamp")
                .map_or(Value::Null, |t| age::since(Some(t), now).into()),
        );
    }
    let whole = object.clone().into_value();
    for column in &custom.columns {
        let found = find(&whole, &column.json_path);
        cells.push(match (column.kind.as_str(), found.first()) {
            (_, None) => Value::Null,
            ("date", Some(Value::String(time))) => date(time, now).into(),
            ("integer", Some(v)) => v
                .as_i64()
                .or_else(|| v.as_f64().map(|f| f as i64))
                .map_or(Value::Null, Value::from),
            ("number", Some(v)) if v.is_number() => (*v).clone(),
            ("boolean", Some(v)) if v.is_boolean() => (*v).clone(),
            // Only the first of several matches is used.
            ("string", Some(Value::Null)) => "<nil>".into(),
            ("string", Some(v)) => printed(v).into(),
            _ => Value::Null,
        });
    }
    cells
}

fn date(text: &str, now: Timestamp) -> String {
    match text {
        "" | "null" => "<unknown>".to_owned(),
        text => gotypes::read_time(text).map_or_else(
            |_| "<invalid>".to_owned(),
            |time| age::since(time.map(Value::from).as_ref(), now),
        ),
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => gofmt::json(value),
        scalar => gofmt::plain(scalar),
    }
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// One step of a path.
enum Step {
    Key(String),
    Index(i64),
    All,
    /// `[?(@.type=="Ready")]`
    Filter(Vec<String>, String),
}

/// The matches of a simple JSON path: `.a.b[0]`, `[*]`, `['key']`, `\.` and filters on equality.
pub fn find<'a>(root: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![root];
    for step in steps(path) {
        let mut next = Vec::new();
        for value in found {
            match (&step, value) {
                (Step::Key(key), Value::Object(map)) => next.extend(map.get(key)),
                (Step::Index(i), Value::Array(list)) => {
                    let at = if *i < 0 { list.len() as i64 + i } else { *i };
                    next.extend(usize::try_from(at).ok().and_then(|at| list.get(at)));
                }
                (Step::All, Value::Array(list)) => next.extend(list),
                (Step::All, Value::Object(map)) => next.extend(map.values()),
                (Step::Filter(keys, wanted), Value::Array(list)) => {
                    let matches = |v: &&Value| {
                        let end = keys.iter().try_fold(*v, |v, key| v.get(key));
                        end.is_some_and(|v| shown(v) == *wanted)
                    };
                    next.extend(list.iter().filter(matches));
                }
                _ => {}
            }
        }
        found = next;
    }
    found
}

fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path
        .trim()
        .trim_start_matches('{')
        .trim_end_matches('}')
        .trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = bracket_end(inner);
            steps.extend(bracket(&inner[..end]));
            rest = inner.get(end + 1..).unwrap_or("");
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let (key, tail) = key(rest);
        rest = tail;
        match key.as_str() {
            "" => {}
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Key(key)),
        }
        // A key that consumed nothing (a stray character) must not keep the loop running.
        if !rest.is_empty() && !rest.starts_with(['.', '[']) {
            break;
        }
    }
    steps
}

/// Up to the next dot or bracket; `\.` is a dot in the key.
fn key(text: &str) -> (String, &str) {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '.' | '[' => return (key, &text[i..]),
            '\\' => key.extend(chars.next().map(|(_, c)| c)),
            c => key.push(c),
        }
    }
    (key, "")
}

fn bracket_end(text: &str) -> usize {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if c == q => quote = None,
            (None, ']') => return i,
            _ => {}
        }
    }
    text.len()
}

fn bracket(inner: &str) -> Option<Step> {
    let unquote = |s: &str| s.trim().trim_matches(['\'', '"']).to_owned();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        let (left, right) = filter.split_once("==")?;
        let keys = left
            .trim()
            .trim_start_matches('@')
            .split('.')
            .filter(|k| !k.is_empty())
            .map(str::to_owned)
            .collect();
        return Some(Step::Filter(keys, unquote(right)));
    }
    match inner.parse() {
        Ok(index) => Some(Step::Index(index)),
        Err(_) => Some(Step::Key(unquote(inner))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn simple_paths_are_found() {
        let v = json!({"spec": {"a.b": 1, "list": [{"type": "Ready", "status": "True"}, {"type": "X", "status": "No"}]}});
        let first = |path: &str| find(&v, path).first().map(|v| shown(v));
        assert_eq!(first(".spec.list[1].type").as_deref(), Some("X"));
        assert_eq!(first(".spec.a\\.b").as_deref(), Some("1"));
        assert_eq!(first(".spec['a.b']").as_deref(), Some("1"));
        assert_eq!(
            first(".spec.list[?(@.type==\"Ready\")].status").as_deref(),
            Some("True")
        );
        assert_eq!(first(".spec.none.x"), None);
        assert_eq!(find(&v, ".spec.list[*].type").len(), 2);
    }
}
