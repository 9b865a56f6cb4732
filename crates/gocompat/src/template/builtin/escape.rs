//! `html`, `js` and `urlquery`.

use super::super::error::Error;
use super::super::format::{print_value, sprint};
use super::super::function::Call;
use super::super::unicode::decode;
use super::super::value::Value;
use super::text;
use crate::printable::is_print;

/// The arguments as text; no arguments give `<no value>`.
fn joined(call: &Call<'_>) -> Result<Vec<u8>, Error> {
    let args: Vec<Value> = call
        .rest(0)
        .map(|v| {
            if matches!(v, Value::Nil) {
                Value::from("<no value>")
            } else {
                v.clone()
            }
        })
        .collect();
    match &args[..] {
        // Printed as by an action, without a sign that it is a pointer.
        [object @ Value::Object(_)] => print_value(object, usize::MAX),
        args => sprint(args),
    }
}

pub fn html(call: &mut Call<'_>) -> Result<Value, Error> {
    let mut out = Vec::new();
    for b in joined(call)? {
        match b {
            0 => out.extend("\u{fffd}".bytes()),
            b'"' => out.extend(b"&#34;"),
            b'\'' => out.extend(b"&#39;"),
            b'&' => out.extend(b"&amp;"),
            b'<' => out.extend(b"&lt;"),
            b'>' => out.extend(b"&gt;"),
            _ => out.push(b),
        }
    }
    text(call, out)
}

pub fn js(call: &mut Call<'_>) -> Result<Value, Error> {
    let source = joined(call)?;
    let mut out = Vec::new();
    let mut rest = &source[..];
    while !rest.is_empty() {
        let (rune, width) = decode(rest);
        match rune {
            '\\' | '\'' | '"' => out.extend([b'\\', rest[0]]),
            '<' | '>' | '&' | '=' | '\0'..' ' => {
                out.extend(format!("\\u{:04X}", u32::from(rune)).bytes())
            }
            c if c.is_ascii() || is_print(c) => out.extend(&rest[..width]),
            c => out.extend(format!("\\u{:04X}", u32::from(c)).bytes()),
        }
        rest = &rest[width..];
    }
    text(call, out)
}

pub fn url_query(call: &mut Call<'_>) -> Result<Value, Error> {
    let mut out = Vec::new();
    for b in joined(call)? {
        match b {
            b' ' => out.push(b'+'),
            b'-' | b'_' | b'.' | b'~' => out.push(b),
            b if b.is_ascii_alphanumeric() => out.push(b),
            b => out.extend(format!("%{b:02X}").bytes()),
        }
    }
    text(call, out)
}
