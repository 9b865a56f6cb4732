//! Tokens of a template.
//!
//! Main type: [`Lexer`]. It works on demand, because whether a space is a token depends on being
//! inside an action.

use super::format::quote::quote;
use super::unicode::{decode, is_digit, is_letter};
use crate::printable::is_print;
use memchr::memchr_iter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Error,
    Bool,
    /// Any other printable ASCII character, such as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Dot,
    Nil,
    Keyword(Keyword),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    /// Its position, in bytes.
    pub pos: usize,
    pub end: usize,
    /// Its line, from 1.
    pub line: usize,
}

pub struct Lexer<'t> {
    input: &'t [u8],
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parens: usize,
    inside: bool,
    /// Whether `break` and `continue` are keywords: no function has that name.
    pub break_word: bool,
    pub continue_word: bool,
    /// The message, once an error occurred.
    pub error: String,
}

type Step = Result<Token, Token>;

impl<'t> Lexer<'t> {
    pub fn new(input: &'t [u8]) -> Self {
        Self {
            input,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            parens: 0,
            inside: false,
            break_word: true,
            continue_word: true,
            error: String::new(),
        }
    }

    pub fn next_token(&mut self) -> Token {
        let step = if self.inside {
            self.inside_action()
        } else {
            self.text()
        };
        step.unwrap_or_else(|error| {
            // Nothing follows an error.
            self.input = &[];
            self.pos = 0;
            self.start = 0;
            error
        })
    }

    fn rest(&self) -> &'t [u8] {
        &self.input[self.pos..]
    }

    fn starts_with(&self, prefix: &[u8]) -> bool {
        self.rest().starts_with(prefix)
    }

    fn peek(&self) -> Option<char> {
        let first = *self.rest().first()?;
        Some(if first.is_ascii() {
            char::from(first)
        } else {
            decode(self.rest()).0
        })
    }

    fn next(&mut self) -> Option<char> {
        let first = *self.rest().first()?;
        if first.is_ascii() {
            self.pos += 1;
            self.line += usize::from(first == b'\n');
            return Some(char::from(first));
        }
        let (rune, width) = decode(self.rest());
        self.pos += width;
        Some(rune)
    }

    /// Skips one of these ASCII characters.
    fn accept(&mut self, valid: &str) -> bool {
        let first = self.rest().first();
        let found = first.is_some_and(|b| valid.as_bytes().contains(b));
        if found {
            self.next();
        }
        found
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn token(&mut self, kind: Kind) -> Token {
        let token = Token {
            kind,
            pos: self.start,
            end: self.pos,
            line: self.start_line,
        };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    fn emit(&mut self, kind: Kind) -> Step {
        Ok(self.token(kind))
    }

    fn fail(&mut self, message: impl Into<String>) -> Step {
        if self.error.is_empty() {
            self.error = message.into();
        }
        Err(Token {
            kind: Kind::Error,
            pos: self.start,
            end: self.start,
            line: self.start_line,
        })
    }

    /// Skips what was read without [`Lexer::next`].
    fn ignore(&mut self) {
        self.line += lines(&self.input[self.start..self.pos]);
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn text(&mut self) -> Step {
        loop {
            let Some(found) = find(self.rest(), b"{{") else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.line += lines(&self.input[self.start..self.pos]);
                    return self.emit(Kind::Text);
                }
                return self.emit(Kind::Eof);
            };
            if found > 0 {
                self.pos += found;
                let before = &self.input[self.start..self.pos];
                let trim = if left_trim(&self.input[self.pos + 2..]) {
                    before.len() - trim_end(before).len()
                } else {
                    0
                };
                self.pos -= trim;
                self.line += lines(&self.input[self.start..self.pos]);
                let text = self.token(Kind::Text);
                self.pos += trim;
                self.ignore();
                if text.end > text.pos {
                    return Ok(text);
                }
            }
            self.pos += 2;
            let marker = if left_trim(self.rest()) { 2 } else { 0 };
            if !self.input[self.pos + marker..].starts_with(b"/*") {
                let delim = self.token(Kind::LeftDelim);
                self.inside = true;
                self.pos += marker;
                self.ignore();
                self.parens = 0;
                return Ok(delim);
            }
            self.pos += marker;
            self.ignore();
            self.comment()?;
        }
    }

    /// Skips a comment.
    fn comment(&mut self) -> Result<(), Token> {
        self.pos += 2;
        let Some(end) = find(self.rest(), b"*/") else {
            return self.fail("unclosed comment").map(drop);
        };
        self.pos += end + 2;
        let (delim, trim) = self.at_right_delim();
        if !delim {
            return self.fail("comment ends before closing delimiter").map(drop);
        }
        self.line += lines(&self.input[self.start..self.pos]);
        self.token(Kind::Text);
        self.close(trim);
        self.ignore();
        Ok(())
    }

    /// Skips the right delimiter, and the space after it if it trims.
    fn close(&mut self, trim: bool) {
        self.pos += if trim { 4 } else { 2 };
        if trim {
            self.pos += self.rest().len() - trim_start(self.rest()).len();
        }
    }

    fn at_right_delim(&self) -> (bool, bool) {
        if right_trim(self.rest()) && self.rest()[2..].starts_with(b"}}") {
            return (true, true);
        }
        (self.starts_with(b"}}"), false)
    }

    fn right_delim(&mut self) -> Step {
        let (_, trim) = self.at_right_delim();
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += 2;
        let delim = self.token(Kind::RightDelim);
        if trim {
            self.pos += self.rest().len() - trim_start(self.rest()).len();
            self.ignore();
        }
        self.inside = false;
        Ok(delim)
    }

    fn inside_action(&mut self) -> Step {
        if self.at_right_delim().0 {
            return if self.parens == 0 {
                self.right_delim()
            } else {
                self.fail("unclosed left paren")
            };
        }
        let Some(c) = self.peek() else {
            return self.fail("unclosed action");
        };
        match c {
            ' ' | '\t' | '\r' | '\n' => return self.space(),
            '.' | '+' | '-' | '0'..='9' => return self.dot_or_number(c),
            _ => self.next(),
        };
        match c {
            '=' => self.emit(Kind::Assign),
            ':' if self.next() == Some('=') => self.emit(Kind::Declare),
            ':' => self.fail("expected :="),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '`' => self.raw_string(),
            '$' => self.field_or_variable(Kind::Variable),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.fail("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            c if is_alphanumeric(c) => self.identifier(),
            c if c.is_ascii() && is_print(c) => self.emit(Kind::Char),
            c => self.fail(format!(
                "unrecognized character in action: {}",
                unicode_name(Some(c))
            )),
        }
    }

    fn dot_or_number(&mut self, c: char) -> Step {
        if c == '.' {
            self.next();
            if self.rest().first().is_some_and(|b| !b.is_ascii_digit()) {
                return self.field_or_variable(Kind::Field);
            }
            self.pos -= 1;
        }
        self.number()
    }

    fn space(&mut self) -> Step {
        let mut count = 0;
        while self.peek().is_some_and(is_space) {
            self.next();
            count += 1;
        }
        // A space and a minus before the right delimiter belong to it.
        let last = &self.input[self.pos - 1..];
        if right_trim(last) && last[2..].starts_with(b"}}") {
            self.pos -= 1;
            if last[0] == b'\n' {
                self.line -= 1;
            }
            if count == 1 {
                return self.right_delim();
            }
        }
        self.emit(Kind::Space)
    }

    fn identifier(&mut self) -> Step {
        self.alphanumerics();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode_name(self.peek())));
        }
        let kind = match &self.input[self.start..self.pos] {
            b"block" => Kind::Keyword(Keyword::Block),
            b"break" if self.break_word => Kind::Keyword(Keyword::Break),
            b"continue" if self.continue_word => Kind::Keyword(Keyword::Continue),
            b"define" => Kind::Keyword(Keyword::Define),
            b"else" => Kind::Keyword(Keyword::Else),
            b"end" => Kind::Keyword(Keyword::End),
            b"if" => Kind::Keyword(Keyword::If),
            b"range" => Kind::Keyword(Keyword::Range),
            b"nil" => Kind::Nil,
            b"template" => Kind::Keyword(Keyword::Template),
            b"with" => Kind::Keyword(Keyword::With),
            b"true" | b"false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    fn alphanumerics(&mut self) {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        self.pos += self.rest().iter().take_while(|b| plain(b)).count();
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
    }

    fn field_or_variable(&mut self, kind: Kind) -> Step {
        if self.at_terminator() {
            return self.emit(if kind == Kind::Variable {
                Kind::Variable
            } else {
                Kind::Dot
            });
        }
        self.alphanumerics();
        if !self.at_terminator() {
            return self.fail(format!("bad character {}", unicode_name(self.peek())));
        }
        self.emit(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None => true,
            Some(c) => {
                is_space(c)
                    || matches!(c, '.' | ',' | '|' | ':' | ')' | '(')
                    || self.starts_with(b"}}")
            }
        }
    }

    fn quoted(&mut self, mark: char, kind: Kind, unterminated: &str) -> Step {
        loop {
            match self.next() {
                Some('\\') if !matches!(self.next(), None | Some('\n')) => {}
                None | Some('\n' | '\\') => return self.fail(unterminated),
                Some(c) if c == mark => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self) -> Step {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string"),
                Some('`') => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Step {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || self.input[self.pos - 1] != b'i' {
                return self.bad_number();
            }
            return self.emit(Kind::Complex);
        }
        self.emit(Kind::Number)
    }

    fn bad_number(&mut self) -> Step {
        let text = quote(&self.input[self.start..self.pos], false);
        self.fail(format!(
            "bad number syntax: {}",
            String::from_utf8_lossy(&text)
        ))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
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
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || is_letter(c) || is_digit(c)
}

/// `%#U`, also for the end of the input.
fn unicode_name(c: Option<char>) -> String {
    match c {
        None => "U+FFFFFFFFFFFFFFFF".into(),
        Some(c) if is_print(c) => format!("U+{:04X} '{c}'", u32::from(c)),
        Some(c) => format!("U+{:04X}", u32::from(c)),
    }
}

fn lines(text: &[u8]) -> usize {
    memchr_iter(b'\n', text).count()
}

fn find(text: &[u8], what: &[u8; 2]) -> Option<usize> {
    memchr_iter(what[0], text).find(|at| text.get(at + 1) == Some(&what[1]))
}

fn trim_end(text: &[u8]) -> &[u8] {
    let kept = text
        .iter()
        .rposition(|b| !b" \t\r\n".contains(b))
        .map_or(0, |i| i + 1);
    &text[..kept]
}

fn trim_start(text: &[u8]) -> &[u8] {
    let skipped = text
        .iter()
        .position(|b| !b" \t\r\n".contains(b))
        .unwrap_or(text.len());
    &text[skipped..]
}

fn left_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if b" \t\r\n".contains(space))
}

fn right_trim(text: &[u8]) -> bool {
    matches!(text, [space, b'-', ..] if b" \t\r\n".contains(space))
}
