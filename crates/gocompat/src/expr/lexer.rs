//! Splits a program into tokens.
//!
//! Main function: [`tokens`].

use super::error::ExprError;
use super::unescape;
use crate::template::Str;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Identifier,
    Number,
    String,
    Bytes,
    Operator,
    Bracket,
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    /// The text; for literals of texts and bytes, their content.
    pub text: String,
    pub bytes: Str,
    /// Offset in characters.
    pub at: u32,
}

impl Token {
    pub fn is(&self, kind: Kind, text: &str) -> bool {
        self.kind == kind && self.text == text
    }

    pub fn is_operator(&self, text: &str) -> bool {
        self.is(Kind::Operator, text)
    }

    pub fn is_bracket(&self, text: &str) -> bool {
        self.is(Kind::Bracket, text)
    }

    /// For error texts.
    pub fn shown(&self) -> String {
        if self.kind == Kind::End {
            return "EOF".into();
        }
        let quoted = crate::template::format::sprintf(b"%q", &[self.text.as_str().into()])
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        format!("{:?}({quoted})", self.kind)
    }
}

/// The tokens with the one of the end.
///
/// # Errors
/// For a character, number or literal that the language does not have.
pub(super) fn tokens(code: &str) -> Result<Vec<Token>, ExprError> {
    let mut lexer = Lexer {
        chars: code.chars().collect(),
        at: 0,
        start: 0,
        tokens: Vec::new(),
    };
    while lexer.token()? {}
    Ok(lexer.tokens)
}

pub(super) fn is_alphabetic(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn is_word(c: char) -> bool {
    is_alphabetic(c) || c.is_numeric()
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    start: usize,
    tokens: Vec<Token>,
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|c| valid.contains(c));
        self.at += usize::from(found);
        found
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn word(&self) -> String {
        self.chars[self.start..self.at].iter().collect()
    }

    fn emit(&mut self, kind: Kind) {
        let word = self.word();
        self.emit_value(kind, word.as_bytes().to_vec());
    }

    fn emit_value(&mut self, kind: Kind, bytes: Vec<u8>) {
        self.tokens.push(Token {
            kind,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            bytes: Str::from(bytes),
            at: u32::try_from(self.start).unwrap_or(u32::MAX),
        });
        self.start = self.at;
    }

    fn fails<T>(&self, message: impl Into<String>) -> Result<T, ExprError> {
        Err(ExprError::compile(self.at.saturating_sub(1), message))
    }

    /// Takes the next token; false at the end.
    fn token(&mut self) -> Result<bool, ExprError> {
        self.start = self.at;
        let Some(c) = self.next() else {
            self.start = self.at.saturating_sub(1);
            self.at = self.start;
            self.tokens.push(Token {
                kind: Kind::End,
                text: String::new(),
                bytes: Str::default(),
                at: u32::try_from(self.start).unwrap_or(u32::MAX),
            });
            return Ok(false);
        };
        match c {
            c if c.is_whitespace() => {}
            '\'' | '"' => self.string(c, Kind::String)?,
            'b' | 'B' if matches!(self.peek(), Some('\'' | '"')) => {
                let quote = self.next().unwrap_or_default();
                self.string(quote, Kind::Bytes)?;
            }
            '`' => self.raw_string()?,
            '0'..='9' => {
                self.at -= 1;
                self.number()?;
            }
            '?' => {
                self.accept(".?");
                self.emit(Kind::Operator);
            }
            '/' => self.slash()?,
            '#' => self.pointer(),
            '|' | ':' => {
                self.accept(if c == '|' { "|" } else { ":" });
                self.emit(Kind::Operator);
            }
            '(' | '[' | '{' | ')' | ']' | '}' => self.emit(Kind::Bracket),
            ',' | ';' | '%' | '+' | '-' | '^' => self.emit(Kind::Operator),
            '&' | '!' | '=' | '*' | '<' | '>' => {
                self.accept("&=*");
                self.emit(Kind::Operator);
            }
            '.' => self.dot()?,
            c if is_word(c) => self.identifier(),
            c => return self.fails(format!("unrecognized character: U+{:04X} '{c}'", c as u32)),
        }
        Ok(true)
    }

    fn string(&mut self, quote: char, kind: Kind) -> Result<(), ExprError> {
        let from = self.at;
        loop {
            match self.next() {
                Some(c) if c == quote => break,
                None | Some('\n') => return self.fails("literal not terminated"),
                Some('\\') if self.next().is_none() => {
                    return self.fails("literal not terminated");
                }
                Some(_) => {}
            }
        }
        let content = &self.chars[from..self.at - 1];
        match unescape::unescape(content, quote, kind == Kind::Bytes) {
            Ok(bytes) => {
                self.emit_value(kind, bytes);
                Ok(())
            }
            Err(message) => self.fails(message),
        }
    }

    /// A literal in backquotes; two of them are one in it.
    fn raw_string(&mut self) -> Result<(), ExprError> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return self.fails("literal not terminated"),
                Some('`') if self.peek() == Some('`') => {
                    self.at += 1;
                    text.push('`');
                }
                Some('`') => break,
                Some(c) => text.push(c),
            }
        }
        self.emit_value(Kind::String, text.into_bytes());
        Ok(())
    }

    fn number(&mut self) -> Result<(), ExprError> {
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.peek() == Some('.') {
            if self.chars.get(self.at + 1) == Some(&'.') {
                self.emit(Kind::Number);
                return Ok(());
            }
            self.at += 1;
            self.accept_run(digits);
        }
        if self.accept("eE") {
            self.accept("+-");
            self.accept_run(digits);
        }
        if self.peek().is_some_and(is_word) {
            self.at += 1;
            let message = format!("bad number syntax: \"{}\"", self.word());
            return self.fails(message);
        }
        self.emit(Kind::Number);
        Ok(())
    }

    fn dot(&mut self) -> Result<(), ExprError> {
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at -= 1;
            return self.number();
        }
        self.accept(".");
        self.emit(Kind::Operator);
        Ok(())
    }

    fn slash(&mut self) -> Result<(), ExprError> {
        if self.accept("/") {
            while self.next().is_some_and(|c| c != '\n') {}
        } else if self.accept("*") {
            loop {
                match self.next() {
                    None => return self.fails("unclosed comment"),
                    Some('*') if self.accept("/") => break,
                    Some(_) => {}
                }
            }
        } else {
            self.emit(Kind::Operator);
        }
        Ok(())
    }

    fn pointer(&mut self) {
        self.accept("#");
        self.emit(Kind::Operator);
        self.words();
        if self.at > self.start {
            self.emit(Kind::Identifier);
        }
    }

    fn words(&mut self) {
        while self.peek().is_some_and(is_word) {
            self.at += 1;
        }
    }

    fn identifier(&mut self) {
        self.words();
        match self.word().as_str() {
            "not" => self.not(),
            "in" | "or" | "and" | "matches" | "contains" | "startsWith" | "endsWith" | "let"
            | "if" | "else" => self.emit(Kind::Operator),
            _ => self.emit(Kind::Identifier),
        }
    }

    /// `not`, and the operator behind it that it negates.
    fn not(&mut self) {
        self.emit(Kind::Operator);
        self.accept_run(" ");
        self.start = self.at;
        self.words();
        match self.word().as_str() {
            "in" | "matches" | "contains" | "startsWith" | "endsWith" => self.emit(Kind::Operator),
            _ => self.at = self.start,
        }
    }
}
