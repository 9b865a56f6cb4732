//! Printing TOML: plain values first, then tables, each indented below its parent.
//!
//! Main function: [`to_string`].

use super::TomlError;
use crate::yaml::shortest_float;
use serde_json::{Map, Number, Value};

/// The TOML text of a value. A value that is not a table is printed alone.
pub fn to_string(value: &Value) -> Result<String, TomlError> {
    let mut out = String::new();
    match value {
        Value::Null => return fails("reflect: call of reflect.Value.Type on zero Value"),
        Value::Object(map) => members(map, &mut Vec::new(), &mut out)?,
        Value::Array(_) if is_table_list(value)? => {
            return fails("toml: top-level values must be Go maps or structs");
        }
        other => element(other, &mut out)?,
    }
    Ok(out)
}

fn fails<T>(message: &str) -> Result<T, TomlError> {
    Err(TomlError(message.to_owned()))
}

/// Whether it is a list that contains only tables.
fn is_table_list(value: &Value) -> Result<bool, TomlError> {
    match value {
        Value::Array(items) if items.iter().any(Value::is_null) => {
            fails("toml: cannot encode array with nil element")
        }
        Value::Array(items) => Ok(!items.is_empty() && items.iter().all(Value::is_object)),
        _ => Ok(false),
    }
}

fn is_table(value: &Value) -> Result<bool, TomlError> {
    Ok(value.is_object() || is_table_list(value)?)
}

/// The members of a table at `path`: those that are tables themselves come last.
fn members<'v>(
    map: &'v Map<String, Value>,
    path: &mut Vec<&'v str>,
    out: &mut String,
) -> Result<(), TomlError> {
    for tables in [false, true] {
        for (key, value) in sorted(map) {
            if value.is_null() || is_table(value)? != tables {
                continue;
            }
            path.push(key);
            match value {
                Value::Object(inner) => table(inner, path, out)?,
                Value::Array(items) if tables => table_list(items, path, out)?,
                value => {
                    indent(path, out);
                    out.push_str(&key_text(key));
                    out.push_str(" = ");
                    element(value, out)?;
                    out.push('\n');
                }
            }
            path.pop();
        }
    }
    Ok(())
}

fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = map.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    members
}

fn table<'v>(
    map: &'v Map<String, Value>,
    path: &mut Vec<&'v str>,
    out: &mut String,
) -> Result<(), TomlError> {
    if path.len() == 1 && !out.is_empty() {
        out.push('\n');
    }
    indent(path, out);
    out.push_str(&format!("[{}]\n", dotted(path)));
    members(map, path, out)
}

fn table_list<'v>(
    items: &'v [Value],
    path: &mut Vec<&'v str>,
    out: &mut String,
) -> Result<(), TomlError> {
    for item in items.iter().filter_map(Value::as_object) {
        if !out.is_empty() {
            out.push('\n');
        }
        indent(path, out);
        out.push_str(&format!("[[{}]]\n", dotted(path)));
        members(item, path, out)?;
    }
    Ok(())
}

fn indent(path: &[&str], out: &mut String) {
    (1..path.len()).for_each(|_| out.push_str("  "));
}

fn dotted(path: &[&str]) -> String {
    path.iter()
        .map(|key| key_text(key))
        .collect::<Vec<_>>()
        .join(".")
}

fn key_text(key: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// A value on one line.
fn element(value: &Value, out: &mut String) -> Result<(), TomlError> {
    match value {
        Value::Null => return fails("toml: cannot encode array with nil element"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => out.push_str(&quoted(s)),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                element(item, out)?;
            }
            out.push(']');
        }
        Value::Object(map) => inline(map, out)?,
    }
    Ok(())
}

fn inline(map: &Map<String, Value>, out: &mut String) -> Result<(), TomlError> {
    let (mut plain, mut tables) = (Vec::new(), Vec::new());
    for (key, value) in sorted(map) {
        if is_table(value)? {
            &mut tables
        } else {
            &mut plain
        }
        .push((key, value));
    }
    // A comma is printed by position, even where a null was skipped.
    let last = [plain.len(), tables.len()];
    out.push('{');
    for (group, members) in [plain, tables].into_iter().enumerate() {
        for (i, (key, value)) in members
            .into_iter()
            .enumerate()
            .filter(|(_, (_, value))| !value.is_null())
        {
            out.push_str(&format!("{} = ", key_text(key)));
            element(value, out)?;
            if i + 1 != last[group] || (group == 0 && last[1] > 0) {
                out.push_str(", ");
            }
        }
    }
    out.push('}');
    Ok(())
}

fn number(n: &Number) -> String {
    let Some(float) = n.as_f64().filter(|_| n.is_f64()) else {
        return n.to_string();
    };
    let text = shortest_float(float);
    if text.contains(['e', '.']) {
        text
    } else {
        text + ".0"
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
