//! JSON as Go's `encoding/json` prints it.
//!
//! Main functions: [`to_string`], [`to_string_pretty`] and [`kind`]. HTML characters are escaped,
//! integers have no fraction, and keys are in the map's order, which is sorted.

use serde_json::Value;

/// As `json.Marshal`.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(value, None, 0, &mut out);
    out
}

/// As `json.MarshalIndent` without a prefix.
pub fn to_string_pretty(value: &Value, indent: &str) -> String {
    let mut out = String::new();
    write(value, Some(indent), 0, &mut out);
    out
}

/// A text in quotes, escaped.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_text(text, &mut out);
    out
}

/// The decoder's name for a value in `cannot unmarshal … into …`.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn write(value: &Value, indent: Option<&str>, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() => out.push_str(&float(f)),
            _ => out.push_str(&n.to_string()),
        },
        Value::String(s) => write_text(s, out),
        Value::Array(list) if list.is_empty() => out.push_str("[]"),
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                separate(i, indent, depth + 1, out);
                write(item, indent, depth + 1, out);
            }
            line(indent, depth, out);
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                separate(i, indent, depth + 1, out);
                write_text(key, out);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write(value, indent, depth + 1, out);
            }
            line(indent, depth, out);
            out.push('}');
        }
    }
}

fn separate(index: usize, indent: Option<&str>, depth: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
    line(indent, depth, out);
}

fn line(indent: Option<&str>, depth: usize, out: &mut String) {
    if let Some(indent) = indent {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str(indent));
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The shortest text that parses to the same value; with an exponent below 1e-6 and from 1e21 on.
pub(crate) fn float(f: f64) -> String {
    let size = f.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{f:e}");
        if text.contains("e-") {
            text
        } else {
            text.replace('e', "e+")
        }
    } else {
        f.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn as_go_prints_it() {
        for (value, want) in [
            (
                json!({"b": [], "a": {"x": "1 < 2 && 3 > 2"}, "c": {}}),
                r#"{"a":{"x":"1 \u003c 2 \u0026\u0026 3 \u003e 2"},"b":[],"c":{}}"#,
            ),
            (
                json!([1, 1.0, -0.5, 1e21, 1e20, 1e-7, 0.000_001, u64::MAX]),
                "[1,1,-0.5,1e+21,100000000000000000000,1e-7,0.000001,18446744073709551615]",
            ),
            (
                json!("\"\\\n\t\u{1}\u{8}\u{2028}\u{7f}ü"),
                "\"\\\"\\\\\\n\\t\\u0001\\b\\u2028\u{7f}ü\"",
            ),
            (json!([null, true]), "[null,true]"),
        ] {
            assert_eq!(to_string(&value), want);
        }
        assert_eq!(
            to_string_pretty(&json!({"a": [1, {}], "b": {}}), "  "),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {}\n}"
        );
    }
}
