//! A fast parser for typical documents: blocks of maps and lists, single-line texts, literal
//! blocks.
//!
//! Main function: [`read`]. It parses these many times faster than a scanner for the full grammar
//! can, and returns `None` at the first sign of anything else, including an error: the scanner then
//! decides. So it must accept only what both parse identically.

use super::build::json_number;
use super::resolve::{self, Scalar};
use super::{Duplicates, Limits};
use serde_json::{Map, Value};

/// Deeper documents are left to the scanner.
const MAX_DEPTH: usize = 64;
/// So are longer keys: the grammar forbids them from 1,024 characters on.
const MAX_KEY: usize = 1000;

/// A document with its location.
#[derive(Debug, PartialEq)]
pub(super) struct Everyday {
    pub value: Value,
    /// Line in the text, from 1.
    pub first_line: usize,
    pub nodes: usize,
}

/// A line that is neither blank nor a comment.
#[derive(Clone, Copy)]
struct Line<'t> {
    indent: usize,
    /// Without the blanks on both sides.
    text: &'t str,
}

struct Reader<'t> {
    line: Option<Line<'t>>,
    /// The text after that line.
    rest: &'t str,
    /// Its number.
    number: usize,
    nodes: usize,
    /// The text ends with a line break.
    finished: bool,
    limits: Limits,
    duplicates: Duplicates,
}

pub(super) fn read(text: &str, limits: &Limits, duplicates: Duplicates) -> Option<Everyday> {
    if !text.is_ascii() || text.bytes().any(|b| b < b' ' && b != b'\n') {
        return None;
    }
    let mut reader = Reader {
        line: None,
        rest: text,
        number: 0,
        nodes: 0,
        finished: text.ends_with('\n'),
        limits: *limits,
        duplicates,
    };
    reader.advance();
    let (first_line, first) = (reader.number, reader.line?);
    let value = if first.indent == 0 {
        reader.block(first, 0)?
    } else {
        return None;
    };
    reader.line.is_none().then_some(Everyday {
        value,
        first_line,
        nodes: reader.nodes,
    })
}

impl<'t> Reader<'t> {
    fn raw(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.number += 1;
        Some(line)
    }

    fn advance(&mut self) {
        self.line = None;
        while let Some(raw) = self.raw() {
            let text = raw.trim_start_matches(' ');
            if !text.is_empty() && !text.starts_with('#') {
                self.line = Some(Line {
                    indent: raw.len() - text.len(),
                    text: text.trim_end_matches(' '),
                });
                return;
            }
        }
    }

    fn node(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= self.limits.nodes).then_some(())
    }

    fn open(&mut self, depth: usize) -> Option<()> {
        self.node()?;
        (depth < self.limits.depth.min(MAX_DEPTH)).then_some(())
    }

    /// The map or list that begins at a line.
    fn block(&mut self, first: Line<'t>, depth: usize) -> Option<Value> {
        if item(first.text).is_some() {
            self.list(first.indent, depth)
        } else {
            self.map(first.indent, depth)
        }
    }

    fn map(&mut self, indent: usize, depth: usize) -> Option<Value> {
        self.open(depth)?;
        let mut entries = Map::new();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            let (key, rest) = if line.indent == indent {
                key(line.text)?
            } else {
                return None;
            };
            self.node()?;
            let value = self.value(rest, indent, depth, true)?;
            let old = entries.insert(key.to_owned(), value);
            if old.is_some() && self.duplicates == Duplicates::Refuse {
                return None;
            }
        }
        Some(Value::Object(entries))
    }

    fn list(&mut self, indent: usize, depth: usize) -> Option<Value> {
        self.open(depth)?;
        let mut items = Vec::new();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            let rest = match item(line.text) {
                Some(rest) if line.indent == indent => rest,
                // The next key of the map that contains the list.
                None if line.indent == indent => break,
                _ => return None,
            };
            if key(rest).is_some() {
                let inner = Line {
                    indent: indent + line.text.len() - rest.len(),
                    text: rest,
                };
                self.line = Some(inner);
                items.push(self.map(inner.indent, depth + 1)?);
            } else {
                items.push(self.value(rest, indent, depth, false)?);
            }
        }
        Some(Value::Array(items))
    }

    /// The value after a key or a dash, or below it; the line is consumed.
    fn value(&mut self, rest: &'t str, indent: usize, depth: usize, of_map: bool) -> Option<Value> {
        if let Some(header) = rest.strip_prefix('|') {
            return self.literal(header, indent);
        }
        self.advance();
        let below = self.line.filter(|line| line.indent > indent);
        if !rest.is_empty() && !rest.starts_with('#') {
            // A multi-line text is left to the scanner.
            return if below.is_none() {
                self.scalar(rest, depth + 1)
            } else {
                None
            };
        }
        match below.or_else(|| {
            self.line
                .filter(|line| of_map && line.indent == indent && item(line.text).is_some())
        }) {
            Some(line) => self.block(line, depth + 1),
            None => {
                self.node()?;
                Some(Value::Null)
            }
        }
    }

    fn scalar(&mut self, text: &str, depth: usize) -> Option<Value> {
        if let Some((inner, rest)) = quoted(text) {
            self.node()?;
            return (rest.is_empty() || rest.starts_with(" #"))
                .then(|| Value::String(inner.to_owned()));
        }
        if matches!(text, "{}" | "[]") {
            self.open(depth)?;
            return Some(if text == "{}" {
                Value::Object(Map::new())
            } else {
                Value::Array(Vec::new())
            });
        }
        self.node()?;
        let text = text
            .split_once(" #")
            .map_or(text, |(text, _)| text)
            .trim_end_matches(' ');
        let starts = match text.as_bytes() {
            [b'-', next, ..] => next.is_ascii_alphanumeric() || *next == b'-',
            [first, ..] => first.is_ascii_alphanumeric() || b"_/.+~$(".contains(first),
            [] => false,
        };
        if !starts || text.contains(": ") || text.ends_with(':') {
            return None;
        }
        Some(match resolve::plain(text) {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => i.into(),
            Scalar::Uint(u) => u.into(),
            Scalar::Float(f) => json_number(f)?,
            Scalar::Timestamp(s) | Scalar::Str(s) => Value::String(s.to_owned()),
        })
    }

    /// A literal block below a key or a dash at an indentation.
    fn literal(&mut self, header: &str, above: usize) -> Option<Value> {
        self.node()?;
        let mut text = String::new();
        let mut indent = 0;
        let ended = loop {
            let before = (self.rest, self.number);
            let Some(raw) = self.raw() else { break false };
            let content = raw.trim_start_matches(' ');
            let own = raw.len() - content.len();
            if text.is_empty() {
                indent = own;
                if content.is_empty() || own <= above {
                    return None;
                }
            } else if !content.is_empty() && own < indent {
                (self.rest, self.number) = before;
                break true;
            }
            text.push_str(raw.get(indent..).unwrap_or_default());
            text.push('\n');
        };
        // A text without a trailing line break has special rules.
        if text.is_empty() || !(ended || self.finished) {
            return None;
        }
        self.advance();
        if self.line.is_some_and(|line| line.indent > above) {
            return None;
        }
        let kept = text.trim_end_matches('\n').len();
        match header {
            "" => text.truncate(kept + 1),
            "-" => text.truncate(kept),
            "+" => {}
            _ => return None,
        }
        Some(Value::String(text))
    }
}

/// The text after the dash of a list item.
fn item(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim_start_matches(' '))
}

/// A key, and the text after its colon.
fn key(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = match quoted(text) {
        Some(found) => found,
        None => {
            let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_./-".contains(c)))?;
            let (key, rest) = text.split_at(end);
            let named = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && matches!(resolve::plain(key), Scalar::Str(_));
            if !named {
                return None;
            }
            (key, rest)
        }
    };
    let rest = rest.strip_prefix(':')?;
    (key.len() < MAX_KEY && (rest.is_empty() || rest.starts_with(' ')))
        .then(|| (key, rest.trim_start_matches(' ')))
}

/// A quoted text without escapes or anything else that needs processing, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (inner, rest) = text[1..].split_once(quote)?;
    let escaped = inner.contains('\\') || (quote == '\'' && rest.starts_with('\''));
    (!escaped).then_some((inner, rest))
}

#[cfg(test)]
mod tests {
    use super::super::{Chunk, build};
    use super::*;
    use std::borrow::Cow;

    /// Checks that the scanner and the fast parser agree, if the latter has a result. Returns
    /// whether it does.
    fn agree(text: &str, duplicates: Duplicates) -> bool {
        let limits = Limits {
            depth: 20,
            nodes: 200,
            ..Limits::default()
        };
        let Some(found) = read(text, &limits, duplicates) else {
            return false;
        };
        let mut budget = limits;
        let scanned = build::scanned(
            &Chunk {
                text: Cow::Borrowed(text),
                line: 1,
            },
            &mut budget,
            duplicates,
        );
        let scanned = scanned.map(|(value, first_line)| Everyday {
            value,
            first_line,
            nodes: limits.nodes - budget.nodes,
        });
        assert_eq!(scanned.as_ref(), Ok(&found), "{text:?}");
        true
    }

    const DOCUMENT: &str = "# Source: a/b.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a-b\n  labels: {}\n  \
        annotations:\n    \"helm.sh/hook\": pre-install # first\n    'x': 'it: is'\n\nspec:\n  replicas: 2\n  wait: yes\n  empty:\n  paused: false\n  \
        items:\n  - name: main\n    image: \"a/b:1.2\"\n    args: []\n    command:\n      - --flag=x\n      - /bin/sh\n      - -c\n      - 0.5\n      - |\n        \
        set -e\n\n          run: {it}\n        # no comment\n\n    # a comment\n  - ~\n  -\n    a: 1e3\n    b: 0777\n  text: |-\n    one\n     two\n\n  \
        time: 2020-01-01\n  url: http://x/y#z\n  last: |+\n    end\n\n";

    #[test]
    fn everyday_documents_are_read_as_the_scanner_does() {
        for text in [
            DOCUMENT,
            "a: 1",
            "- a\n- b: c\n  d:\n  - e\n",
            "a:\n  b:\nc: d\n",
            "a: |\n  x\n\nb: 1\n",
            "\"a b\": c\n",
            "a: |-\n  x\n# c\n",
            "a:\n\n  # c\n  b: - 1\n",
        ] {
            agree(text, Duplicates::LastWins);
        }
        assert!(agree(DOCUMENT, Duplicates::Refuse));
    }

    #[test]
    fn what_is_not_everyday_is_left_to_the_scanner() {
        for text in [
            "",
            "a",
            "a: b: c",
            "a: &x 1",
            "a: *x",
            "a: {b: 1}",
            "a: [1]",
            "a: \"\\n\"",
            "a: 'it''s'",
            "? a",
            "a: >\n  b\n",
            "a: |2\n  b\n",
            "---\na: 1",
            "a: 1\n...\n",
            "a: b\n  c",
            "a: 1\n b: 2",
            " a: 1\nb: 2",
            "a:\tb",
            "a: \u{e9}",
            "<<: a",
            "null: a",
            "1: a",
            "a: |\n  b",
            "- - a",
            "a: @b",
            "a: .inf",
            "a: -\n",
            "a:\n  b",
            "- a\nb: c\n",
            "a: \"b\" c",
            "a: b:",
        ] {
            assert_eq!(
                read(text, &Limits::default(), Duplicates::LastWins),
                None,
                "{text:?}"
            );
        }
        assert_eq!(
            read("a: 1\na: 2\n", &Limits::default(), Duplicates::Refuse),
            None
        );
    }

    #[test]
    fn damaged_documents_are_read_as_the_scanner_does() {
        let pieces = [
            "\n", " ", "  ", "- ", "-", ": ", ":", "|", "|-\n", "#", " # c\n", "'", "\"", "{}",
            "[]", "a", "a: b\n", "~", "1", ".", "+", "|+\n", "---\n", "\n\n",
        ];
        let mut state = 1_u64;
        let mut below = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit.max(1)
        };
        let mut read = 0;
        let rounds = 20_000;
        for _ in 0..rounds {
            let mut text = DOCUMENT.to_owned();
            for _ in 0..1 + below(4) {
                let at = below(text.len() + 1);
                match below(3) {
                    0 => text.insert_str(at, pieces[below(pieces.len())]),
                    1 => drop(text.drain(at..(at + 1 + below(4)).min(text.len()))),
                    // A part of the document, so that damage at its ends is frequent.
                    _ => text = text[at.min(text.len() / 2)..].to_owned(),
                }
            }
            read += usize::from(agree(
                &text,
                if below(2) == 0 {
                    Duplicates::LastWins
                } else {
                    Duplicates::Refuse
                },
            ));
        }
        assert!(read > rounds / 20, "{read}");
    }
}
