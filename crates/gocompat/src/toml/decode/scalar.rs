//! Texts, numbers, booleans and dates.
//!
//! Main functions: [`read`] for words, and the reader's methods for strings.

use super::{Reader, float};
use crate::toml::TomlError;
use serde_json::Value;

/// The value of a word; None if it is not a value, an error text if it is malformed.
pub fn read(word: &str) -> Option<Result<Value, String>> {
    let unsigned = word.trim_start_matches(['+', '-']);
    let value = match word {
        "true" | "false" => Value::Bool(word == "true"),
        _ if matches!(unsigned, "inf" | "nan") => {
            return Some(Err(format!("{word} has no place in a document")));
        }
        _ if !unsigned.starts_with(|c: char| c.is_ascii_digit()) => return None,
        // A date stays text.
        _ if is_date(word.get(..10).unwrap_or_default()) || word.get(2..3) == Some(":") => {
            Value::String(word.to_owned())
        }
        _ => return Some(number(word, unsigned)),
    };
    Some(Ok(value))
}

/// `1979-05-27`
pub fn is_date(word: &str) -> bool {
    word.len() == 10
        && word.bytes().enumerate().all(|(i, b)| {
            if matches!(i, 4 | 7) {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        })
}

fn number(word: &str, unsigned: &str) -> Result<Value, String> {
    let quoted = crate::text::quote(word);
    let kind = if unsigned.contains(['.'])
        || (unsigned.contains(['e', 'E']) && !unsigned.starts_with("0x"))
    {
        "float"
    } else {
        "integer"
    };
    let lonely =
        word.contains("__") || word.ends_with('_') || word.contains("_.") || word.contains("._");
    if lonely {
        return Err(format!(
            "Invalid {kind} {quoted}: underscores must be surrounded by digits"
        ));
    }
    let digits = word.replace('_', "");
    let bare = unsigned.replace('_', "");
    let leading = bare.len() > 1
        && bare.starts_with('0')
        && bare[1..].starts_with(|c: char| c.is_ascii_digit());
    if leading {
        return Err(format!(
            "Invalid {kind} {quoted}: cannot have leading zeroes"
        ));
    }
    if kind == "float" {
        let ends = digits.ends_with('.') || digits.contains(".e") || digits.contains(".E");
        if ends {
            return Err(format!(
                "Invalid float {quoted}: '.' must be followed by one or more digits"
            ));
        }
        return digits
            .parse()
            .ok()
            .and_then(float)
            .ok_or_else(|| format!("Invalid float value: {quoted}"));
    }
    let based = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, base)| Some((bare.strip_prefix(prefix)?.to_owned(), base)));
    let parsed = match based {
        Some((digits, base)) => i64::from_str_radix(&digits, base),
        None => digits.parse(),
    };
    parsed
        .map(|number| Value::Number(number.into()))
        .map_err(|e| match e.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                format!("{word} is out of range for int64")
            }
            _ => format!("expected value but found {quoted} instead"),
        })
}

impl Reader<'_> {
    pub(super) fn basic_string(&mut self) -> Result<String, TomlError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.next() {
                None => return self.refuse("unexpected EOF; expected '\"'"),
                Some('\n') => return self.refuse("strings cannot contain newlines"),
                Some('"') => return Ok(out),
                Some('\\') => out.push(self.escape()?),
                Some(c) => out.push(c),
            }
        }
    }

    pub(super) fn literal_string(&mut self) -> Result<String, TomlError> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.next() {
                None => return self.refuse("unexpected EOF; expected \"'\""),
                Some('\n') => return self.refuse("strings cannot contain newlines"),
                Some('\'') => return Ok(self.text[start..self.at - 1].to_owned()),
                Some(_) => {}
            }
        }
    }

    /// A multi-line string, after its opening quotes. Up to two quotes may precede the closing
    /// ones.
    pub(super) fn long_string(&mut self, mark: char) -> Result<String, TomlError> {
        self.take("\n");
        let closing = mark.to_string().repeat(3);
        let mut out = String::new();
        loop {
            if self.take(&closing) {
                while self.peek() == Some(mark) {
                    self.at += 1;
                    out.push(mark);
                }
                return Ok(out);
            }
            match self.next() {
                None if mark == '"' => return self.refuse("unexpected EOF; expected '\"\"\"'"),
                None => return self.refuse("unexpected EOF; expected \"'''\""),
                Some('\\')
                    if mark == '"'
                        && self.text[self.at..]
                            .trim_start_matches([' ', '\t'])
                            .starts_with('\n') =>
                {
                    let rest = &self.text[self.at..];
                    self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n']).len();
                }
                Some('\\') if mark == '"' => out.push(self.escape()?),
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, TomlError> {
        let (digits, words) = match self.next() {
            Some('b') => return Ok('\u{8}'),
            Some('t') => return Ok('\t'),
            Some('n') => return Ok('\n'),
            Some('f') => return Ok('\u{c}'),
            Some('r') => return Ok('\r'),
            Some('e') => return Ok('\u{1b}'),
            Some(c @ ('"' | '\\')) => return Ok(c),
            Some('x') => (2, "two hexadecimal digits after '\\x'"),
            Some('u') => (4, "four hexadecimal digits after '\\u'"),
            Some('U') => (8, "eight hexadecimal digits after '\\U'"),
            other => {
                return self.refuse(format!(
                    "invalid escape in string '\\{}'",
                    other.unwrap_or('\u{fffd}')
                ));
            }
        };
        let code = self
            .text
            .get(self.at..self.at + digits)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = code else {
            return self.refuse(format!("expected {words}"));
        };
        self.at += digits;
        match u32::from_str_radix(code, 16).ok().and_then(char::from_u32) {
            Some(c) => Ok(c),
            None => self.refuse(format!("Escaped character '\\u{code}' is not valid UTF-8.")),
        }
    }
}
