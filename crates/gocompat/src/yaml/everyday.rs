//! A fast parser for typical documents: blocks of maps and lists, those in braces or brackets on
//! one line, single-line texts, literal blocks.
//!
//! Main functions: [`read`] and [`skim`], which keeps only some entries. They parse such documents
//! many times faster than a scanner for the full grammar can, and return `None` at the first sign
//! of anything else, including an error: the scanner then decides. So they must accept only what
//! both parse identically.

use super::build::json_number;
use super::resolve::{self, Scalar};
use super::split::all_bytes;
use super::{Duplicates, Limits};
use memchr::{memchr, memchr_iter};
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
    /// Values are kept; otherwise they are only checked.
    keeps: bool,
    /// The names of the entries of the outermost map that are kept.
    wanted: Option<&'t [&'t str]>,
}

pub(super) fn read(text: &str, limits: &Limits, duplicates: Duplicates) -> Option<Everyday> {
    whole(text, limits, duplicates, None)
}

/// Like [`read`] for the last of duplicate keys, but of the outermost map only the entries with
/// these names are kept, whatever the case of their letters.
pub(super) fn skim(text: &str, limits: &Limits, wanted: &[&str]) -> Option<Value> {
    whole(text, limits, Duplicates::LastWins, Some(wanted)).map(|found| found.value)
}

fn whole(
    text: &str,
    limits: &Limits,
    duplicates: Duplicates,
    wanted: Option<&[&str]>,
) -> Option<Everyday> {
    // ASCII, without control characters other than line breaks.
    if !all_bytes(text, |b| (b.wrapping_sub(b' ') < 96) | (b == b'\n')) {
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
        keeps: true,
        wanted,
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
        let (line, rest) = match memchr(b'\n', self.rest.as_bytes()) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, ""),
        };
        self.rest = rest;
        self.number += 1;
        Some(line)
    }

    fn advance(&mut self) {
        self.line = None;
        while let Some(raw) = self.raw() {
            let indent = raw.bytes().take_while(|b| *b == b' ').count();
            let text = &raw[indent..];
            if !text.is_empty() && !text.starts_with('#') {
                self.line = Some(Line {
                    indent,
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
            let outside = self.keeps;
            self.keeps = outside && (depth > 0 || self.is_wanted(key));
            let value = self.value(rest, indent, depth, true)?;
            self.add(&mut entries, key, value)?;
            self.keeps = outside;
        }
        Some(Value::Object(entries))
    }

    fn is_wanted(&self, key: &str) -> bool {
        self.wanted
            .is_none_or(|wanted| wanted.iter().any(|name| name.eq_ignore_ascii_case(key)))
    }

    fn add(&self, entries: &mut Map<String, Value>, key: &str, value: Value) -> Option<()> {
        let old = if self.keeps {
            entries.insert(key.to_owned(), value)
        } else {
            None
        };
        (old.is_none() || self.duplicates == Duplicates::LastWins).then_some(())
    }

    fn text(&self, text: &str) -> Value {
        if self.keeps {
            Value::String(text.to_owned())
        } else {
            Value::Null
        }
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
                let value = self.map(inner.indent, depth + 1)?;
                self.push(&mut items, value);
            } else {
                let value = self.value(rest, indent, depth, false)?;
                self.push(&mut items, value);
            }
        }
        Some(Value::Array(items))
    }

    fn push(&self, items: &mut Vec<Value>, value: Value) {
        if self.keeps {
            items.push(value);
        }
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

    fn scalar(&mut self, text: &'t str, depth: usize) -> Option<Value> {
        if let Some((inner, rest)) = quoted(text) {
            self.node()?;
            return ends(rest).then(|| self.text(inner));
        }
        if text.starts_with(['{', '[']) {
            let (value, rest) = self.flow(text, depth)?;
            return ends(rest).then_some(value);
        }
        self.node()?;
        let text = without_comment(text);
        let starts = match text.as_bytes() {
            [b'-', next, ..] => next.is_ascii_alphanumeric() || *next == b'-',
            [first, ..] => first.is_ascii_alphanumeric() || b"_/.+~$(".contains(first),
            [] => false,
        };
        if !starts || has_key(text) {
            return None;
        }
        self.plain(text)
    }

    fn plain(&self, text: &str) -> Option<Value> {
        Some(match resolve::plain(text) {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => i.into(),
            Scalar::Uint(u) => u.into(),
            Scalar::Float(f) => json_number(f)?,
            Scalar::Timestamp(s) | Scalar::Str(s) => self.text(s),
        })
    }

    /// A map in braces or a list in brackets, and the text after it.
    fn flow(&mut self, text: &'t str, depth: usize) -> Option<(Value, &'t str)> {
        self.open(depth)?;
        let is_map = text.starts_with('{');
        let close = if is_map { '}' } else { ']' };
        let (mut entries, mut items) = (Map::new(), Vec::new());
        let mut rest = text[1..].trim_start_matches(' ');
        let mut after = rest.strip_prefix(close);
        while after.is_none() {
            if is_map {
                let (key, value) = key(rest)?;
                self.node()?;
                let (value, next) = self.flow_value(value, depth + 1)?;
                self.add(&mut entries, key, value)?;
                rest = next.trim_start_matches(' ');
            } else {
                let (value, next) = self.flow_value(rest, depth + 1)?;
                self.push(&mut items, value);
                rest = next.trim_start_matches(' ');
            }
            after = rest.strip_prefix(close);
            if after.is_none() {
                rest = rest.strip_prefix(',')?.trim_start_matches(' ');
            }
        }
        let value = if is_map {
            Value::Object(entries)
        } else {
            Value::Array(items)
        };
        after.map(|after| (value, after))
    }

    /// A value inside braces or brackets, and the text after it.
    fn flow_value(&mut self, text: &'t str, depth: usize) -> Option<(Value, &'t str)> {
        if text.starts_with(['{', '[']) {
            return self.flow(text, depth);
        }
        self.node()?;
        if let Some((inner, rest)) = quoted(text) {
            return Some((self.text(inner), rest));
        }
        let (word, rest) = text.split_at(word_length(text));
        let starts = match word.as_bytes() {
            [b'-', next, ..] => next.is_ascii_alphanumeric(),
            [first, ..] => first.is_ascii_alphanumeric() || b"_/".contains(first),
            [] => false,
        };
        if !starts {
            return None;
        }
        Some((self.plain(word)?, rest))
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

/// Whether nothing but a comment follows a value.
fn ends(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with(' ') && rest.trim_start_matches(' ').starts_with('#'))
}

/// A plain text without the comment after it.
fn without_comment(text: &str) -> &str {
    let bytes = text.as_bytes();
    memchr_iter(b'#', bytes)
        .find(|at| *at > 0 && bytes[at - 1] == b' ')
        .map_or(text, |at| text[..at].trim_end_matches(' '))
}

/// Whether a plain text has a colon that makes a part of it a key.
fn has_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr_iter(b':', bytes).any(|at| matches!(bytes.get(at + 1), None | Some(b' ')))
}

/// How many bytes at the start of a text are letters, digits, or signs without a meaning in YAML.
fn word_length(text: &str) -> usize {
    let in_word =
        |b: &u8| matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'-');
    text.as_bytes().iter().take_while(|b| in_word(b)).count()
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
            let (key, rest) = text.split_at(word_length(text));
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

    /// The names of the entries that are skimmed.
    const WANTED: &[&str] = &["kind", "metadata"];

    /// Checks that the scanner and the fast parser agree, if the latter has a result, also on what
    /// is skimmed. Returns whether it does.
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
        if duplicates == Duplicates::LastWins {
            let mut wanted = found.value;
            if let Value::Object(entries) = &mut wanted {
                entries.retain(|key, _| WANTED.iter().any(|name| name.eq_ignore_ascii_case(key)));
            }
            // A list has no entries, and its items are kept.
            assert_eq!(skim(text, &limits, WANTED), Some(wanted), "{text:?}");
        }
        true
    }

    const DOCUMENT: &str = "# Source: a/b.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a-b\n  labels: {}\n  \
        lists: {in: [a, -1, \"b c\", {d: e/f.g}], 'x': { }} # c\n  \
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
            "a: {}  # b\n- {c: d}\n",
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
            "a: {b: 1",
            "a: {b: 1}c",
            "a: {b: 1}#c",
            "a: {b: c d}",
            "a: {b: c: d}",
            "a: {b:1}",
            "a: {b: }",
            "a: {b}",
            "a: {1: b}",
            "a: {b: 1,\n  c: 2}",
            "a: {b: &x 1}",
            "a: [b: 1]",
            "a: [1,]",
            "a: [-]",
            "a: [.inf]",
            "{a: b}",
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
        for text in ["a: 1\na: 2\n", "a: {b: 1, b: 2}\n"] {
            assert_eq!(
                read(text, &Limits::default(), Duplicates::Refuse),
                None,
                "{text:?}"
            );
        }
    }

    #[test]
    fn braces_and_brackets_on_one_line_are_everyday() {
        for text in [
            "a: {b: 1}\n",
            "a: [1]\n",
            "a: [b,c]\n",
            "a: [ ]\n",
            "a: {b: {c: [d, 'e', \"f: g\", -1, 0.5, true, 2020-01-01]}, h: {}}  # i\n",
            "- {a: b}\n- [c]\n",
            "a:\n  - b: {c: d, c: e}\n    f: []\n",
            "a: \"b\"  # c\n",
        ] {
            assert!(agree(text, Duplicates::LastWins), "{text:?}");
        }
    }

    #[test]
    fn only_wanted_entries_are_kept() {
        let limits = Limits::default();
        let text = "Kind: A\nspec:\n  kind: B\n  list:\n  - a: [b]\n  text: |\n    c\nmetadata:\n  name: d\n  labels: {e: f}\nkind: G\n";
        assert_eq!(
            skim(text, &limits, &["kind", "metadata"]),
            Some(serde_json::json!({
                "Kind": "A", "kind": "G", "metadata": {"name": "d", "labels": {"e": "f"}},
            }))
        );
        // What is left out must be valid all the same, and counts.
        for text in ["kind: A\nspec: {a\n", "kind: A\nspec: .inf\n"] {
            assert_eq!(skim(text, &limits, &["kind"]), None, "{text:?}");
        }
        let few = Limits { nodes: 6, ..limits };
        assert!(skim("kind: A\nspec:\n- a\n", &few, &["kind"]).is_some());
        assert_eq!(skim("kind: A\nspec:\n- a\n- b\n", &few, &["kind"]), None);
    }

    #[test]
    fn damaged_documents_are_read_as_the_scanner_does() {
        let pieces = [
            "\n", " ", "  ", "- ", "-", ": ", ":", "|", "|-\n", "#", " # c\n", "'", "\"", "{}",
            "[]", "a", "a: b\n", "~", "1", ".", "+", "|+\n", "---\n", "\n\n", "{", "}", "[", "]",
            ",", ", ", "{a: ", "[b, ",
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
