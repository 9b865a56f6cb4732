//! What is wrong with values, in the words and the indentation of the schema library that Helm uses.
//!
//! Main function: [`lines`].

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;
use std::collections::HashMap;
use tiphys_gocompat::text::{float, quote};

/// One line an error, the reasons of a combination indented below it.
pub(super) fn lines(errors: &[ValidationError<'_>], values: &Value) -> String {
    let mut out = String::new();
    write(&tree(&errors.iter().collect::<Vec<_>>(), 0, values), 0, &mut out);
    out
}

/// In which order a schema is held against a value: what fails here is told alone.
fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::Type { .. } => 0,
        Kind::Constant { .. } => 1,
        Kind::Enum { .. } => 2,
        _ => 3,
    }
}

/// The errors without those that come after one with which its schema ends.
fn told<'a, 'b>(errors: &[&'a ValidationError<'b>]) -> Vec<&'a ValidationError<'b>> {
    let mut ends: HashMap<String, Vec<(Vec<String>, u8)>> = HashMap::new();
    for error in errors.iter().filter(|e| rank(e.kind()) < 3) {
        let mut schema = segments(error);
        schema.pop();
        ends.entry(error.instance_path().to_string()).or_default().push((schema, rank(error.kind())));
    }
    let is_told = |error: &&&ValidationError<'_>| {
        let Some(ends) = ends.get(&error.instance_path().to_string()) else { return true };
        let path = segments(error);
        !ends.iter().any(|(schema, end)| {
            let own = if path.len() == schema.len() + 1 { rank(error.kind()) } else { 3 };
            path.len() > schema.len() && path.starts_with(schema) && own > *end
        })
    };
    errors.iter().filter(is_told).copied().collect()
}

struct Entry {
    place: String,
    message: String,
    causes: Vec<Entry>,
}

fn write(entries: &[Entry], depth: usize, out: &mut String) {
    for entry in entries {
        out.push_str(&format!("{}- at {}: {}\n", "  ".repeat(depth), quoted(&entry.place), entry.message));
        write(&entry.causes, depth + 1, out);
    }
}

/// Errors of one schema; `from` segments of their paths are behind us. What comes through one `allOf` stands below one entry.
fn tree(errors: &[&ValidationError<'_>], from: usize, values: &Value) -> Vec<Entry> {
    let mut entries = Vec::new();
    let errors = told(errors);
    let mut rest = errors.as_slice();
    while let [first, ..] = rest {
        let path = segments(first);
        let same = |len: usize| rest.iter().take_while(|e| segments(e).get(..len) == path.get(..len)).count();
        let taken = if let Some(group) = group(&path, from) {
            let taken = same(group.keyword + 1);
            entries.push(all_of(&rest[..taken], &group, values));
            taken
        } else if matches!(first.kind(), Kind::Required { .. }) {
            let alike = |e: &&&ValidationError<'_>| {
                matches!(e.kind(), Kind::Required { .. }) && segments(e) == path && e.instance_path() == first.instance_path()
            };
            let taken = rest.iter().take_while(alike).count();
            entries.push(required(&rest[..taken], &path));
            taken
        } else {
            entries.extend(single(first, path.len(), values));
            1
        };
        rest = &rest[taken..];
    }
    entries
}

/// An `allOf` on the way of an error.
struct Group {
    /// Where in the path the keyword stands.
    keyword: usize,
    /// How far below the group's place the error is.
    below: usize,
}

fn group(path: &[String], from: usize) -> Option<Group> {
    let mut found = None;
    let mut below = 0;
    let mut at = 0;
    while at < path.len() {
        let (width, descends) = match path[at].as_str() {
            "properties" | "patternProperties" => (2, true),
            "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "contains" | "additionalItems" => (1, true),
            "items" if path.get(at + 1).is_some_and(|next| next.parse::<usize>().is_ok()) => (2, true),
            "items" => (1, true),
            "prefixItems" => (2, true),
            "$defs" | "definitions" | "dependentSchemas" | "dependencies" | "anyOf" | "oneOf" => (2, false),
            "allOf" => {
                if at >= from && found.is_none() {
                    found = Some(at);
                }
                (2, false)
            }
            _ => (1, false),
        };
        below += usize::from(descends && found.is_some() && at + width < path.len());
        at += width;
    }
    found.map(|keyword| Group { keyword, below })
}

/// Each schema of the list is one reason, or a group of them.
fn all_of(errors: &[&ValidationError<'_>], group: &Group, values: &Value) -> Entry {
    let place = above(&errors[0].instance_path().to_string(), group.below);
    let mut causes = Vec::new();
    let mut rest = errors;
    while let [first, ..] = rest {
        let index = segments(first).get(group.keyword + 1).cloned();
        let taken = rest.iter().take_while(|e| segments(e).get(group.keyword + 1) == index.as_ref()).count();
        causes.push(grouped(tree(&rest[..taken], group.keyword + 2, values), &place));
        rest = &rest[taken..];
    }
    Entry { place, message: "'allOf' failed".to_owned(), causes: causes.into_iter().flatten().collect() }
}

/// Several errors of one schema stand below a line of their own.
fn grouped(mut entries: Vec<Entry>, place: &str) -> Vec<Entry> {
    if entries.len() > 1 {
        entries = vec![Entry { place: place.to_owned(), message: "validation failed".to_owned(), causes: entries }];
    }
    entries
}

fn required(errors: &[&ValidationError<'_>], path: &[String]) -> Entry {
    let names: Vec<&str> =
        errors.iter().filter_map(|e| if let Kind::Required { property } = e.kind() { property.as_str() } else { None }).collect();
    let list = joined(&names);
    let cause = path.iter().rposition(|s| s == "dependentRequired" || s == "dependencies").and_then(|at| path.get(at + 1));
    let message = match cause {
        Some(name) => format!("properties {list} required, if {} exists", quoted(name)),
        None if names.len() == 1 => format!("missing property {list}"),
        None => format!("missing properties {list}"),
    };
    Entry { place: errors[0].instance_path().to_string(), message, causes: Vec::new() }
}

fn single(error: &ValidationError<'_>, depth: usize, values: &Value) -> Vec<Entry> {
    let place = error.instance_path().to_string();
    let alternatives = |context: &Vec<Vec<ValidationError<'static>>>| {
        let each = context.iter().map(|errors| grouped(tree(&errors.iter().collect::<Vec<_>>(), depth + 1, values), &place));
        each.flatten().collect::<Vec<_>>()
    };
    let (message, causes) = match error.kind() {
        Kind::AnyOf { context } => ("'anyOf' failed".to_owned(), alternatives(context)),
        Kind::OneOfNotValid { context } => ("'oneOf' failed, none matched".to_owned(), alternatives(context)),
        Kind::OneOfMultipleValid { context } => {
            let matched: Vec<String> =
                context.iter().enumerate().filter(|(_, e)| e.is_empty()).map(|(i, _)| i.to_string()).take(2).collect();
            (format!("'oneOf' failed, subschemas {} matched", matched.join(", ")), Vec::new())
        }
        Kind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default().to_owned();
            let mut causes = tree(&[error], depth, values);
            causes.iter_mut().for_each(|cause| cause.place.clear());
            return vec![Entry { place: String::new(), message: format!("invalid propertyName {}", quoted(&name)), causes }];
        }
        Kind::UnevaluatedProperties { unexpected } | Kind::UnevaluatedItems { unexpected } => {
            let one = |name: &String| {
                let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                Entry { place, message: "false schema".to_owned(), causes: Vec::new() }
            };
            return unexpected.iter().map(one).collect();
        }
        // the object of which nothing is allowed is known by its place only
        Kind::FalseSchema if error.schema_path().to_string().ends_with("/additionalProperties") => {
            let object = values.pointer(&place).and_then(Value::as_object);
            let names: Vec<&str> = object.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            (format!("additional properties {} not allowed", joined(&names)), Vec::new())
        }
        kind => (message(kind, error), Vec::new()),
    };
    vec![Entry { place, message, causes }]
}

fn message(kind: &Kind, error: &ValidationError<'_>) -> String {
    let instance = error.instance().as_ref();
    let got = instance.as_f64().map_or_else(String::new, number);
    let length = |value: &Value| match value {
        Value::String(s) => s.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    let limit = |what: &str, limit: &Value| format!("{what}: got {got}, want {}", limit.as_f64().map_or_else(String::new, number));
    let count = |what: &str, limit: u64| {
        format!("{what}: got {}, want {}", thousands(&length(instance).to_string()), thousands(&limit.to_string()))
    };
    match kind {
        Kind::Type { kind } => format!("got {}, want {}", json_type(instance), wanted(kind)),
        Kind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some(list) if list.iter().any(|v| v.is_array() || v.is_object()) => "'enum' failed".to_owned(),
            Some([one]) => format!("value must be {}", shown(one)),
            Some(list) => format!("value must be one of {}", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
            None => "'enum' failed".to_owned(),
        },
        Kind::Constant { expected_value } if expected_value.is_array() || expected_value.is_object() => "'const' failed".to_owned(),
        Kind::Constant { expected_value } => format!("value must be {}", shown(expected_value)),
        Kind::Minimum { limit: l } => limit("minimum", l),
        Kind::Maximum { limit: l } => limit("maximum", l),
        Kind::ExclusiveMinimum { limit: l } => limit("exclusiveMinimum", l),
        Kind::ExclusiveMaximum { limit: l } => limit("exclusiveMaximum", l),
        Kind::MultipleOf { multiple_of } => format!("multipleOf: got {got}, want {}", number(*multiple_of)),
        Kind::MinLength { limit } => count("minLength", *limit),
        Kind::MaxLength { limit } => count("maxLength", *limit),
        Kind::MinItems { limit } => count("minItems", *limit),
        Kind::MaxItems { limit } => count("maxItems", *limit),
        Kind::MinProperties { limit } => count("minProperties", *limit),
        Kind::MaxProperties { limit } => count("maxProperties", *limit),
        Kind::Pattern { pattern } => format!("{} does not match pattern {}", shown(instance), quoted(pattern)),
        Kind::Format { format } => format!("{} is not valid {format}", shown(instance)),
        Kind::Not { .. } => "'not' failed".to_owned(),
        Kind::FalseSchema => "false schema".to_owned(),
        Kind::Contains => "no items match contains schema".to_owned(),
        Kind::UniqueItems => duplicates(instance),
        Kind::AdditionalItems { limit } => format!("last {} additionalItem(s) not allowed", length(instance).saturating_sub(*limit)),
        Kind::AdditionalProperties { unexpected } => {
            format!("additional properties {} not allowed", joined(&unexpected.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        _ => error.to_string(),
    }
}

fn duplicates(list: &Value) -> String {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = (0..items.len()).find_map(|j| items[..j].iter().position(|item| *item == items[j]).map(|i| (i, j)));
    pair.map_or_else(|| "items are equal".to_owned(), |(i, j)| format!("items at {i} and {j} are equal"))
}

/// The keywords and indices that led to the schema.
fn segments(error: &ValidationError<'_>) -> Vec<String> {
    let path = error.evaluation_path().to_string();
    path.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~")).collect()
}

/// A place so many steps further up.
fn above(place: &str, steps: usize) -> String {
    (0..steps).fold(place, |place, _| place.rsplit_once('/').map_or("", |(up, _)| up)).to_owned()
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wanted(kind: &TypeKind) -> String {
    let names: Vec<&str> = match kind {
        TypeKind::Single(one) => vec![one.as_str()],
        TypeKind::Multiple(set) => set.iter().map(|one| one.as_str()).collect(),
    };
    let order = ["null", "boolean", "number", "integer", "string", "array", "object"];
    order.into_iter().filter(|name| names.contains(name)).collect::<Vec<_>>().join(" or ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => quoted(s),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let quoted = quote(text);
    format!("'{}'", quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('\'', "\\'"))
}

fn joined(names: &[&str]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// A number as golang.org/x/text prints it in English: 1,234.5 and 1.5×10⁰⁷.
fn number(f: f64) -> String {
    let text = float(f);
    let Some((digits, power)) = text.split_once('e') else { return thousands(&text) };
    let raised = |c: char| match c {
        '-' => '⁻',
        c => c.to_digit(10).map_or(c, |d| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][d as usize]),
    };
    format!("{digits}×10{}", power.trim_start_matches('+').chars().map(raised).collect::<String>())
}

fn thousands(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    format!("{sign}{out}{fraction}")
}
