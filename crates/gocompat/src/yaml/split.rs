//! Splits bytes into document texts: encodings, byte order marks, forbidden characters and the
//! `---` lines.

use super::{Limits, YamlError};
use std::borrow::Cow;

/// The text of one document and the line of the input where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    pub text: Cow<'a, str>,
    pub line: usize,
}

/// Decodes the input: UTF-8, or UTF-16 with a byte order mark. Control characters are refused as in
/// go-yaml.
pub fn decode_text<'a>(input: &'a [u8], limits: &Limits) -> Result<Cow<'a, str>, YamlError> {
    if input.len() > limits.bytes {
        return Err(YamlError::at(
            0,
            0,
            format!(
                "the input has {} bytes, more than the {} allowed",
                input.len(),
                limits.bytes
            ),
        ));
    }
    let text = match input {
        [0xFF, 0xFE, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)?),
        [0xFE, 0xFF, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)?),
        [0xEF, 0xBB, 0xBF, rest @ ..] => Cow::Borrowed(utf8(rest)?),
        _ => Cow::Borrowed(utf8(input)?),
    };
    if all_bytes(&text, is_plain) {
        return Ok(text);
    }
    match text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        None => Ok(text),
        Some((at, _)) => {
            let (line, column) = position(text.as_bytes(), at);
            Err(YamlError::at(
                line,
                column,
                "control characters are not allowed",
            ))
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, YamlError> {
    std::str::from_utf8(bytes).map_err(|e| {
        let (line, column) = position(bytes, e.valid_up_to());
        YamlError::at(line, column, "invalid UTF-8")
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, YamlError> {
    let units = bytes.chunks(2).map(|pair| match pair {
        [a, b] => unit([*a, *b]),
        _ => 0xDC00, // half a unit at the end: an unpaired surrogate, refused below
    });
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .map_err(|_| YamlError::at(1, 1, "invalid UTF-16"))
}

/// Whether all bytes of a text fit. Blocks are compared without a way out, which compilers turn
/// into comparisons of many bytes at once.
pub(super) fn all_bytes(text: &str, fits: impl Fn(u8) -> bool) -> bool {
    text.as_bytes()
        .chunks(64)
        .all(|block| block.iter().fold(true, |all, b| all & fits(*b)))
}

/// A printable ASCII character, a tab or a line break.
fn is_plain(b: u8) -> bool {
    (b.wrapping_sub(b' ') < 95) | (b == b'\n') | (b == b'\t') | (b == b'\r')
}

fn is_forbidden(c: char) -> bool {
    !matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}

fn position(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |i| i + 1);
    (
        line,
        String::from_utf8_lossy(before.get(start..).unwrap_or_default())
            .chars()
            .count()
            + 1,
    )
}

/// Splits a stream at lines that start with `---`. After the dashes only blanks or a comment are
/// permitted; anything else ends the stream with an `Err` item. Empty chunks before the first
/// separator and between two separators are dropped; the last one ends with a line break.
pub fn split_documents<'a>(
    text: &'a str,
    limits: &Limits,
) -> Result<impl Iterator<Item = Result<Chunk<'a>, YamlError>> + use<'a>, YamlError> {
    let separators = text.as_bytes().windows(4).filter(|w| w == b"\n---").count();
    if separators >= limits.documents {
        return Err(YamlError::at(
            0,
            0,
            format!(
                "the input has more than the {} documents allowed",
                limits.documents
            ),
        ));
    }
    Ok(Splitter {
        text,
        at: 0,
        line: 1,
        failed: false,
    })
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    failed: bool,
}

impl<'a> Splitter<'a> {
    /// The next line with its line break, or None at the end of the text.
    fn peek_line(&self) -> Option<&'a str> {
        let rest = self.text.get(self.at..).filter(|r| !r.is_empty())?;
        Some(rest.split_inclusive('\n').next().unwrap_or(rest))
    }
}

impl<'a> Iterator for Splitter<'a> {
    type Item = Result<Chunk<'a>, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let (mut start, mut start_line) = (self.at, self.line);
        while let Some(line) = self.peek_line() {
            let Some(after) = line.strip_prefix("---") else {
                self.at += line.len();
                self.line += 1;
                continue;
            };
            let after = after.trim();
            if !after.is_empty() && !after.starts_with('#') {
                self.failed = true;
                return Some(Err(YamlError::at(
                    self.line,
                    4,
                    format!("invalid Yaml document separator: {after}"),
                )));
            }
            let end = self.at;
            self.at += line.len();
            self.line += 1;
            if end > start {
                return Some(Ok(chunk(
                    self.text.get(start..end).unwrap_or_default(),
                    start_line,
                )));
            }
            (start, start_line) = (self.at, self.line);
        }
        let rest = self.text.get(start..).unwrap_or_default();
        (!rest.is_empty()).then(|| Ok(chunk(rest, start_line)))
    }
}

fn chunk(text: &str, line: usize) -> Chunk<'_> {
    let mut text = if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    if !text.ends_with('\n') {
        text.to_mut().push('\n');
    }
    Chunk { text, line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &str) -> Vec<(String, usize)> {
        let parts = split_documents(text, &Limits::default()).expect("within limits");
        parts
            .map(|c| {
                c.map_or_else(
                    |e| (format!("ERR {e}"), e.line),
                    |c| (c.text.into_owned(), c.line),
                )
            })
            .collect()
    }

    #[test]
    fn documents_are_cut_at_dashes() {
        let cases: &[(&str, &[(&str, usize)])] = &[
            ("", &[]),
            ("a: 1", &[("a: 1\n", 1)]),
            ("---\na: 1\n---\n", &[("a: 1\n", 2)]),
            ("a: 1\n--- # next\nb: 2\n", &[("a: 1\n", 1), ("b: 2\n", 3)]),
            ("---\n---\n---\na: 1\n", &[("a: 1\n", 4)]),
            ("a: |\n  x\n  ---\n  y\n", &[("a: |\n  x\n  ---\n  y\n", 1)]),
            ("a: 1\r\n---\r\nb: 2\r\n", &[("a: 1\n", 1), ("b: 2\n", 3)]),
            (
                "a: 1\n---b: 2\n",
                &[(
                    "ERR line 2, column 4: invalid Yaml document separator: b: 2",
                    2,
                )],
            ),
        ];
        for (input, want) in cases {
            let got = chunks(input);
            let want: Vec<_> = want.iter().map(|(t, l)| ((*t).to_owned(), *l)).collect();
            assert_eq!(got, want, "{input:?}");
        }
    }

    #[test]
    fn encodings() {
        let limits = Limits::default();
        assert_eq!(
            decode_text(b"\xEF\xBB\xBFa: 1", &limits).expect("BOM"),
            "a: 1"
        );
        assert_eq!(
            decode_text(b"\xFF\xFEa\0:\0", &limits).expect("UTF-16LE"),
            "a:"
        );
        assert_eq!(
            decode_text(b"\xFE\xFF\0a\0:", &limits).expect("UTF-16BE"),
            "a:"
        );
        assert_eq!(
            decode_text(b"a: 1\nb: \xFF", &limits),
            Err(YamlError::at(2, 4, "invalid UTF-8"))
        );
        for forbidden in [
            "a: \x01".to_owned(),
            format!("{}\x7f", "a".repeat(100)),
            "\u{e9}\x0b".to_owned(),
        ] {
            assert!(decode_text(forbidden.as_bytes(), &limits).is_err());
        }
        let plain = format!("{}\t\r\n~ \u{e9}", "a".repeat(100));
        assert_eq!(
            decode_text(plain.as_bytes(), &limits),
            Ok(Cow::Borrowed(plain.as_str()))
        );
        assert!(decode_text(b"abc", &Limits { bytes: 2, ..limits }).is_err());
    }
}
