//! Splits a program's text into tokens.
//!
//! Main function: [`tokens`]. A text that contains `\(…)` is represented by its parts, with the
//! tokens of each query between them.

use super::{JqError, number, value::Val};

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name or a keyword.
    Name(String),
    Variable(String),
    /// `.name`
    Field(String),
    Number(String),
    Format(String),
    Sign(&'static str),
    TextStart,
    TextPart(String),
    QueryStart,
    QueryEnd,
    TextEnd,
}

impl Token {
    /// As shown in messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Name(name) | Self::Number(name) => name.clone(),
            Self::Variable(name) => format!("${name}"),
            Self::Field(name) => format!(".{name}"),
            Self::Format(name) => format!("@{name}"),
            Self::Sign(sign) => (*sign).to_owned(),
            Self::TextStart | Self::TextEnd => "\"".to_owned(),
            Self::TextPart(text) => text.clone(),
            Self::QueryStart => "\\(".to_owned(),
            Self::QueryEnd => ")".to_owned(),
        }
    }
}

/// Longest first, so that the first match is the right one.
const SIGNS: &[&str] = &[
    "?//", "//=", "|=", "+=", "-=", "*=", "/=", "//", "%=", "==", "!=", ">=", "<=", "..", ".", "|",
    ",", ";", ":", "(", ")", "[", "]", "{", "}", "?", "+", "-", "*", "/", "%", "=", ">", "<",
];

pub fn tokens(text: &str) -> Result<Vec<Token>, JqError> {
    let mut lexer = Lexer {
        rest: text,
        tokens: Vec::new(),
        open: Vec::new(),
    };
    while lexer.step()? {}
    match lexer.open.is_empty() {
        true => Ok(lexer.tokens),
        false => Err(JqError::new("unterminated string literal")),
    }
}

struct Lexer<'t> {
    rest: &'t str,
    tokens: Vec<Token>,
    /// For each open `\(`, the number of open parentheses inside it.
    open: Vec<usize>,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn starts_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Whether the whole text is a number that `tonumber` accepts.
pub fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let leads = digits.strip_prefix('.').unwrap_or(digits);
    leads.starts_with(|c: char| c.is_ascii_digit()) && number_length(digits) == Some(digits.len())
}

/// The length of the number at the start, unless it is malformed.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
        if bytes.get(at) == Some(&b'.') {
            return None;
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let signed = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = digits(signed);
        if at == signed {
            return None;
        }
    }
    (!starts_name(&text[at..])).then_some(at)
}

impl Lexer<'_> {
    /// Reads one token. False at the end.
    fn step(&mut self) -> Result<bool, JqError> {
        self.rest = self.rest.trim_start_matches(['\t', '\n', '\r', ' ']);
        let Some(first) = self.rest.chars().next() else {
            return Ok(false);
        };
        match first {
            '#' => self.comment(),
            '"' => {
                self.rest = &self.rest[1..];
                self.tokens.push(Token::TextStart);
                self.text()?;
            }
            '.' if starts_name(&self.rest[1..]) => {
                self.rest = &self.rest[1..];
                let name = self.name();
                self.tokens.push(Token::Field(name));
            }
            '.' if self.rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
            '$' if starts_name(&self.rest[1..]) => {
                self.rest = &self.rest[1..];
                let name = self.module_name();
                self.tokens.push(Token::Variable(name));
            }
            '@' if self.rest[1..].starts_with(is_name) => {
                self.rest = &self.rest[1..];
                let name = self.name();
                self.tokens.push(Token::Format(name));
            }
            c if c.is_ascii_digit() => self.number()?,
            c if is_name(c) => {
                let name = self.module_name();
                self.tokens.push(Token::Name(name));
            }
            _ => self.sign(first)?,
        }
        Ok(true)
    }

    fn comment(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = matches!(c, '\n' | '\r') && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
    }

    fn name(&mut self) -> String {
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_owned()
    }

    /// A name, with its module prefix, if any.
    fn module_name(&mut self) -> String {
        let name = self.name();
        match self.rest.strip_prefix("::") {
            Some(rest) if starts_name(rest) => {
                self.rest = rest;
                format!("{name}::{}", self.name())
            }
            _ => name,
        }
    }

    fn number(&mut self) -> Result<(), JqError> {
        let length = number_length(self.rest);
        let length = length.ok_or_else(|| {
            JqError::new(format!(
                "invalid token {:?}",
                self.rest.split(' ').next().unwrap_or_default()
            ))
        })?;
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.tokens.push(Token::Number(number.to_owned()));
        Ok(())
    }

    fn sign(&mut self, first: char) -> Result<(), JqError> {
        let Some(sign) = SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) else {
            return Err(JqError::new(format!("unexpected token \"{first}\"")));
        };
        self.rest = &self.rest[sign.len()..];
        match (*sign, self.open.last_mut()) {
            ("(", Some(open)) => *open += 1,
            (")", Some(0)) => {
                self.open.pop();
                self.tokens.push(Token::QueryEnd);
                return self.text();
            }
            (")", Some(open)) => *open -= 1,
            _ => {}
        }
        self.tokens.push(Token::Sign(sign));
        Ok(())
    }

    /// A text up to its end or to the next query in it.
    fn text(&mut self) -> Result<(), JqError> {
        let mut part = String::new();
        let mut high = None;
        loop {
            let mut chars = self.rest.chars();
            let c = chars
                .next()
                .ok_or_else(|| JqError::new("unterminated string literal"))?;
            self.rest = chars.as_str();
            if c != '\\' || !self.rest.starts_with('u') {
                part.extend(high.take().map(|_| char::REPLACEMENT_CHARACTER));
            }
            match c {
                '"' => break self.part(part, Token::TextEnd),
                '\\' if self.rest.starts_with('(') => {
                    self.rest = &self.rest[1..];
                    self.open.push(0);
                    break self.part(part, Token::QueryStart);
                }
                '\\' => self.escape(&mut part, &mut high)?,
                c => part.push(c),
            }
        }
        Ok(())
    }

    fn part(&mut self, part: String, then: Token) {
        if !part.is_empty() {
            self.tokens.push(Token::TextPart(part));
        }
        self.tokens.push(then);
    }

    /// The character after a backslash. The first half of a surrogate pair is kept until the
    /// second.
    fn escape(&mut self, part: &mut String, high: &mut Option<u32>) -> Result<(), JqError> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        let escaped = match c {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let digits = self
                    .rest
                    .get(..4)
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let unit = unit.ok_or_else(|| {
                    JqError::new("invalid escape sequence \"\\u\" in string literal")
                })?;
                self.rest = &self.rest[4..];
                match (high.take(), unit) {
                    (Some(first), 0xdc00..=0xdfff) => {
                        let c =
                            char::from_u32(0x10000 + ((first - 0xd800) << 10) + (unit - 0xdc00));
                        part.extend(c);
                        return Ok(());
                    }
                    (before, 0xd800..=0xdbff) => {
                        part.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                        *high = Some(unit);
                        return Ok(());
                    }
                    (before, unit) => {
                        part.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                        char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                }
            }
            Some(c) => {
                return Err(JqError::new(format!(
                    "invalid escape sequence \"\\{c}\" in string literal"
                )));
            }
            None => return Err(JqError::new("unterminated string literal")),
        };
        part.push(escaped);
        Ok(())
    }
}

/// The value of a number token.
pub fn number(text: &str) -> Val {
    let text = if text.starts_with('.') {
        format!("0{text}")
    } else {
        text.to_owned()
    };
    number::parse(&text).unwrap_or(Val::Float(f64::INFINITY))
}
