//! Parses TOML.
//!
//! Main function: [`parse`]. Tables opened by a dotted key or a header may be extended; a value may
//! not be set again.

use super::TomlError;
use crate::text::quote_rune;
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;

mod scalar;

/// Nesting of lists and tables, including those created by a dotted key.
const DEPTH: usize = 200;

/// The table in a text; whole numbers are integers.
pub fn parse(text: &str) -> Result<Map<String, Value>, TomlError> {
    let text = text.replace("\r\n", "\n");
    let mut reader = Reader {
        text: &text,
        at: 0,
        root: Map::new(),
        table: Vec::new(),
        key: String::new(),
        closed: BTreeSet::new(),
    };
    reader.document()?;
    Ok(reader.root)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    root: Map<String, Value>,
    /// The table being filled.
    table: Vec<String>,
    /// The last part of the current key.
    key: String,
    /// Tables that were defined by a header or inline.
    closed: BTreeSet<Vec<String>>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.text[self.at..].starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    fn refuse<T>(&self, why: impl std::fmt::Display) -> Result<T, TomlError> {
        let line = 1 + self.text[..self.at].matches('\n').count();
        let mut path: Vec<&str> = self.table.iter().map(String::as_str).collect();
        path.extend((!self.key.is_empty()).then_some(self.key.as_str()));
        let place = if path.is_empty() {
            String::new()
        } else {
            format!(" (last key {})", crate::text::quote(&path.join(".")))
        };
        Err(TomlError(format!("toml: line {line}{place}: {why}")))
    }

    /// The text found instead of what was expected.
    fn found(&self) -> String {
        self.peek()
            .map_or_else(|| "end of file".to_owned(), quote_rune)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Skips space, line breaks and comments.
    fn gap(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n') => self.at += 1,
                Some('#') => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    fn document(&mut self) -> Result<(), TomlError> {
        loop {
            self.gap();
            match self.peek() {
                None => return Ok(()),
                Some('[') => self.header()?,
                Some(_) => self.pair()?,
            }
            self.blanks();
            match self.peek() {
                None | Some('\n') => {}
                Some('#') => self.comment(),
                Some(_) => {
                    let found = self.found();
                    return self
                        .refuse(format!("expected a top-level item to end with a newline, comment, or EOF, but got {found} instead"));
                }
            }
        }
    }

    fn header(&mut self) -> Result<(), TomlError> {
        let list = self.take("[[");
        if !list {
            self.at += 1;
        }
        (self.table, self.key) = (Vec::new(), String::new());
        let path = self.path(true)?;
        if !self.take(if list { "]]" } else { "]" }) {
            // The end of the text counts as a character here.
            let found = quote_rune(self.peek().unwrap_or_default());
            let wanted = if list {
                "table array name delimiter ']'"
            } else {
                "table name"
            };
            return self.refuse(match list {
                true => format!("expected end of {wanted}, but got {found} instead"),
                false => format!("expected '.' or ']' to end {wanted}, but got {found} instead"),
            });
        }
        if list {
            self.open_list(&path)?
        } else {
            self.open(&path)?
        }
        self.table = path;
        Ok(())
    }

    /// `[a.b]`
    fn open(&mut self, path: &[String]) -> Result<(), TomlError> {
        let known = find(&mut self.root, path).is_some();
        if known && !self.closed.insert(path.to_vec()) {
            return self.refuse(format!(
                "Key '{}' has already been defined.",
                path.join(".")
            ));
        }
        self.closed.insert(path.to_vec());
        match reach(&mut self.root, path) {
            Some(_) => Ok(()),
            None => self.refuse(format!(
                "Key '{}' has already been defined.",
                path.join(".")
            )),
        }
    }

    /// `[[a.b]]`
    fn open_list(&mut self, path: &[String]) -> Result<(), TomlError> {
        let Some((last, above)) = path.split_last() else {
            return Ok(());
        };
        // Tables closed in an earlier element are open again in this one.
        self.closed.retain(|closed| !closed.starts_with(path));
        let fits = reach(&mut self.root, above).is_some_and(|table| {
            let slot = table
                .entry(last.clone())
                .or_insert_with(|| Value::Array(Vec::new()));
            match slot {
                Value::Array(items) if items.iter().all(Value::is_object) => {
                    items.push(Value::Object(Map::new()));
                    true
                }
                _ => false,
            }
        });
        if fits {
            Ok(())
        } else {
            self.refuse(format!(
                "Key '{}' was already created and cannot be used as an array.",
                path.join(".")
            ))
        }
    }

    fn pair(&mut self) -> Result<(), TomlError> {
        let path = self.key_and_sign()?;
        let (last, above) = path
            .split_last()
            .map_or((String::new(), Vec::new()), |(last, above)| {
                (last.clone(), above.to_vec())
            });
        self.key.clone_from(&last);
        let value = self.value(self.table.len() + path.len())?;
        let full: Vec<String> = self.table.iter().chain(&above).cloned().collect();
        let free = reach(&mut self.root, &full).is_some_and(|table| match table.get(&last) {
            None => table.insert(last, value).is_none(),
            Some(_) => false,
        });
        if !free {
            let name = self
                .table
                .iter()
                .chain(&path)
                .cloned()
                .collect::<Vec<_>>()
                .join(".");
            return self.refuse(format!("Key '{name}' has already been defined."));
        }
        self.key.clear();
        Ok(())
    }

    /// A key and the equals sign after it.
    fn key_and_sign(&mut self) -> Result<Vec<String>, TomlError> {
        match self.peek() {
            Some('=') => return self.refuse("unexpected '=': key name appears blank"),
            Some('.') => return self.refuse("unexpected '.': keys cannot start with a '.'"),
            _ => {}
        }
        let path = self.path(false)?;
        if self.take("=") {
            self.blanks();
            return Ok(path);
        }
        let found = self.found();
        match self.peek() {
            None => self.refuse("unexpected EOF; expected key separator '='"),
            Some(_) => self.refuse(format!("expected '.' or '=', but got {found} instead")),
        }
    }

    /// A dotted name.
    fn path(&mut self, header: bool) -> Result<Vec<String>, TomlError> {
        let mut path = Vec::new();
        loop {
            self.blanks();
            if path.len() == DEPTH {
                return self.refuse("values nest too deeply");
            }
            path.push(match self.peek() {
                Some('"') => self.basic_string()?,
                Some('\'') => self.literal_string()?,
                Some(']') | None if header => {
                    return self
                        .refuse("unexpected end of table name (table names cannot be empty)");
                }
                Some('.') if header => {
                    return self.refuse("unexpected table separator (table names cannot be empty)");
                }
                Some('=') => return self.refuse("unexpected '='"),
                Some('.') => return self.refuse("unexpected '.'"),
                _ => self.bare_key()?,
            });
            self.blanks();
            if !self.take(".") {
                return Ok(path);
            }
        }
    }

    fn bare_key(&mut self) -> Result<String, TomlError> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            .unwrap_or(rest.len());
        if end == 0 {
            let found = self.found();
            return self.refuse(format!("expected '.' or '=', but got {found} instead"));
        }
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Value, TomlError> {
        if depth > DEPTH {
            return self.refuse("values nest too deeply");
        }
        match self.peek() {
            None => self.refuse("unexpected EOF; expected value"),
            Some('[') => self.list(depth),
            Some('{') => self.inline_table(depth),
            Some('"') if self.take("\"\"\"") => self.long_string('"').map(Value::String),
            Some('"') => self.basic_string().map(Value::String),
            Some('\'') if self.take("'''") => self.long_string('\'').map(Value::String),
            Some('\'') => self.literal_string().map(Value::String),
            Some(_) => self.plain(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, TomlError> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.gap();
            match self.peek() {
                Some(']') => break,
                Some(',') => return self.refuse("unexpected comma"),
                _ => items.push(self.value(depth + 1)?),
            }
            self.gap();
            if !self.take(",") && self.peek() != Some(']') {
                let found = self.found();
                return self.refuse(format!(
                    "expected a comma (',') or array terminator (']'), but got {found}"
                ));
            }
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    fn inline_table(&mut self, depth: usize) -> Result<Value, TomlError> {
        self.at += 1;
        let mut table = Map::new();
        loop {
            self.gap();
            match self.peek() {
                Some('}') => break,
                Some(',') => return self.refuse("unexpected comma"),
                _ => {}
            }
            let path = self.key_and_sign()?;
            let value = self.value(depth + path.len())?;
            let Some((last, above)) = path.split_last() else {
                continue;
            };
            let free = reach(&mut table, above).is_some_and(|table| {
                !table.contains_key(last) && table.insert(last.clone(), value).is_none()
            });
            if !free {
                return self.refuse(format!(
                    "Key '{}' has already been defined.",
                    path.join(".")
                ));
            }
            self.gap();
            if !self.take(",") && self.peek() != Some('}') {
                let found = self.found();
                return self.refuse(format!(
                    "expected a comma or an inline table terminator '}}', but got {found} instead"
                ));
            }
        }
        self.at += 1;
        Ok(Value::Object(table))
    }

    /// A boolean, a number or a date.
    fn plain(&mut self) -> Result<Value, TomlError> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| {
                !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_' | '.' | ':'))
            })
            .unwrap_or(rest.len());
        let word = &rest[..end];
        let dated = word.len() == 10 && rest[end..].starts_with(' ') && scalar::is_date(word);
        let end = if dated && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
            end + 1
                + rest[end + 1..]
                    .find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | '#'))
                    .unwrap_or(rest.len() - end - 1)
        } else {
            end
        };
        let word = &rest[..end];
        match scalar::read(word) {
            Some(Ok(value)) => {
                self.at += end;
                Ok(value)
            }
            Some(Err(why)) => self.refuse(why),
            None => {
                let found = if word.is_empty() {
                    self.found()
                } else {
                    crate::text::quote(word)
                };
                self.refuse(format!("expected value but found {found} instead"))
            }
        }
    }
}

/// The table at a path, created if missing; a list of tables stands for its last element.
fn reach<'m>(
    root: &'m mut Map<String, Value>,
    path: &[String],
) -> Option<&'m mut Map<String, Value>> {
    path.iter().try_fold(root, |table, name| {
        match table
            .entry(name.clone())
            .or_insert_with(|| Value::Object(Map::new()))
        {
            Value::Object(inner) => Some(inner),
            Value::Array(items) => items.last_mut().and_then(Value::as_object_mut),
            _ => None,
        }
    })
}

/// The value at a path, if any.
fn find<'m>(root: &'m mut Map<String, Value>, path: &[String]) -> Option<&'m mut Value> {
    let (last, above) = path.split_last()?;
    let table = above
        .iter()
        .try_fold(root, |table, name| match table.get_mut(name)? {
            Value::Object(inner) => Some(inner),
            Value::Array(items) => items.last_mut().and_then(Value::as_object_mut),
            _ => None,
        })?;
    table.get_mut(last)
}

fn float(f: f64) -> Option<Value> {
    Number::from_f64(f).map(Value::Number)
}
