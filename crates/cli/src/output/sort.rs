//! The order of lists: `--sort-by`, the same for all of them. Main type: [`SortBy`].
//!
//! A list says which fields have a name; any other is a path in the JSON of its items, as in
//! `kubectl get --sort-by`. It must not know what the items are.

use crate::failure::Failure;
use serde::Serialize;
use serde_json::Value;
use std::cmp::Ordering;
use tiphys_api::meta::Time;

/// A field: its name, and its value in an item.
pub type Field<T> = (&'static str, fn(&T) -> Value);

/// The flag of every list.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SortBy {
    /// Sort by a column, such as name or age, or by a field as -o json shows it, such as
    /// .metadata.name or '{.status.health.status}'
    #[arg(long, value_name = "FIELD")]
    sort_by: Option<String>,
}

impl SortBy {
    /// Sorts a list, if the flag is there. Items that are alike keep their order. Those without a
    /// value come first.
    ///
    /// # Errors
    /// There is no such field, or it is no single value.
    pub fn sort<T: Serialize>(
        &self,
        items: &mut Vec<T>,
        fields: &[Field<T>],
    ) -> Result<(), Failure> {
        let Some(by) = self.sort_by.as_deref().filter(|by| !by.is_empty()) else {
            return Ok(());
        };
        let named = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(by));
        let values: Vec<Value> = match named {
            Some((_, value)) => items.iter().map(value).collect(),
            None => {
                let unknown = || unknown(by, fields.iter().map(|(name, _)| *name));
                let path = path(by).ok_or_else(unknown)?;
                let values = values(by, items, &path)?;
                if !items.is_empty() && values.iter().all(Value::is_null) {
                    return Err(unknown());
                }
                values
            }
        };
        let mut keyed: Vec<(Value, T)> = values.into_iter().zip(items.drain(..)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b));
        items.extend(keyed.into_iter().map(|(_, item)| item));
        Ok(())
    }
}

/// When something was made: the oldest comes first.
pub fn created(at: Option<&Time>) -> Value {
    at.map_or(Value::Null, |at| at.seconds.into())
}

/// How old it is: the youngest comes first.
pub fn age(created: Option<&Time>) -> Value {
    created.map_or(Value::Null, |at| at.seconds.saturating_neg().into())
}

fn unknown(by: &str, names: impl Iterator<Item = &'static str>) -> Failure {
    let names: Vec<&str> = names.collect();
    Failure::error(format!(
        "--sort-by: this list has no field {by:?}; it has {}, and those that -o json shows, such \
         as .metadata.name",
        names.join(", ")
    ))
}

/// A step on the way to a field.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The steps of `{.a.b}`, `.a.b`, `a.b`, `$.a[0]`, `.a['b.c']` or `.a.b\.c`; `None`: it is no path
/// to one value.
fn path(text: &str) -> Option<Vec<Step>> {
    let text = text.trim();
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    // A single word is a name.
    if inner.is_none() && !text.contains(['.', '[']) {
        return None;
    }
    let mut rest = inner.unwrap_or(text).trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (inside, after) = bracket.split_once(']')?;
            let quoted = |quote: char| inside.strip_prefix(quote)?.strip_suffix(quote);
            steps.push(match quoted('\'').or_else(|| quoted('"')) {
                Some(key) => Step::Key(key.to_owned()),
                None => Step::Index(inside.parse().ok()?),
            });
            rest = after;
            continue;
        }
        let after = match rest.strip_prefix('.') {
            Some(after) => after,
            None if steps.is_empty() => rest,
            None => return None,
        };
        let (key, after) = key(after);
        if key.is_empty() || key == "*" {
            return None;
        }
        steps.push(Step::Key(key));
        rest = after;
    }
    (!steps.is_empty()).then_some(steps)
}

/// The key at the beginning of a text, and the rest. A backslash takes a dot's meaning away.
fn key(text: &str) -> (String, &str) {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return (key, &text[at..]),
            '\\' => key.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => key.push(c),
        }
    }
    (key, "")
}

/// What the items have at a path.
fn values<T: Serialize>(by: &str, items: &[T], path: &[Step]) -> Result<Vec<Value>, Failure> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let item = serde_json::to_value(item);
        let item = item.map_err(|e| Failure::error(format!("--sort-by: {e}")))?;
        let value = at(&item, path).cloned().unwrap_or_default();
        if value.is_object() || value.is_array() {
            return Err(Failure::error(format!(
                "--sort-by: {by:?} is more than one value: name a field in it"
            )));
        }
        values.push(value);
    }
    Ok(values)
}

fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    let mut steps = path.iter();
    steps.try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(*index),
    })
}

fn compare(a: &Value, b: &Value) -> Ordering {
    let kind = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => {
            let number = |n: &serde_json::Number| n.as_f64().unwrap_or_default();
            number(a).total_cmp(&number(b))
        }
        (Value::String(a), Value::String(b)) => natural(a, b),
        _ => kind(a).cmp(&kind(b)),
    }
}

/// Numbers in texts count as numbers, too: `web-9` comes before `web-10`, `1.9.0` before `1.10.0`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while let (Some(x), Some(y)) = (a.chars().next(), b.chars().next()) {
        let (order, x_length, y_length) = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (m, n) = (digits(a), digits(b));
            let number = |digits: &str| digits.trim_start_matches('0').to_owned();
            let (p, q) = (number(m), number(n));
            ((p.len(), p).cmp(&(q.len(), q)), m.len(), n.len())
        } else {
            (x.cmp(&y), x.len_utf8(), y.len_utf8())
        };
        if order.is_ne() {
            return order;
        }
        (a, b) = (&a[x_length..], &b[y_length..]);
    }
    // One of them has ended.
    a.len().cmp(&b.len())
}

/// The digits that a text begins with.
fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FIELDS: &[Field<Value>] = &[
        ("name", |item| item["name"].clone()),
        ("count", |item| item["count"].clone()),
    ];

    fn sorted(by: &str, mut items: Vec<Value>) -> Result<Vec<Value>, String> {
        let flag = SortBy {
            sort_by: Some(by.to_owned()),
        };
        let done = flag.sort(&mut items, FIELDS);
        done.map(|()| items).map_err(|e| e.message)
    }

    fn names(by: &str, items: Vec<Value>) -> Vec<String> {
        let items = sorted(by, items).expect("a field");
        let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
        items.iter().map(name).collect()
    }

    fn item(name: &str, count: i64) -> Value {
        json!({"name": name, "count": count})
    }

    #[test]
    fn numbers_are_numbers() {
        let items = || vec![item("a", 10), item("b", 9), item("c", -1)];
        assert_eq!(names("count", items()), ["c", "b", "a"]);
        assert_eq!(names("COUNT", items()), ["c", "b", "a"]);
        assert_eq!(names(".count", items()), ["c", "b", "a"]);
        let items = ["web-10", "web-9", "api", "1.10.0", "1.9.0", "web-09"];
        let items = items.iter().map(|name| item(name, 0)).collect();
        assert_eq!(
            names("name", items),
            ["1.9.0", "1.10.0", "api", "web-9", "web-09", "web-10"]
        );
    }

    #[test]
    fn what_is_alike_keeps_its_order() {
        let items = (0..100).map(|n| item(&n.to_string(), n % 3)).collect();
        let by_count = sorted("count", items).expect("a field");
        let order = |item: &Value| (item["count"].as_i64(), item["name"].clone());
        let of = |n: i64| (0..100).filter(move |m| m % 3 == n);
        let expected = (0..3).flat_map(|n| of(n).map(move |m| (Some(n), json!(m.to_string()))));
        let found = by_count.iter().map(order);
        assert!(found.eq(expected));
    }

    #[test]
    fn values_of_several_kinds() {
        let items = vec![
            json!({"name": "text", "x": "b"}),
            json!({"name": "number", "x": 2.5}),
            json!({"name": "true", "x": true}),
            json!({"name": "none"}),
            json!({"name": "empty", "x": ""}),
            json!({"name": "false", "x": false}),
        ];
        assert_eq!(
            names(".x", items),
            ["none", "false", "true", "number", "empty", "text"]
        );
    }

    #[test]
    fn paths() {
        let key = |key: &str| Step::Key(key.to_owned());
        for text in [
            "{.metadata.name}",
            ".metadata.name",
            "metadata.name",
            "{metadata.name}",
            "$.metadata['name']",
            "{.metadata[\"name\"]}",
        ] {
            let expected = vec![key("metadata"), key("name")];
            assert_eq!(path(text), Some(expected), "{text}");
        }
        let expected = vec![key("labels"), key("app.kubernetes.io/name")];
        assert_eq!(path(r".labels.app\.kubernetes\.io/name"), Some(expected));
        let expected = vec![key("a"), Step::Index(1), key("b")];
        assert_eq!(path(".a[1].b"), Some(expected));
        assert_eq!(path("{name}"), Some(vec![key("name")]));
        for text in [
            "name", "", "{}", ".", "..a", ".a.", ".a[", ".a[x]", ".a[*]", ".*", ".a[0]b",
        ] {
            assert_eq!(path(text), None, "{text}");
        }
        let items = vec![
            json!({"name": "a", "of": [{"x": 1}, {"x": 2}]}),
            json!({"name": "b", "of": [{"x": 2}, {"x": 1}]}),
        ];
        assert_eq!(names("{.of[1].x}", items.clone()), ["b", "a"]);
        assert_eq!(names("$.of[0]['x']", items), ["a", "b"]);
    }

    #[test]
    fn a_field_that_is_not_there_is_named_with_those_that_are() {
        let expected = "--sort-by: this list has no field \"nme\"; it has name, count, and those \
                        that -o json shows, such as .metadata.name";
        for items in [vec![], vec![item("a", 1)]] {
            assert_eq!(sorted("nme", items), Err(expected.to_owned()));
        }
        let e = sorted(".nme", vec![item("a", 1)]).expect_err("no such field");
        assert_eq!(e, expected.replace("nme", ".nme"));
        assert_eq!(sorted(".nme", vec![]), Ok(vec![]), "nobody can say");
        let e = sorted(".of", vec![json!({"of": [1]})]).expect_err("a list");
        assert!(e.contains("more than one value"), "{e}");
    }

    #[test]
    fn without_the_flag_nothing_changes() {
        let items = vec![item("b", 1), item("a", 2)];
        assert_eq!(sorted("", items.clone()), Ok(items));
    }

    #[test]
    fn the_age_is_not_the_time() {
        let [old, new] = [1, 2].map(|seconds| Time { seconds, nanos: 0 });
        assert!(compare(&created(Some(&old)), &created(Some(&new))).is_lt());
        assert!(compare(&age(Some(&new)), &age(Some(&old))).is_lt());
        assert_eq!(created(None), age(None));
    }
}
