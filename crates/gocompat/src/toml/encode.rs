//! Printing TOML: plain values first, then tables, each indented below its parent.
//!
//! Main function: [`to_string`].

use super::TomlError;
use crate::document::{Document, Field};
use crate::yaml::shortest_float;

/// The TOML text of a value. A value that is no table is printed alone.
pub fn to_string(value: &Document) -> Result<String, TomlError> {
    let mut out = String::new();
    match value {
        Document::Nil => return fails("reflect: call of reflect.Value.Type on zero Value"),
        Document::NilList => out.push_str("[]"),
        Document::NilMap => {}
        Document::Map(_) | Document::Struct(_) => {
            table_members(value, &mut Vec::new(), &mut out)?;
        }
        Document::List(_) if is_table_list(value)? => {
            return fails("toml: top-level values must be Go maps or structs");
        }
        other => element(other, &mut out)?,
    }
    Ok(out)
}

fn fails<T>(message: &str) -> Result<T, TomlError> {
    Err(TomlError(message.to_owned()))
}

/// What no key is written for.
fn is_nil(value: &Document) -> bool {
    matches!(value, Document::Nil | Document::NilList | Document::NilMap)
}

/// Whether it is a list of nothing but tables.
fn is_table_list(value: &Document) -> Result<bool, TomlError> {
    match value {
        Document::List(items) if items.iter().any(is_nil) => {
            fails("toml: cannot encode array with nil element")
        }
        Document::List(items) => Ok(!items.is_empty()
            && items
                .iter()
                .all(|item| matches!(item, Document::Map(_) | Document::Struct(_)))),
        _ => Ok(false),
    }
}

fn is_table(value: &Document) -> Result<bool, TomlError> {
    Ok(matches!(value, Document::Map(_) | Document::Struct(_)) || is_table_list(value)?)
}

/// A key of a map or a field of a struct.
#[derive(Clone, Copy)]
struct Member<'d> {
    name: &'d str,
    value: &'d Document,
    /// Where the struct has the field; a map has none.
    index: usize,
}

/// The members of a map or struct, in order, those that are tables themselves apart.
struct Members<'d> {
    plain: Vec<Member<'d>>,
    tables: Vec<Member<'d>>,
    is_struct: bool,
}

impl<'d> Members<'d> {
    fn of(value: &'d Document) -> Result<Self, TomlError> {
        let is_struct = matches!(value, Document::Struct(_));
        let all: Vec<Member<'d>> = match value {
            Document::Struct(fields) => {
                let member = |field: &'d Field| Member {
                    name: field.name,
                    value: &field.value,
                    index: field.index,
                };
                fields.iter().map(member).collect()
            }
            Document::Map(members) => {
                let mut members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| Member {
                        name,
                        value,
                        index: 0,
                    })
                    .collect();
                members.sort_by_key(|member| member.name);
                members
            }
            _ => Vec::new(),
        };
        let (mut plain, mut tables) = (Vec::new(), Vec::new());
        for member in all {
            if is_table(member.value)? {
                &mut tables
            } else {
                &mut plain
            }
            .push(member);
        }
        Ok(Self {
            plain,
            tables,
            is_struct,
        })
    }
}

/// The members of a table whose path is `path`.
fn table_members<'d>(
    value: &'d Document,
    path: &mut Vec<&'d str>,
    out: &mut String,
) -> Result<(), TomlError> {
    let Members { plain, tables, .. } = Members::of(value)?;
    for member in plain.into_iter().filter(|member| !is_nil(member.value)) {
        path.push(member.name);
        indent(path, out);
        out.push_str(&format!("{} = ", key_text(member.name)));
        element(member.value, out)?;
        out.push('\n');
        path.pop();
    }
    for member in tables {
        path.push(member.name);
        match member.value {
            Document::List(items) => table_list(items, path, out)?,
            value => table(value, path, out)?,
        }
        path.pop();
    }
    Ok(())
}

fn table<'d>(
    value: &'d Document,
    path: &mut Vec<&'d str>,
    out: &mut String,
) -> Result<(), TomlError> {
    if path.len() == 1 && !out.is_empty() {
        out.push('\n');
    }
    indent(path, out);
    out.push_str(&format!("[{}]\n", dotted(path)));
    table_members(value, path, out)
}

fn table_list<'d>(
    items: &'d [Document],
    path: &mut Vec<&'d str>,
    out: &mut String,
) -> Result<(), TomlError> {
    for item in items {
        if !out.is_empty() {
            out.push('\n');
        }
        indent(path, out);
        out.push_str(&format!("[[{}]]\n", dotted(path)));
        table_members(item, path, out)?;
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
fn element(value: &Document, out: &mut String) -> Result<(), TomlError> {
    match value {
        Document::Nil | Document::NilList | Document::NilMap => {
            return fails("toml: cannot encode array with nil element");
        }
        Document::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Document::Int(int) => out.push_str(&int.to_string()),
        Document::Uint(uint) => out.push_str(&uint.to_string()),
        Document::Float(float) => out.push_str(&float_text(*float)),
        Document::Text(text) => out.push_str(&quoted(text)),
        Document::Time(text) => out.push_str(text),
        Document::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                element(item, out)?;
            }
            out.push(']');
        }
        Document::Map(_) | Document::Struct(_) => inline(value, out)?,
    }
    Ok(())
}

/// A table on one line. Where its commas are is decided by position: in a map a nil leaves a hole,
/// and a field of a struct is the last one when its index is the number of exported fields less
/// one, so a field that is not exported moves the hole (no parser reads that, but Helm prints it).
fn inline(value: &Document, out: &mut String) -> Result<(), TomlError> {
    let Members {
        plain,
        tables,
        is_struct,
    } = Members::of(value)?;
    let in_all = plain.len() + tables.len();
    out.push('{');
    for (i, member) in plain.into_iter().chain(tables).enumerate() {
        if is_nil(member.value) {
            continue;
        }
        out.push_str(&format!("{} = ", key_text(member.name)));
        element(member.value, out)?;
        let last = if is_struct {
            member.index + 1 == in_all
        } else {
            i + 1 == in_all
        };
        out.push_str(if last { "" } else { ", " });
    }
    out.push('}');
    Ok(())
}

fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
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
