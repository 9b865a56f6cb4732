//! Validates a value against a schema, with the messages and the order of the Go library that the
//! API server uses.
//!
//! Main function: [`check`]. On updates, errors in unchanged values are ignored (`old` is the
//! previous value).

mod allowed;

use super::problem::Problem;
use super::{Additional, Bound, Node, formats};
use crate::gofmt;
use serde_json::Value;

const MAX_DEPTH: usize = 250;
/// More than a person would read or a message should contain.
const MAX_ERRORS: usize = 1_000;

/// The field of errors without one.
const NO_FIELD: &str = "<nil>";

/// The errors of a validator, and how much of the schema matched: the best of several alternatives
/// is reported.
#[derive(Default)]
struct Outcome {
    errors: Vec<Found>,
    matches: usize,
}

/// An error before it has its complete path.
#[derive(Clone, PartialEq, Eq)]
struct Found {
    kind: Kind,
    path: String,
    /// The message of the library; two errors with the same message are one.
    message: String,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Required,
    Enum(String, Vec<String>),
    TooLong(i64),
    TooMany(i64, i64),
    Type(String),
    Invalid(String),
    /// Not about one field.
    General,
}

impl Outcome {
    fn add(&mut self, kind: Kind, path: &str, message: String) {
        let found = Found {
            kind,
            path: path.to_owned(),
            message,
        };
        if self.errors.len() < MAX_ERRORS && !self.errors.iter().any(|e| e.message == found.message)
        {
            self.errors.push(found);
        }
    }

    fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        for found in other.errors {
            self.add(found.kind, &found.path, found.message);
        }
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// All errors in `value`. `prefix` is the path of the value itself (empty for a whole object).
pub fn check(node: &Node, value: &Value, old: Option<&Value>, prefix: &str) -> Vec<Problem> {
    let outcome = outer(node, value, old, "", 0);
    outcome
        .errors
        .into_iter()
        .map(|found| problem(found, prefix))
        .collect()
}

fn problem(found: Found, prefix: &str) -> Problem {
    let tail = found.path.strip_prefix('.').unwrap_or(&found.path);
    let path = match (prefix.is_empty(), tail.is_empty()) {
        (true, true) => NO_FIELD.to_owned(),
        (true, false) => tail.to_owned(),
        (false, true) => prefix.to_owned(),
        (false, false) => format!("{prefix}.{tail}"),
    };
    let make = |reason, text: String| Problem {
        reason,
        path: path.clone(),
        text,
    };
    match found.kind {
        Kind::Required => Problem::required(&path, ""),
        Kind::Enum(value, allowed) => {
            let allowed: Vec<String> = allowed.iter().map(|a| gofmt::quoted(a)).collect();
            make(
                "FieldValueNotSupported",
                format!(
                    "Unsupported value: {value}: supported values: {}",
                    allowed.join(", ")
                ),
            )
        }
        Kind::TooLong(max) => Problem::too_long(&path, max),
        Kind::TooMany(n, max) => Problem::too_many(&path, n, max),
        Kind::Type(value) => make(
            "FieldValueTypeInvalid",
            format!("Invalid value: {value}: {}", found.message),
        ),
        Kind::Invalid(value) => make(
            "FieldValueInvalid",
            format!("Invalid value: {value}: {}", found.message),
        ),
        Kind::General => {
            let path = if prefix.is_empty() { NO_FIELD } else { prefix };
            Problem {
                reason: "FieldValueInvalid",
                path: path.to_owned(),
                text: format!("Invalid value: \"\": {}", found.message),
            }
        }
    }
}

/// A value that is compared with its previous state: errors are ignored if it is unchanged.
fn outer(node: &Node, value: &Value, old: Option<&Value>, path: &str, depth: usize) -> Outcome {
    let outcome = inner(node, value, old, path, depth);
    if !outcome.is_valid() && old.is_some_and(|old| is_unchanged(node, old, value)) {
        return Outcome {
            errors: Vec::new(),
            matches: outcome.matches,
        };
    }
    outcome
}

fn inner(node: &Node, value: &Value, old: Option<&Value>, path: &str, depth: usize) -> Outcome {
    let mut out = Outcome::default();
    if depth > MAX_DEPTH {
        return out;
    }
    if value.is_null() {
        out.merge(of_type(node, value, path));
        out.merge(one_of_enum(node, value, path));
        return out;
    }
    let mut step = |part: Outcome| {
        out.merge(part);
        out.matches += 1;
    };
    if !types(node).is_empty() || !node.checked_format().is_empty() {
        step(of_type(node, value, path));
    }
    step(combined(node, value, old, path, depth));
    match value {
        Value::String(text) => {
            step(string(node, value, text, path));
            if formats::is_of_strings(node.checked_format()) {
                step(format(node, value, text, path));
            }
        }
        Value::Number(_) => step(number(node, value, path)),
        Value::Array(list) => step(array(node, list, old, path, depth)),
        _ => {}
    }
    step(one_of_enum(node, value, path));
    if let Value::Object(_) = value {
        step(object(node, value, old, path, depth));
    }
    out.matches += 1;
    out
}

fn types(node: &Node) -> Vec<&str> {
    match (node.int_or_string && !node.of_defaults, node.kind.as_str()) {
        (true, _) => vec!["integer", "string"],
        (false, "") => Vec::new(),
        (false, kind) => vec![kind],
    }
}

/// Go's decoder reads integers within its range as int64, all other numbers as float64.
fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_i64()
}

fn json_type(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(_) if is_float(value) => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn is_whole(f: f64) -> bool {
    f.is_finite()
        && f.abs() < 9.007_199_254_740_992e15
        && (f - f.round()).abs() < 1e-9 * f.abs().max(1.0)
}

fn wrong_type(out: &mut Outcome, path: &str, wanted: &str, found: &str) {
    let message = format!(
        "{path} in body must be of type {wanted}: {}",
        gofmt::quoted(found)
    );
    out.add(Kind::Type(gofmt::quoted(found)), path, message);
}

fn of_type(node: &Node, value: &Value, path: &str) -> Outcome {
    let mut out = Outcome::default();
    let types = types(node);
    let (found, found_format) = json_type(value);
    if value.is_null() {
        if !types.is_empty() && !types.contains(&"null") && !node.nullable {
            wrong_type(&mut out, path, &types.join(","), "null");
        } else {
            out.matches += 1;
        }
        return out;
    }
    let format = node.checked_format();
    let text_like = matches!(value, Value::String(_) | Value::Array(_));
    let numeric = types.contains(&"number") || types.contains(&"integer");
    let fits = types.contains(&found)
        || (found == "number"
            && types.contains(&"integer")
            && value.as_f64().is_some_and(is_whole))
        || (found == "integer" && types.contains(&"number"));
    if !text_like && !format.is_empty() && !fits && found_format != format {
        wrong_type(&mut out, path, format, found_format);
        return out;
    }
    // A string format makes the type check pass for lists, too.
    let vouched = text_like && !numeric && !format.is_empty();
    if !fits && !vouched {
        wrong_type(&mut out, path, &types.join(","), found);
        return out;
    }
    out.matches += 1;
    out
}

fn one_of_enum(node: &Node, value: &Value, path: &str) -> Outcome {
    let mut out = Outcome::default();
    if !node.enum_values.is_empty()
        && (value.is_null() || !node.enum_values.iter().any(|one| allowed::is(value, one)))
    {
        let allowed = node
            .enum_values
            .iter()
            .map(|v| v.as_str().map_or_else(|| gofmt::json(v), str::to_owned))
            .collect();
        let message = format!(
            "{path} in body should be one of {}",
            gofmt::json(&node.enum_values.clone().into())
        );
        out.add(Kind::Enum(gofmt::bad_value(value), allowed), path, message);
    }
    out
}

fn invalid(out: &mut Outcome, path: &str, value: String, text: &str) {
    out.add(Kind::Invalid(value), path, format!("{path} in body {text}"));
}

/// Only the first error of a string is reported.
fn string(node: &Node, value: &Value, text: &str, path: &str) -> Outcome {
    let mut out = Outcome::default();
    let length = text.chars().count() as i64;
    let shown = gofmt::bad_value(value);
    if let Some(max) = node.max_length.filter(|max| length > *max) {
        out.add(
            Kind::TooLong(max),
            path,
            format!("{path} in body should be at most {max} chars long"),
        );
    } else if let Some(min) = node.min_length.filter(|min| length < *min) {
        invalid(
            &mut out,
            path,
            shown,
            &format!("should be at least {min} chars long"),
        );
    } else if let Some(pattern) = &node.pattern
        && !pattern.regex.as_ref().is_some_and(|r| r.is_match(text))
    {
        invalid(
            &mut out,
            path,
            shown,
            &format!("should match '{}'", pattern.text),
        );
    }
    out
}

fn format(node: &Node, value: &Value, text: &str, path: &str) -> Outcome {
    let mut out = Outcome::default();
    let format = node.checked_format();
    if !formats::matches(format, text) {
        let message = format!(
            "{path} in body must be of type {format}: {}",
            gofmt::quoted(text)
        );
        out.add(Kind::Type(gofmt::bad_value(value)), path, message);
    }
    out
}

fn plain(f: f64) -> String {
    format!("{f}")
}

/// Whether a number matches the schema's type and format.
fn in_range(node: &Node, value: f64, whole: Option<i64>) -> bool {
    if node.int_or_string {
        return true;
    }
    match (node.kind.as_str(), node.format.as_str()) {
        ("integer", "int32") => whole.is_some_and(|n| i32::try_from(n).is_ok()),
        ("integer", _) => whole.is_some(),
        ("number", "float") => (value as f32).is_finite(),
        _ => true,
    }
}

fn range_text(node: &Node, prefix: &str, path: &str) -> String {
    let known = node.checked_format();
    if known.is_empty() {
        format!(
            "{prefix} value must be of type {} (default format) in {path}",
            node.kind
        )
    } else {
        format!(
            "{prefix} value must be of type {} with format {known} in {path}",
            node.kind
        )
    }
}

fn number(node: &Node, value: &Value, path: &str) -> Outcome {
    let mut out = Outcome::default();
    let f = value.as_f64().unwrap_or(0.0);
    let whole = (!is_float(value)).then(|| value.as_i64()).flatten();
    let integral = |f: f64| (f.fract() == 0.0 && f.abs() < 9.3e18).then_some(f as i64);
    if !in_range(node, f, whole.or_else(|| integral(f))) {
        out.add(Kind::General, path, range_text(node, "Checked", path));
    }
    let mut bounds_fit = |limit: f64, prefix: &str| {
        let fits = in_range(node, limit, integral(limit));
        if !fits {
            out.add(Kind::General, path, range_text(node, prefix, path));
        }
        fits
    };
    let (multiple_fits, min_fits, max_fits) = (
        node.multiple_of.is_none_or(|m| bounds_fit(m, "MultipleOf")),
        node.minimum
            .is_none_or(|b| bounds_fit(b.limit, "Minimum boundary")),
        node.maximum
            .is_none_or(|b| bounds_fit(b.limit, "Maximum boundary")),
    );
    if let Some(step) = node.multiple_of {
        multiple(&mut out, step, (f, whole.filter(|_| multiple_fits)), path);
    }
    let shown = gofmt::bad_value(value);
    if let Some(text) = node
        .minimum
        .and_then(|b| below(b, f, whole.filter(|_| min_fits)))
    {
        invalid(&mut out, path, shown.clone(), &text);
    }
    if let Some(text) = node
        .maximum
        .and_then(|b| above(b, f, whole.filter(|_| max_fits)))
    {
        invalid(&mut out, path, shown, &text);
    }
    out.matches += 1;
    out
}

fn below(bound: Bound, f: f64, whole: Option<i64>) -> Option<String> {
    let (bad, shown) = match whole {
        Some(n) => {
            let min = bound.limit as i64;
            (
                (!bound.exclusive && n < min) || (bound.exclusive && n <= min),
                min.to_string(),
            )
        }
        None => (
            (!bound.exclusive && f < bound.limit) || (bound.exclusive && f <= bound.limit),
            gofmt::float(bound.limit),
        ),
    };
    bad.then(|| {
        format!(
            "should be greater than {}{shown}",
            if bound.exclusive { "" } else { "or equal to " }
        )
    })
}

fn above(bound: Bound, f: f64, whole: Option<i64>) -> Option<String> {
    let (bad, shown) = match whole {
        Some(n) => {
            let max = bound.limit as i64;
            (
                (!bound.exclusive && n > max) || (bound.exclusive && n >= max),
                max.to_string(),
            )
        }
        None => (
            (!bound.exclusive && f > bound.limit) || (bound.exclusive && f >= bound.limit),
            gofmt::float(bound.limit),
        ),
    };
    bad.then(|| {
        format!(
            "should be less than {}{shown}",
            if bound.exclusive { "" } else { "or equal to " }
        )
    })
}

fn multiple(out: &mut Outcome, step: f64, (f, whole): (f64, Option<i64>), path: &str) {
    let not_positive = |out: &mut Outcome, shown: String| {
        out.add(
            Kind::Invalid(shown.clone()),
            path,
            format!("factor MultipleOf declared for {path} must be positive: {shown}"),
        );
    };
    match whole {
        Some(_) if (step as i64) <= 0 => not_positive(out, (step as i64).to_string()),
        Some(n) if n % (step as i64) != 0 => invalid(
            out,
            path,
            n.to_string(),
            &format!("should be a multiple of {}", step as i64),
        ),
        Some(_) => {}
        None if step <= 0.0 => not_positive(out, plain(step)),
        None => {
            let quotient = if step < 1.0 { 1.0 / step * f } else { f / step };
            if !is_whole(quotient) {
                invalid(
                    out,
                    path,
                    gofmt::float(f),
                    &format!("should be a multiple of {}", gofmt::float(step)),
                );
            }
        }
    }
}

/// Whether a value is unchanged when its parts are correlated with the old ones: list elements
/// without keys have no old value.
pub fn is_unchanged(node: &Node, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Array(before), Value::Array(list)) if node.list_type.as_deref() == Some("map") => {
            let Some(items) = &node.items else {
                return false;
            };
            let same = |item| {
                old_item(node, Some(old), item)
                    .is_some_and(|before| is_unchanged(items, before, item))
            };
            before.len() == list.len() && list.iter().all(same)
        }
        (Value::Object(before), Value::Object(map)) => {
            let same = |(key, item): (&String, &Value)| {
                before
                    .get(key)
                    .zip(node.field(key))
                    .is_some_and(|(before, of)| is_unchanged(of, before, item))
            };
            before.len() == map.len() && map.iter().all(same)
        }
        _ => old == new,
    }
}

/// The old value of an element: lists with keys are matched by key, others not at all.
pub fn old_item<'a>(node: &Node, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    if node.list_type.as_deref() != Some("map") {
        return None;
    }
    // An element with a missing or non-scalar key matches no other.
    let key_of = |key| {
        item.get(key)
            .filter(|value| value.is_string() || value.is_number() || value.is_boolean())
    };
    let same = |other: &&Value| {
        node.list_map_keys
            .iter()
            .all(|key| key_of(key).is_some_and(|value| other.get(key) == Some(value)))
    };
    old?.as_array()?
        .iter()
        .filter(|o| o.is_object() && item.is_object())
        .find(same)
}

fn array(node: &Node, list: &[Value], old: Option<&Value>, path: &str, depth: usize) -> Outcome {
    let mut out = Outcome::default();
    if let Some(items) = &node.items {
        for (i, item) in list.iter().enumerate() {
            out.merge(outer(
                items,
                item,
                old_item(node, old, item),
                &format!("{path}[{i}]"),
                depth + 1,
            ));
        }
    }
    let n = list.len() as i64;
    if let Some(min) = node.min_items.filter(|min| n < *min) {
        invalid(
            &mut out,
            path,
            n.to_string(),
            &format!("should have at least {min} items"),
        );
    }
    if let Some(max) = node.max_items.filter(|max| n > *max) {
        out.add(
            Kind::TooMany(n, max),
            path,
            format!("{path} in body should have at most {max} items"),
        );
    }
    if node.unique_items
        && list
            .iter()
            .enumerate()
            .any(|(i, item)| list[..i].contains(item))
    {
        out.add(
            Kind::Invalid("\"\"".into()),
            path,
            format!("{path} in body shouldn't contain duplicates"),
        );
    }
    out.matches += 1;
    out
}

fn object(node: &Node, value: &Value, old: Option<&Value>, path: &str, depth: usize) -> Outcome {
    let mut out = Outcome::default();
    let Some(map) = value.as_object() else {
        return out;
    };
    let n = map.len() as i64;
    if let Some(min) = node.min_properties.filter(|min| n < *min) {
        invalid(
            &mut out,
            path,
            n.to_string(),
            &format!("should have at least {min} properties"),
        );
    }
    if let Some(max) = node.max_properties.filter(|max| n > *max) {
        out.add(
            Kind::TooMany(n, max),
            path,
            format!("{path} in body should have at most {max} properties"),
        );
    }
    for (key, item) in map
        .iter()
        .filter(|(key, _)| !node.properties.contains_key(*key))
    {
        match &node.additional {
            Additional::Any(false) => {
                let message = format!("{path}.{key} in body is a forbidden property");
                out.add(Kind::Invalid(gofmt::quoted(key)), path, message);
            }
            Additional::Schema(of) => {
                out.merge(outer(
                    of,
                    item,
                    old.and_then(|o| o.get(key)),
                    &format!("{path}.{key}"),
                    depth + 1,
                ));
            }
            _ => {}
        }
    }
    for (name, of) in &node.properties {
        if let Some(item) = map.get(name) {
            let at = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            out.merge(outer(
                of,
                item,
                old.and_then(|o| o.get(name)),
                &at,
                depth + 1,
            ));
        }
    }
    for name in node.required.iter().filter(|name| !map.contains_key(*name)) {
        let at = format!("{path}.{name}");
        out.add(Kind::Required, &at, format!("{at} in body is required"));
    }
    out
}

/// `allOf`, `anyOf`, `oneOf` and `not`.
fn combined(node: &Node, value: &Value, old: Option<&Value>, path: &str, depth: usize) -> Outcome {
    let mut out = Outcome::default();
    let quoted = gofmt::quoted(path);
    if !node.any_of.is_empty() {
        let (valid, best) = alternatives(&node.any_of, value, old, (path, depth), true);
        if valid == 0 {
            out.add(
                Kind::General,
                path,
                format!("{quoted} must validate at least one schema (anyOf)"),
            );
        }
        out.merge(best);
    }
    if !node.one_of.is_empty() {
        let (valid, best) = alternatives(&node.one_of, value, old, (path, depth), false);
        if valid != 1 {
            let more = if valid == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {valid} valid alternatives")
            };
            out.add(
                Kind::General,
                path,
                format!("{quoted} must validate one and only one schema (oneOf). {more}"),
            );
        }
        if valid <= 1 {
            out.merge(best);
        }
    }
    if !node.all_of.is_empty() {
        let mut valid = 0;
        for schema in &node.all_of {
            let result = inner(schema, value, old, path, depth + 1);
            valid += usize::from(result.is_valid());
            out.merge(result);
        }
        if valid < node.all_of.len() {
            let more = if valid == 0 { ". None validated" } else { "" };
            out.add(
                Kind::General,
                path,
                format!("{quoted} must validate all the schemas (allOf){more}"),
            );
        }
    }
    if node
        .not
        .as_ref()
        .is_some_and(|not| inner(not, value, old, path, depth + 1).is_valid())
    {
        out.add(
            Kind::General,
            path,
            format!("{quoted} must not validate the schema (not)"),
        );
    }
    out.matches += 1;
    out
}

/// The number of matching schemas, and the outcome to report: the first that matches, or else the
/// one that matches best.
fn alternatives(
    schemas: &[Node],
    value: &Value,
    old: Option<&Value>,
    (path, depth): (&str, usize),
    stop: bool,
) -> (usize, Outcome) {
    let (mut valid, mut first, mut best): (usize, Option<Outcome>, Option<Outcome>) =
        (0, None, None);
    for schema in schemas {
        let result = inner(schema, value, old, path, depth + 1);
        if result.is_valid() {
            valid += 1;
            first.get_or_insert(result);
            if stop {
                break;
            }
        } else if best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    (valid, first.or(best).unwrap_or_default())
}

#[cfg(test)]
mod tests;
