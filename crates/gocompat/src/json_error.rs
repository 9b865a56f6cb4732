//! What is wrong with JSON, in the words of Go's `encoding/json`, which scripts look for.
//!
//! Main functions: [`of_unmarshal`] and [`of_decoder`], which differ where the text ends too soon.

use serde_json::{Error, error::Category};

/// As `json.Unmarshal` tells it.
pub fn of_unmarshal(document: &[u8], error: &Error) -> String {
    text(document, error).unwrap_or_else(|| "unexpected end of JSON input".to_owned())
}

/// As a `json.Decoder` tells it.
pub fn of_decoder(document: &[u8], error: &Error) -> String {
    text(document, error).unwrap_or_else(|| "unexpected EOF".to_owned())
}

/// `None`: the document ends too soon.
fn text(document: &[u8], error: &Error) -> Option<String> {
    if error.classify() == Category::Eof {
        return None;
    }
    let said = error.to_string();
    if said.starts_with("recursion limit exceeded") {
        return Some("invalid character '[' exceeded max depth".to_owned());
    }
    if let Some(text) = literal(document) {
        return Some(text);
    }
    let lines = document.split(|b| *b == b'\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(|l| l.len() + 1)
        .sum();
    let byte = document.get(before + error.column().saturating_sub(1));
    let place = [
        (
            "key must be a string",
            "looking for beginning of object key string",
        ),
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("expected value", "looking for beginning of value"),
    ];
    let place = place.iter().find(|(ours, _)| said.starts_with(ours));
    let (Some(byte), Some((_, place))) = (byte, place) else {
        return Some(said);
    };
    // Go takes a byte for a character.
    let shown = match char::from(*byte) {
        '\'' => "\\'".to_owned(),
        c => c.escape_debug().to_string().replace("\\\"", "\""),
    };
    Some(format!("invalid character '{shown}' {place}"))
}

/// A document that begins as a literal and is none.
fn literal(document: &[u8]) -> Option<String> {
    let document = document.trim_ascii_start();
    for literal in ["null", "true", "false"] {
        if document.first() != literal.as_bytes().first() {
            continue;
        }
        let mut pairs = literal.bytes().zip(document);
        if let Some((expected, got)) = pairs.find(|(expected, got)| expected != *got) {
            let (expected, got) = (char::from(expected), char::from(*got));
            return Some(format!(
                "invalid character {got:?} in literal {literal} (expecting {expected:?})"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_gos() {
        for (json, want) in [
            ("{", "unexpected EOF"),
            (
                "{'a'",
                "invalid character '\\'' looking for beginning of object key string",
            ),
            (
                "metadata:",
                "invalid character 'm' looking for beginning of value",
            ),
            (
                "not json",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "\u{feff}{}",
                "invalid character '\u{ef}' looking for beginning of value",
            ),
            ("{\"a\"\n1}", "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            (
                &"[".repeat(1000),
                "invalid character '[' exceeded max depth",
            ),
        ] {
            let e = serde_json::from_slice::<serde_json::Value>(json.as_bytes());
            let e = e.expect_err("it is wrong");
            assert_eq!(of_decoder(json.as_bytes(), &e), want, "{json}");
        }
        let e = serde_json::from_str::<serde_json::Value>("[").expect_err("it is wrong");
        assert_eq!(of_unmarshal(b"[", &e), "unexpected end of JSON input");
    }
}
