//! Texts of values: Go's `%v`, and JSON.
//!
//! Main functions: [`display`] and [`to_json`].

use super::error::ExprError;
use super::value::{Key, ListKind, MapKind, Value};
use crate::sprig::{DAYS, MONTHS, zone_name};
use crate::template::format;
use crate::{duration, json};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map as Members, Number, Value as Json};

/// Deepest value that is printed.
const MAX_DEPTH: usize = 1000;
/// The most bytes of a value in the text of an error.
const SHOWN: usize = 64 << 10;

/// What `%v` prints, with invalid UTF-8 replaced.
pub fn display(value: &Value) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

/// What `%v` prints.
pub(super) fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, 0, &mut out);
    out
}

/// The same for the text of an error, which a long value would hide.
pub(super) fn shown(value: &Value) -> String {
    if fits(value, SHOWN) {
        display(value)
    } else {
        "...".to_owned()
    }
}

/// Whether a value takes at most about so many bytes, also as JSON with its indentation.
pub(super) fn fits(value: &Value, mut bytes: usize) -> bool {
    take(value, 0, &mut bytes).is_some()
}

fn take(value: &Value, depth: usize, left: &mut usize) -> Option<()> {
    let text = match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len().saturating_mul(4),
        _ => 0,
    };
    *left = left.checked_sub(text.saturating_add(16 + 2 * depth))?;
    if depth > MAX_DEPTH {
        return Some(());
    }
    match value {
        Value::List(list) => list
            .items
            .iter()
            .try_for_each(|item| take(item, depth + 1, left)),
        Value::Map(map) => map.entries.iter().try_for_each(|(key, item)| {
            take(&key.value(), depth + 1, left)?;
            take(item, depth + 1, left)
        }),
        Value::Struct(of) => of
            .fields
            .iter()
            .try_for_each(|(_, field)| take(field, depth + 1, left)),
        _ => Some(()),
    }
}

fn write(value: &Value, depth: usize, out: &mut Vec<u8>) {
    let mut text = |text: &str| out.extend_from_slice(text.as_bytes());
    match value {
        Value::Nil => text("<nil>"),
        Value::Bool(b) => text(if *b { "true" } else { "false" }),
        Value::Int(_, i) => text(&i.to_string()),
        Value::Float(f) => text(&float(*f)),
        Value::Str(s) => out.extend_from_slice(s.as_bytes()),
        Value::Bytes(b) => {
            let numbers: Vec<String> = b.as_bytes().iter().map(u8::to_string).collect();
            text(&format!("[{}]", numbers.join(" ")));
        }
        Value::List(_) | Value::Map(_) if depth > MAX_DEPTH => text("..."),
        Value::List(list) => {
            out.push(b'[');
            for (i, item) in list.items.iter().enumerate() {
                if i > 0 {
                    out.push(b' ');
                }
                write(item, depth + 1, out);
            }
            out.push(b']');
        }
        Value::Map(map) => {
            out.extend_from_slice(b"map[");
            for (i, (key, item)) in map.entries.iter().enumerate() {
                if i > 0 {
                    out.push(b' ');
                }
                write(&key.value(), depth + 1, out);
                out.push(b':');
                write(item, depth + 1, out);
            }
            out.push(b']');
        }
        Value::Time(at) => text(&at.to_text()),
        Value::Duration(nanos) => text(&duration::to_string(*nanos)),
        Value::Month(month) => text(named(&MONTHS, i64::from(*month) - 1)),
        Value::Weekday(day) => text(named(&DAYS, i64::from(*day))),
        Value::Location(zone) => text(&zone_name(zone)),
        Value::Func(_) => text("func"),
        Value::Struct(_) if depth > MAX_DEPTH => text("..."),
        Value::Struct(value) => {
            out.push(b'{');
            for (i, (_, field)) in value.fields.iter().enumerate() {
                if i > 0 {
                    out.push(b' ');
                }
                write(field, depth + 1, out);
            }
            out.push(b'}');
        }
    }
}

fn named(names: &[&'static str], index: i64) -> &'static str {
    let index = usize::try_from(index).ok();
    index.and_then(|i| names.get(i)).copied().unwrap_or("")
}

pub(super) fn float(f: f64) -> String {
    let printed = format::sprint([&f.into()]).unwrap_or_default();
    String::from_utf8_lossy(&printed).into_owned()
}

/// `json.MarshalIndent` with two blanks.
pub(super) fn to_json(value: &Value) -> Result<String, ExprError> {
    Ok(json::to_string_pretty(&document(value, 0)?, "  "))
}

/// The value as a JSON document.
///
/// # Errors
/// For what JSON can not say: NaN, functions, and maps with other keys than texts.
pub(super) fn document(value: &Value, depth: usize) -> Result<Json, ExprError> {
    let unsupported = |what: &str| Err(ExprError::run(format!("json: unsupported {what}")));
    if depth > MAX_DEPTH {
        return unsupported("value: nested too deeply");
    }
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Int(_, i) | Value::Duration(i) => Json::Number((*i).into()),
        Value::Month(i) | Value::Weekday(i) => Json::Number((*i).into()),
        Value::Float(f) => match Number::from_f64(*f) {
            Some(number) => Json::Number(number),
            None => return unsupported(&format!("value: {}", float(*f))),
        },
        Value::Str(s) => Json::String(s.to_str().into_owned()),
        Value::Bytes(b) => Json::String(STANDARD.encode(b)),
        Value::List(list) if list.kind == ListKind::Absent => Json::Null,
        Value::List(list) => Json::Array(
            list.items
                .iter()
                .map(|item| document(item, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Value::Map(map) if map.kind != MapKind::Text => {
            return unsupported(&format!("type: {}", map.kind.go_type()));
        }
        Value::Map(map) => {
            let mut members = Members::new();
            for (key, item) in &map.entries {
                if let Key::Str(key) = key {
                    members.insert(key.to_str().into_owned(), document(item, depth + 1)?);
                }
            }
            Json::Object(members)
        }
        Value::Time(at) => Json::String(at.to_rfc3339()),
        Value::Location(_) => Json::Object(Members::new()),
        Value::Func(_) => return unsupported("type: func"),
        Value::Struct(value) => Json::Object(
            value
                .fields
                .iter()
                .map(|(name, field)| Ok(((*name).to_owned(), document(field, depth + 1)?)))
                .collect::<Result<Members<_, _>, ExprError>>()?,
        ),
    })
}
