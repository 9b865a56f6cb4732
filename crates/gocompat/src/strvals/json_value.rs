//! Parses one JSON value at the beginning of a text, as Go's `json.Decoder` does.
//!
//! Main function: [`first`].

use serde_json::{Number, Value};

/// The value and its length in bytes; numbers become floats.
pub(super) fn first(text: &str) -> Result<(Value, usize), String> {
    let start = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let body = &text[start..];
    let (mut value, taken) = match body.as_bytes().first() {
        Some(b'"' | b'[' | b'{') => {
            let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
            let value = values
                .next()
                .unwrap_or(Ok(Value::Null))
                .map_err(|e| e.to_string())?;
            (value, values.byte_offset())
        }
        _ => {
            let taken = scalar(body.as_bytes());
            (
                serde_json::from_str(&body[..taken]).map_err(|e| e.to_string())?,
                taken,
            )
        }
    };
    floats(&mut value);
    Ok((value, start + taken))
}

/// Length of the number or word at the beginning; anything may follow it.
fn scalar(text: &[u8]) -> usize {
    if let Some(word) = ["true", "false", "null"]
        .into_iter()
        .find(|word| text.starts_with(word.as_bytes()))
    {
        return word.len();
    }
    let digits = |from: usize| {
        text[from.min(text.len())..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let mut end = usize::from(text.first() == Some(&b'-'));
    end += if text.get(end) == Some(&b'0') {
        1
    } else {
        digits(end)
    };
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        end += 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        end += digits(end);
    }
    end
}

/// Converts every number as Go does for an empty interface.
fn floats(value: &mut Value) {
    match value {
        Value::Number(n) => {
            if let Some(float) = n.as_f64().and_then(Number::from_f64) {
                *n = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(floats),
        Value::Object(map) => map.values_mut().for_each(floats),
        _ => {}
    }
}
