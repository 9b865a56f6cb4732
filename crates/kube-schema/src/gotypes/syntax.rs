//! Go's error messages for invalid JSON. Main function: [`syntax_error`]; it is called only after
//! decoding has failed.

use crate::gofmt;

/// Go's limit of nested lists and maps.
const MAX_DEPTH: usize = 10_000;

/// Go's scanner treats the end of the text as this character, to see whether a value ends there.
const AT_END: u8 = b' ';

/// The scanner's position in a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Value,
    /// After `[`: a value or the end.
    FirstElement,
    /// After `{`: a key or the end.
    FirstKey,
    Key,
    Colon,
    AfterValue,
}

/// The first error in the text, with Go's wording; none if it is valid JSON.
pub fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        text,
        at: 0,
        open: Vec::new(),
    };
    scanner.document().err()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The open brackets.
    open: Vec<u8>,
}

type Step = Result<(), String>;

impl Scanner<'_> {
    fn document(&mut self) -> Step {
        let mut state = At::Value;
        loop {
            while self
                .peek()
                .is_some_and(|c| matches!(c, b' ' | b'\t' | b'\r' | b'\n'))
            {
                self.at += 1;
            }
            let Some(c) = self.peek() else {
                return if state == At::AfterValue && self.open.is_empty() {
                    Ok(())
                } else {
                    Err(end())
                };
            };
            state = match state {
                At::Value => self.value(c)?,
                At::FirstElement if c == b']' => self.close(),
                At::FirstElement => self.value(c)?,
                At::FirstKey if c == b'}' => self.close(),
                At::FirstKey | At::Key if c == b'"' => {
                    self.string()?;
                    At::Colon
                }
                At::FirstKey | At::Key => {
                    return Err(wrong(c, "looking for beginning of object key string"));
                }
                At::Colon if c == b':' => self.step(At::Value),
                At::Colon => return Err(wrong(c, "after object key")),
                At::AfterValue => self.after(c)?,
            };
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step(&mut self, next: At) -> At {
        self.at += 1;
        next
    }

    fn close(&mut self) -> At {
        self.open.pop();
        self.step(At::AfterValue)
    }

    fn after(&mut self, c: u8) -> Result<At, String> {
        match (self.open.last(), c) {
            (None, _) => Err(wrong(c, "after top-level value")),
            (Some(b'{'), b',') => Ok(self.step(At::Key)),
            (Some(b'{'), b'}') | (Some(b'['), b']') => Ok(self.close()),
            (Some(b'{'), _) => Err(wrong(c, "after object key:value pair")),
            (Some(_), b',') => Ok(self.step(At::Value)),
            (Some(_), _) => Err(wrong(c, "after array element")),
        }
    }

    fn value(&mut self, c: u8) -> Result<At, String> {
        match c {
            b'{' | b'[' => {
                self.open.push(c);
                if self.open.len() > MAX_DEPTH {
                    return Err(wrong(c, "exceeded max depth"));
                }
                return Ok(self.step(if c == b'{' {
                    At::FirstKey
                } else {
                    At::FirstElement
                }));
            }
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            _ => return Err(wrong(c, "looking for beginning of value")),
        }
        Ok(At::AfterValue)
    }

    fn literal(&mut self, word: &str) -> Step {
        for expected in word.bytes() {
            match self.peek() {
                Some(c) if c == expected => self.at += 1,
                c => {
                    let what = format!("in literal {word} (expecting '{}')", char::from(expected));
                    return Err(wrong(c.unwrap_or(AT_END), &what));
                }
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Step {
        self.at += 1;
        loop {
            let c = self.peek().ok_or_else(end)?;
            self.at += 1;
            match c {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                0..0x20 => return Err(wrong(c, "in string literal")),
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Step {
        let c = self.peek().unwrap_or(AT_END);
        self.at += 1;
        match c {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => (0..4).try_for_each(|_| match self.peek() {
                Some(c) if c.is_ascii_hexdigit() => {
                    self.at += 1;
                    Ok(())
                }
                c => Err(wrong(
                    c.unwrap_or(AT_END),
                    "in \\u hexadecimal character escape",
                )),
            }),
            _ => Err(wrong(c, "in string escape code")),
        }
    }

    /// At least one digit, or an error.
    fn digits(&mut self, where_: &str) -> Step {
        match self.peek() {
            Some(c) if c.is_ascii_digit() => {
                while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.at += 1;
                }
                Ok(())
            }
            c => Err(wrong(c.unwrap_or(AT_END), where_)),
        }
    }

    fn number(&mut self) -> Step {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}

fn end() -> String {
    "unexpected end of JSON input".to_owned()
}

fn wrong(c: u8, where_: &str) -> String {
    let shown = match c {
        b'\'' => r"\'".to_owned(),
        b'"' => "\"".to_owned(),
        b'\\' => r"\\".to_owned(),
        b'\n' => r"\n".to_owned(),
        b'\t' => r"\t".to_owned(),
        b'\r' => r"\r".to_owned(),
        0x20..=0x7e => char::from(c).to_string(),
        _ => gofmt::quoted(&char::from(c).to_string())
            .trim_matches('"')
            .to_owned(),
    };
    format!("invalid character '{shown}' {where_}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_as_go_names_them() {
        let table = [
            ("", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            (
                "{\"a\":NaN}",
                "invalid character 'N' looking for beginning of value",
            ),
            ("{}{}", "invalid character '{' after top-level value"),
            (
                "{a:1}",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1 \"b\"}",
                "invalid character '\"' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (
                r#""\u12g4""#,
                r"invalid character 'g' in \u hexadecimal character escape",
            ),
            (
                "trux",
                "invalid character 'x' in literal true (expecting 'e')",
            ),
            (
                "tru",
                "invalid character ' ' in literal true (expecting 'e')",
            ),
            ("-", "invalid character ' ' in numeric literal"),
            (r#""\"#, "invalid character ' ' in string escape code"),
            ("\"a", "unexpected end of JSON input"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("01", "invalid character '1' after top-level value"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "1e+x",
                "invalid character 'x' in exponent of numeric literal",
            ),
        ];
        for (text, message) in table {
            assert_eq!(
                syntax_error(text.as_bytes()).as_deref(),
                Some(message),
                "{text}"
            );
        }
        assert_eq!(
            syntax_error(br#" {"a":[1,-2.5e3,"x\u00e4",true,false,null,{}],"b":{}} "#),
            None
        );
        assert_eq!(
            syntax_error("[".repeat(10_001).as_bytes()).as_deref(),
            Some("invalid character '[' exceeded max depth")
        );
        assert_eq!(
            syntax_error(format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).as_bytes()),
            None
        );
    }
}
