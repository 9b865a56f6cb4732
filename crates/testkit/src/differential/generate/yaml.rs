//! Request bodies as users write them: YAML in block style. Main function: [`text`].

use super::mutate::chance;
use crate::Rng;
use serde_json::Value;

/// A document equivalent to the JSON.
pub fn text(rng: &mut Rng, value: &Value) -> String {
    let mut out = String::new();
    if chance(rng, 20) {
        out.push_str("# as people write it\n---\n");
    }
    block(rng, value, 0, &mut out);
    out
}

fn block(rng: &mut Rng, value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                out.push_str(&format!("{indent}{}:", word(rng, key)));
                below(rng, inner, depth + 1, out);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for item in list {
                out.push_str(&format!("{indent}-"));
                below(rng, item, depth + 1, out);
            }
        }
        other => out.push_str(&format!("{indent}{}\n", scalar(rng, other))),
    }
}

/// The value after a key or a dash: on the same line, or below it.
fn below(rng: &mut Rng, value: &Value, depth: usize, out: &mut String) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    };
    if nested && !chance(rng, 10) {
        out.push('\n');
        block(rng, value, depth, out);
    } else {
        // JSON is YAML, too.
        out.push_str(&format!(" {}\n", scalar(rng, value)));
    }
}

fn scalar(rng: &mut Rng, value: &Value) -> String {
    match value {
        Value::String(text) => word(rng, text),
        Value::Null => (*super::mutate::pick(rng, &["null", "~", ""])).to_owned(),
        other => other.to_string(),
    }
}

fn word(rng: &mut Rng, text: &str) -> String {
    let plain = text.len() > 3
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '.'))
        && !matches!(text, "true" | "false" | "null");
    match plain {
        true if !chance(rng, 10) => text.to_owned(),
        false if chance(rng, 30) && !text.contains(['\'', '\n']) => format!("'{text}'"),
        _ => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_has_every_part_of_the_value() {
        let value = json!({"kind": "Thing", "list": [{"a": 1}, "yes"], "none": null, "empty": {}});
        let text = text(&mut Rng::new(3), &value);
        for part in ["kind", "Thing", "list", "yes", "none", "empty"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.lines().count() >= 4, "{text}");
    }
}
