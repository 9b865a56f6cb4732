//! Values as Go prints them in messages: `%q`, `%v` of numbers, JSON with Go's escapes.

use serde_json::Value;
use std::fmt::Write;
pub use tiphys_gocompat::text::quote as quoted;

/// Numbers like `2.0` become integers, as when Go writes them.
pub fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|f| f.fract() == 0.0 && f.abs() < 1e18);
            if let Some(whole) = whole {
                *value = (whole as i64).into();
            }
        }
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            // Go holds it as a float, which it writes with the shortest digits that identify it.
            let rounded = json_float(number.as_f64().unwrap_or(0.0));
            *value = rounded
                .parse::<u64>()
                .map_or(number.as_f64().into(), Value::from);
        }
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Object(map) => map.values_mut().for_each(make_whole),
        _ => {}
    }
}

fn push(out: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(args);
}

/// `%v` of a float64: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub fn float(f: f64) -> String {
    if f.is_nan() {
        return "NaN".into();
    }
    if f.is_infinite() {
        return if f > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        };
    }
    if f == 0.0 {
        return if f.is_sign_negative() {
            "-0".into()
        } else {
            "0".into()
        };
    }
    let magnitude = f.abs();
    if (1e-4..1e6).contains(&magnitude) {
        return format!("{f}");
    }
    let text = format!("{f:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, number) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |n| ('-', n));
    format!("{digits}e{sign}{number:0>2}")
}

/// A value inside "Invalid value: …": simple types as `%v` or `%q`, the rest as JSON.
pub fn bad_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or(0.0)),
        other => json(other),
    }
}

/// `%v`
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => s.clone(),
        Value::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or(0.0)),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => format!(
            "map[{}]",
            map.iter()
                .map(|(k, v)| format!("{k}:{}", plain(v)))
                .collect::<Vec<_>>()
                .join(" ")
        ),
        other => other.to_string(),
    }
}

/// JSON as Go writes it: sorted keys, `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => json_string(text, out),
        Value::Number(n) if n.is_f64() => out.push_str(&json_float(n.as_f64().unwrap_or(0.0))),
        Value::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json_string(key, out);
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn json_float(f: f64) -> String {
    if f != 0.0 && !(1e-6..1e21).contains(&f.abs()) {
        let text = format!("{f:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{f}")
}

pub fn json_string(text: &str, out: &mut String) {
    for (i, piece) in text
        .split_inclusive(['<', '>', '&', '\u{2028}', '\u{2029}'])
        .enumerate()
    {
        let (body, special) = match piece.chars().next_back() {
            Some(c @ ('<' | '>' | '&' | '\u{2028}' | '\u{2029}')) => {
                (&piece[..piece.len() - c.len_utf8()], Some(c))
            }
            _ => (piece, None),
        };
        if i == 0 {
            out.push('"');
        }
        let escaped = serde_json::to_string(body).unwrap_or_default();
        out.push_str(escaped.get(1..escaped.len() - 1).unwrap_or(""));
        if let Some(c) = special {
            push(out, format_args!("\\u{:04x}", c as u32));
        }
    }
    out.push_str(if text.is_empty() { "\"\"" } else { "\"" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_look_as_in_go() {
        assert_eq!(quoted("a\"b\n\u{1}"), "\"a\\\"b\\n\\x01\"");
        assert_eq!(
            [
                float(2.0),
                float(0.5),
                float(1e21),
                float(1e-5),
                float(-0.25)
            ],
            ["2", "0.5", "1e+21", "1e-05", "-0.25"]
        );
        assert_eq!(
            json(&json!({"b": "<x>", "a": [1, 2.5, null]})),
            "{\"a\":[1,2.5,null],\"b\":\"\\u003cx\\u003e\"}"
        );
        assert_eq!(json(&json!("")), "\"\"");
    }
}
