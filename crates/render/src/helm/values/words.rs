//! The messages of the schema library that Helm uses, one per keyword.
//!
//! Main function: [`message`].

use super::formats;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;
use tiphys_gocompat::text::{float, quote};

/// What a list is told that has no item of its `contains`.
pub(super) const NO_ITEM: &str = "no items match contains schema";

pub(super) fn message(kind: &Kind, error: &ValidationError<'_>) -> String {
    let instance = error.instance().as_ref();
    let got = instance.as_f64().map_or_else(String::new, number);
    let length = |value: &Value| match value {
        Value::String(s) => s.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    let limit = |what: &str, limit: &Value| {
        format!(
            "{what}: got {got}, want {}",
            limit.as_f64().map_or_else(String::new, number)
        )
    };
    let count = |what: &str, limit: u64| {
        format!(
            "{what}: got {}, want {}",
            thousands(&length(instance).to_string()),
            thousands(&limit.to_string())
        )
    };
    match kind {
        Kind::Type { kind } => format!("got {}, want {}", json_type(instance), wanted(kind)),
        Kind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some(list) if list.iter().any(|v| v.is_array() || v.is_object()) => {
                "'enum' failed".to_owned()
            }
            Some([one]) => format!("value must be {}", shown(one)),
            Some(list) => format!(
                "value must be one of {}",
                list.iter().map(shown).collect::<Vec<_>>().join(", ")
            ),
            None => "'enum' failed".to_owned(),
        },
        Kind::Constant { expected_value }
            if expected_value.is_array() || expected_value.is_object() =>
        {
            "'const' failed".to_owned()
        }
        Kind::Constant { expected_value } => format!("value must be {}", shown(expected_value)),
        Kind::Minimum { limit: l } => limit("minimum", l),
        Kind::Maximum { limit: l } => limit("maximum", l),
        Kind::ExclusiveMinimum { limit: l } => limit("exclusiveMinimum", l),
        Kind::ExclusiveMaximum { limit: l } => limit("exclusiveMaximum", l),
        Kind::MultipleOf { multiple_of } => {
            format!("multipleOf: got {got}, want {}", number(*multiple_of))
        }
        Kind::MinLength { limit } => count("minLength", *limit),
        Kind::MaxLength { limit } => count("maxLength", *limit),
        Kind::MinItems { limit } => count("minItems", *limit),
        Kind::MaxItems { limit } => count("maxItems", *limit),
        Kind::MinProperties { limit } => count("minProperties", *limit),
        Kind::MaxProperties { limit } => count("maxProperties", *limit),
        Kind::Pattern { pattern } => format!(
            "{} does not match pattern {}",
            shown(instance),
            quoted(pattern)
        ),
        Kind::Format { format } => {
            let why = instance
                .as_str()
                .and_then(|text| formats::refused(format, text));
            format!(
                "{} is not valid {format}: {}",
                shown(instance),
                why.unwrap_or_default()
            )
        }
        Kind::Not { .. } => "'not' failed".to_owned(),
        Kind::FalseSchema => "false schema".to_owned(),
        Kind::Contains => NO_ITEM.to_owned(),
        Kind::UniqueItems => duplicates(instance),
        Kind::AdditionalItems { limit } => format!(
            "last {} additionalItem(s) not allowed",
            length(instance).saturating_sub(*limit)
        ),
        Kind::AdditionalProperties { unexpected } => {
            format!(
                "additional properties {} not allowed",
                joined(&unexpected.iter().map(String::as_str).collect::<Vec<_>>())
            )
        }
        _ => error.to_string(),
    }
}

fn duplicates(list: &Value) -> String {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = (0..items.len()).find_map(|j| {
        items[..j]
            .iter()
            .position(|item| *item == items[j])
            .map(|i| (i, j))
    });
    pair.map_or_else(
        || "items are equal".to_owned(),
        |(i, j)| format!("items at {i} and {j} are equal"),
    )
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
    let order = [
        "null", "boolean", "number", "integer", "string", "array", "object",
    ];
    order
        .into_iter()
        .filter(|name| names.contains(name))
        .collect::<Vec<_>>()
        .join(" or ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => quoted(s),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
        other => other.to_string(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    // A backslash at the end of the text goes with the quote behind it.
    let quoted = quote(text).replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{}'", &quoted[1..quoted.len() - 1])
}

pub(super) fn joined(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A number as golang.org/x/text prints it in English: 1,234.5 and 1.5×10⁰⁷.
pub(super) fn number(f: f64) -> String {
    let text = float(f);
    let Some((digits, power)) = text.split_once('e') else {
        return thousands(&text);
    };
    let raised = |c: char| match c {
        '-' => '⁻',
        c => c.to_digit(10).map_or(c, |d| {
            ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][d as usize]
        }),
    };
    format!(
        "{digits}×10{}",
        power
            .trim_start_matches('+')
            .chars()
            .map(raised)
            .collect::<String>()
    )
}

fn thousands(text: &str) -> String {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
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
