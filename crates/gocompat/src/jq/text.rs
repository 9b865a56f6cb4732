//! Values as texts: JSON as gojq prints it, and the short form in its messages.
//!
//! Main functions: [`to_json`], [`preview`] and [`described`].

use super::value::Val;
use std::fmt::Write;

/// How much of a value is shown in a message.
const SHOWN: usize = 30;

pub fn to_json(value: &Val) -> String {
    let mut out = String::new();
    write(value, usize::MAX, &mut out);
    out
}

/// JSON, truncated with dots if it is long.
pub fn preview(value: &Val) -> String {
    let mut out = String::new();
    write(value, SHOWN + 2, &mut out);
    if out.len() <= SHOWN {
        return out;
    }
    let trailing = match value {
        Val::Text(_) => " ...\"",
        Val::List(_) => " ...]",
        Val::Map(_) => " ...}",
        _ => " ...",
    };
    let mut end = (SHOWN - trailing.len()).min(out.len());
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    out + trailing
}

/// A value in messages: its kind and its preview.
pub fn described(value: &Val) -> String {
    match value {
        Val::Null | Val::Deleted => "null".to_owned(),
        value => format!("{} ({})", value.kind(), preview(value)),
    }
}

/// Writes JSON until at least this many bytes are written.
fn write(value: &Val, enough: usize, out: &mut String) {
    match value {
        Val::Null | Val::Deleted => out.push_str("null"),
        Val::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Val::Int(n) => drop(write!(out, "{n}")),
        Val::Big(n) => out.push_str(&n.to_string()),
        Val::Float(f) if f.is_nan() => out.push_str("null"),
        Val::Float(f) => out.push_str(&crate::json::float(finite(*f))),
        Val::Text(text) => quote(text, enough, out),
        Val::List(list) => {
            out.push('[');
            for (i, item) in list.items.iter().enumerate() {
                if out.len() >= enough {
                    return;
                }
                if i > 0 {
                    out.push(',');
                }
                write(item, enough, out);
            }
            out.push(']');
        }
        Val::Map(map) => {
            out.push('{');
            for (i, (key, item)) in map.items.iter().enumerate() {
                if out.len() >= enough {
                    return;
                }
                if i > 0 {
                    out.push(',');
                }
                quote(key, enough, out);
                out.push(':');
                write(item, enough, out);
            }
            out.push('}');
        }
    }
}

/// JSON has no infinity: it is replaced by the largest number.
pub fn finite(f: f64) -> f64 {
    f.clamp(-f64::MAX, f64::MAX)
}

fn quote(text: &str, enough: usize, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if out.len() >= enough {
            return;
        }
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\u{7f}' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
