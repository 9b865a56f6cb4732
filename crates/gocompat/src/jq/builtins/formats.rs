//! `@html`, `@uri`, `@csv`, `@sh`, `@base64` and the like.
//!
//! Main value: [`TABLE`].

use super::{Native, fails_on, native, refuses};
use crate::jq::{
    budget::Budget,
    fault::{Out, fail},
    text::{described, to_json},
    value::Val,
};
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use std::fmt::Write;

pub const TABLE: &[Native] = &[
    Native::deep("@html", 0, |_, v, _| {
        let escaped = |c: char| match c {
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '&' => "&amp;".into(),
            '\'' => "&apos;".into(),
            '"' => "&quot;".into(),
            c => c.to_string(),
        };
        Ok(Val::text(shown(v).chars().map(escaped).collect::<String>()))
    }),
    Native::deep("@uri", 0, |_, v, _| Ok(Val::text(uri(&shown(v))))),
    Native::deep("@urid", 0, |_, v, _| from_uri(v, &shown(v))),
    Native::deep("@csv", 0, |_, v, _| {
        row("csv", v, ",", |text| {
            format!("\"{}\"", text.replace('"', "\"\"").replace('\0', "\\0"))
        })
    }),
    Native::deep("@tsv", 0, |_, v, _| {
        row("tsv", v, "\t", |text| {
            let escaped = text
                .replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\r', "\\r");
            escaped.replace('\n', "\\n").replace('\0', "\\0")
        })
    }),
    Native::deep("@sh", 0, |_, v, _| {
        let list = if v.as_list().is_some() {
            v.clone()
        } else {
            Val::list(vec![v.clone()])
        };
        row("sh", &list, " ", |text| {
            format!("'{}'", text.replace('\'', "'\\''").replace('\0', "\\0"))
        })
    }),
    Native::deep("@base64", 0, |_, v, _| {
        Ok(Val::text(
            base64::engine::general_purpose::STANDARD.encode(shown(v)),
        ))
    }),
    Native::deep("@base64d", 0, |_, v, _| from_base64(v, &shown(v))),
    Native::deep("format", 1, |budget, v, a| format(budget, v, &a[0])),
];

/// The standard alphabet, with or without padding.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

fn format(budget: &mut Budget, value: &Val, name: &Val) -> Out {
    let Some(text) = name.as_text() else {
        return refuses("format", name);
    };
    let found = match text {
        "text" => Some(native("tostring", 0)),
        "json" => Some(native("tojson", 0)),
        name => TABLE
            .iter()
            .find(|format| format.name.strip_prefix('@') == Some(name)),
    };
    found.map_or_else(
        || fail(format!("format not defined: @{text}")),
        |format| format.call(budget, value, &[]),
    )
}

fn shown(value: &Val) -> String {
    value
        .as_text()
        .map_or_else(|| to_json(value), str::to_owned)
}

fn uri(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte))
            }
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

fn from_uri(value: &Val, text: &str) -> Out {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u8::from_str_radix(d, 16).ok());
        let Some(byte) = byte else {
            let bad = String::from_utf8_lossy(&after[..after.len().min(2)]);
            return fails_on("@urid", value, &format!("invalid URL escape \"%{bad}\""));
        };
        bytes.push(byte);
        rest = &after[2..];
    }
    Ok(Val::text(String::from_utf8_lossy(&bytes)))
}

fn from_base64(value: &Val, text: &str) -> Out {
    let unpadded: String = text
        .split('=')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| !matches!(c, '\r' | '\n'))
        .collect();
    match DECODER.decode(&unpadded) {
        Ok(bytes) => Ok(Val::text(String::from_utf8_lossy(&bytes))),
        Err(_) => {
            let foreign = unpadded
                .bytes()
                .position(|b| !(b.is_ascii_alphanumeric() || b == b'+' || b == b'/'));
            let at = foreign.unwrap_or(unpadded.len() / 4 * 4);
            fails_on(
                "@base64d",
                value,
                &format!("illegal base64 data at input byte {at}"),
            )
        }
    }
}

/// The values of a list, separated; texts are escaped by the format.
fn row(name: &str, value: &Val, separator: &str, escape: impl Fn(&str) -> String) -> Out {
    let Some(list) = value.as_list() else {
        return refuses(&format!("@{name}"), value);
    };
    let mut parts = Vec::with_capacity(list.len());
    for item in list {
        parts.push(match item {
            Val::List(_) | Val::Map(_) => {
                return fail(format!(
                    "@{name} cannot format an array including: {}",
                    described(item)
                ));
            }
            Val::Text(text) => escape(text),
            item => match to_json(item) {
                null if null == "null" && name != "sh" => String::new(),
                json => json,
            },
        });
    }
    Ok(Val::text(parts.join(separator)))
}
