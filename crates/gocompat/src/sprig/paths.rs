//! Functions of slash-separated paths. On Linux, where Helm usually runs, the functions for the
//! operating system's paths are the same.
//!
//! Main value: [`TABLE`].

use super::args::{Out, string};
use crate::template::{Call, Function, Type, Value};

const ONE: &[Type] = &[Type::String];

pub(super) const TABLE: &[(&str, Function)] = &[
    ("base", Function::new(ONE, |call| mapped(call, base))),
    ("osBase", Function::new(ONE, |call| mapped(call, base))),
    ("dir", Function::new(ONE, |call| mapped(call, dir))),
    ("osDir", Function::new(ONE, |call| mapped(call, dir))),
    ("clean", Function::new(ONE, |call| mapped(call, clean))),
    ("osClean", Function::new(ONE, |call| mapped(call, clean))),
    ("ext", Function::new(ONE, |call| mapped(call, ext))),
    ("osExt", Function::new(ONE, |call| mapped(call, ext))),
    ("isAbs", Function::new(ONE, is_abs)),
    ("osIsAbs", Function::new(ONE, is_abs)),
];

fn mapped(call: &Call<'_>, map: fn(&[u8]) -> Vec<u8>) -> Out {
    string(call.budget(), map(call.string(0)?.as_bytes()))
}

fn is_abs(call: &mut Call<'_>) -> Out {
    Ok(Value::Bool(call.string(0)?.as_bytes().starts_with(b"/")))
}

/// The last element.
fn base(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let end = path
        .iter()
        .rposition(|b| *b != b'/')
        .map_or(0, |last| last + 1);
    match path[..end].rsplit(|b| *b == b'/').next() {
        Some(name) if !name.is_empty() => name.to_vec(),
        _ => b"/".to_vec(),
    }
}

/// All except the last element, cleaned.
fn dir(path: &[u8]) -> Vec<u8> {
    clean(&path[..path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1)])
}

/// The shortest equivalent path.
fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", &joined[..]].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

/// The text from the last dot of the last element on.
fn ext(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    name.iter()
        .rposition(|b| *b == b'.')
        .map_or(Vec::new(), |dot| name[dot..].to_vec())
}
