//! The tokens of the expression language. Main function: [`tokens`].

use super::ast::Literal;

/// A token and its position, in characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub at: usize,
    /// As written, for messages.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Ident(String),
    Literal(Literal),
    Op(&'static str),
    /// A name in backticks, which no server supports.
    Escaped,
    End,
}

/// An error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    pub at: usize,
    pub message: String,
}

/// Longer ones first.
const OPERATORS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
    issues: Vec<Issue>,
}

pub fn tokens(source: &[char]) -> (Vec<Token>, Vec<Issue>) {
    let mut lexer = Lexer {
        chars: source,
        at: 0,
        issues: Vec::new(),
    };
    let mut found = Vec::new();
    loop {
        lexer.skip();
        let start = lexer.at;
        let Some(kind) = lexer.next() else {
            if lexer.at >= source.len() {
                break;
            }
            continue;
        };
        found.push(Token {
            kind,
            at: start,
            text: source[start..lexer.at].iter().collect(),
        });
    }
    found.push(Token {
        kind: Kind::End,
        at: source.len(),
        text: "<EOF>".into(),
    });
    (found, lexer.issues)
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn skip(&mut self) {
        while self.at < self.chars.len() {
            match self.peek(0) {
                ' ' | '\t' | '\n' | '\r' | '\u{c}' => self.at += 1,
                '/' if self.peek(1) == '/' => {
                    while self.at < self.chars.len() && self.peek(0) != '\n' {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn next(&mut self) -> Option<Kind> {
        let c = *self.chars.get(self.at)?;
        if let Some(prefix) = self.string_prefix() {
            return self.string(prefix);
        }
        if c.is_ascii_alphabetic() || c == '_' {
            let start = self.at;
            while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == '_' {
                self.at += 1;
            }
            let word: String = self.chars[start..self.at].iter().collect();
            return Some(match word.as_str() {
                "true" => Kind::Literal(Literal::Bool(true)),
                "false" => Kind::Literal(Literal::Bool(false)),
                "null" => Kind::Literal(Literal::Null),
                "in" => Kind::Op("in"),
                _ => Kind::Ident(word),
            });
        }
        if c == '`'
            && let Some(width) = self.escaped_name()
        {
            self.at += width;
            return Some(Kind::Escaped);
        }
        if c.is_ascii_digit() || (c == '.' && self.peek(1).is_ascii_digit()) {
            return Some(self.number());
        }
        let operator = OPERATORS
            .iter()
            .find(|op| op.chars().enumerate().all(|(i, o)| self.peek(i) == o));
        if let Some(operator) = operator {
            self.at += operator.len();
            return Some(Kind::Op(operator));
        }
        // An incomplete operator consumes the next character.
        let half = matches!(c, '=' | '&' | '|') && self.at + 1 < self.chars.len();
        let text: String = self.chars[self.at..self.at + 1 + usize::from(half)]
            .iter()
            .collect();
        self.issues.push(Issue {
            at: self.at,
            message: format!("Syntax error: token recognition error at: '{text}'"),
        });
        self.at += 1 + usize::from(half);
        None
    }

    /// The length of a name in backticks, including them.
    fn escaped_name(&self) -> Option<usize> {
        let inner = self.chars[self.at + 1..].iter();
        let letters = inner
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '))
            .count();
        (letters > 0 && self.peek(letters + 1) == '`').then_some(letters + 2)
    }

    /// The prefix before the quote: (length, raw, bytes).
    fn string_prefix(&self) -> Option<(usize, bool, bool)> {
        let (mut raw, mut bytes, mut n) = (false, false, 0);
        loop {
            match self.peek(n) {
                'r' | 'R' if !raw => raw = true,
                'b' | 'B' if !bytes => bytes = true,
                '"' | '\'' => return Some((n, raw, bytes)),
                _ => return None,
            }
            n += 1;
        }
    }

    fn string(&mut self, (letters, raw, bytes): (usize, bool, bool)) -> Option<Kind> {
        let start = self.at;
        self.at += letters;
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        let width = if triple { 3 } else { 1 };
        self.at += width;
        let mut out: Vec<u8> = Vec::new();
        loop {
            if self.at >= self.chars.len() || (!triple && matches!(self.peek(0), '\n' | '\r')) {
                let text: String = self.chars[start..self.at].iter().collect();
                self.issues.push(Issue {
                    at: start,
                    message: format!("Syntax error: token recognition error at: '{text}'"),
                });
                return None;
            }
            if (0..width).all(|i| self.peek(i) == quote) {
                self.at += width;
                break;
            }
            let c = self.peek(0);
            self.at += 1;
            if c != '\\' || raw {
                push(&mut out, c);
                if c == '\\' {
                    push(&mut out, self.peek(0));
                    self.at += 1;
                }
                continue;
            }
            if self.escape(bytes, &mut out).is_none() {
                let text: String = self.chars[start..self.at.min(self.chars.len())]
                    .iter()
                    .collect();
                self.issues.push(Issue {
                    at: start,
                    message: format!("Syntax error: token recognition error at: '{text}'"),
                });
                return None;
            }
        }
        if bytes {
            return Some(Kind::Literal(Literal::Bytes(out)));
        }
        Some(Kind::Literal(Literal::String(
            String::from_utf8_lossy(&out).into_owned(),
        )))
    }

    fn escape(&mut self, bytes: bool, out: &mut Vec<u8>) -> Option<()> {
        let c = *self.chars.get(self.at)?;
        self.at += 1;
        let digits = match c {
            'a' => return plain(out, '\u{7}'),
            'b' => return plain(out, '\u{8}'),
            'f' => return plain(out, '\u{c}'),
            'n' => return plain(out, '\n'),
            'r' => return plain(out, '\r'),
            't' => return plain(out, '\t'),
            'v' => return plain(out, '\u{b}'),
            '\\' | '?' | '"' | '\'' | '`' => return plain(out, c),
            'x' | 'X' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='3' => {
                self.at -= 1;
                3
            }
            _ => return None,
        };
        let text: String = self.chars.get(self.at..self.at + digits)?.iter().collect();
        self.at += digits;
        let code = u32::from_str_radix(&text, if digits == 3 { 8 } else { 16 }).ok()?;
        if bytes && digits < 4 {
            out.push(u8::try_from(code).ok()?);
            return Some(());
        }
        plain(out, char::from_u32(code)?)
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        if self.peek(0) == '0'
            && matches!(self.peek(1), 'x' | 'X')
            && self.peek(2).is_ascii_hexdigit()
        {
            self.at += 2;
            let digits = self.run(|c| c.is_ascii_hexdigit());
            return self.whole(u64::from_str_radix(&digits, 16).ok(), start);
        }
        self.run(|c| c.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == '.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.run(|c| c.is_ascii_digit());
        }
        let sign = usize::from(matches!(self.peek(1), '+' | '-'));
        if matches!(self.peek(0), 'e' | 'E') && self.peek(1 + sign).is_ascii_digit() {
            float = true;
            self.at += 1 + sign;
            self.run(|c| c.is_ascii_digit());
        }
        let text: String = self.chars[start..self.at].iter().collect();
        if float {
            return Kind::Literal(Literal::Double(text.parse().unwrap_or(0.0)));
        }
        self.whole(text.parse().ok(), start)
    }

    fn run(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while wanted(self.peek(0)) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn whole(&mut self, value: Option<u64>, start: usize) -> Kind {
        let unsigned = matches!(self.peek(0), 'u' | 'U');
        if unsigned {
            self.at += 1;
        }
        match (value, unsigned) {
            (Some(n), true) => Kind::Literal(Literal::Uint(n)),
            // One more than the largest number is allowed after a minus.
            (Some(n), false) if n <= i64::MAX as u64 + 1 => Kind::Literal(Literal::Whole(n)),
            _ => {
                self.issues.push(Issue {
                    at: start,
                    message: format!("invalid {} literal", if unsigned { "uint" } else { "int" }),
                });
                Kind::Literal(Literal::Int(0))
            }
        }
    }
}

fn plain(out: &mut Vec<u8>, c: char) -> Option<()> {
    push(out, c);
    Some(())
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
