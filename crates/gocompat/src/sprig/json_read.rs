//! Parses JSON as Go's encoding/json does for an empty interface, with its error texts.
//!
//! Main function: [`read`].

use super::args::{Out, fails};
use crate::template::{Budget, Error, LIST, Limits, List, MAP, Map, Str, Value};

/// Deepest nesting; Go's is 10,000.
const DEPTH: usize = 1000;

pub(super) fn read(text: &[u8], budget: &Budget) -> Out {
    let mut reader = Reader {
        text,
        at: 0,
        budget,
    };
    let value = reader.value(0)?;
    match reader.next() {
        None => Ok(value),
        Some(_) => reader.refuse("after top-level value"),
    }
}

/// Go's error for a text that is not JSON.
pub(crate) fn fault(text: &str) -> Option<String> {
    let limits = Limits {
        memory: 4 << 20,
        ..Limits::default()
    };
    read(text.as_bytes(), &Budget::new(limits))
        .err()
        .map(|e| e.to_string())
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    budget: &'t Budget,
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte after spaces, not consumed.
    fn next(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.byte()
    }

    /// The error for the next byte.
    fn refuse<T>(&self, context: &str) -> Result<T, Error> {
        match self.byte() {
            // Go appends a space to the input: only a context that does not accept one reports
            // more.
            None if context.starts_with("looking")
                || context.starts_with("after array")
                || context.starts_with("after object")
                || context == "in string literal" =>
            {
                fails("unexpected end of JSON input")
            }
            None => fails(format!("invalid character ' ' {context}")),
            Some(byte) => fails(format!(
                "invalid character {} {context}",
                crate::text::quote_rune(char::from(byte))
            )),
        }
    }

    fn value(&mut self, depth: usize) -> Out {
        self.budget.memory(size_of::<Value>())?;
        if depth > DEPTH {
            return fails("exceeded max depth");
        }
        match self.next() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.refuse("looking for beginning of value"),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Out {
        for expected in word.bytes() {
            if self.byte() != Some(expected) {
                return self.refuse(&format!(
                    "in literal {word} (expecting '{}')",
                    char::from(expected)
                ));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Out {
        self.at += 1;
        let mut items = Vec::new();
        if self.next() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(List::of(LIST, items)));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.refuse("after array element"),
            }
        }
        self.at += 1;
        Ok(Value::List(List::of(LIST, items)))
    }

    fn object(&mut self, depth: usize) -> Out {
        self.at += 1;
        let map = Map::of(MAP, []);
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(map.into());
        }
        loop {
            if self.next() != Some(b'"') {
                return self.refuse("looking for beginning of object key string");
            }
            let key = self.string()?;
            if self.next() != Some(b':') {
                return self.refuse("after object key");
            }
            self.at += 1;
            map.insert(key, self.value(depth + 1)?)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.refuse("after object key:value pair"),
            }
        }
        self.at += 1;
        Ok(map.into())
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Out {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else if !self.digits() {
            return self.refuse("in numeric literal");
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                return self.refuse("after decimal point in numeric literal");
            }
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return self.refuse("in exponent of numeric literal");
            }
        }
        let text = String::from_utf8_lossy(&self.text[start..self.at]);
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => fails(format!(
                "json: cannot unmarshal number {text} into Go value of type float64"
            )),
        }
    }

    fn string(&mut self) -> Result<Str, Error> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                None | Some(0..=0x1f) => return self.refuse("in string literal"),
                Some(byte) => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        self.budget.memory(out.len())?;
        Ok(match String::from_utf8(out) {
            Ok(text) => Str::from(text),
            Err(e) => Str::from(replaced(e.as_bytes())),
        })
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let plain = match self.byte() {
            Some(b @ (b'"' | b'\\' | b'/')) => b,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(out),
            _ => return self.refuse("in string escape code"),
        };
        out.push(plain);
        self.at += 1;
        Ok(())
    }

    /// `\uXXXX`, possibly the first of a pair.
    fn unicode(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.at += 1;
        let mut code = self.four_digits()?;
        if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.four_digits()?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            } else {
                self.at = back;
            }
        }
        let rune = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(rune.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn four_digits(&mut self) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.byte().and_then(|b| char::from(b).to_digit(16)) else {
                return self.refuse("in \\u hexadecimal character escape");
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Replaces each byte that is not UTF-8 by U+FFFD.
fn replaced(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
