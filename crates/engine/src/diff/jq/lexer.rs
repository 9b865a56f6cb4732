//! An expression's text as tokens.

use super::JqError;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// `.` that is followed by neither a name nor a text.
    Dot,
    DotDot,
    /// `.name` or `."name"`.
    Field(String),
    Name(String),
    Text(String),
    Number(serde_json::Number),
    /// Punctuation and operators.
    Sign(&'static str),
}

const SIGNS: [&str; 20] = ["//", "==", "!=", "<=", ">=", "<", ">", "|", ",", "(", ")", "[", "]", "{", "}", ":", ";", "?", "-", "+"];

pub fn tokens(text: &str) -> Result<Vec<Token>, JqError> {
    let mut rest = text.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '.' => dot(rest)?,
            '"' => string(rest).map(|(text, after)| (Token::Text(text), after))?,
            '0'..='9' => number(rest)?,
            '#' => return Err(JqError::new("comments are not supported")),
            '$' | '@' => return Err(JqError::new(format!("{:?} is not supported", word(rest, 1)))),
            c if is_name_start(c) => {
                let name = word(rest, 0);
                (Token::Name(name.to_owned()), &rest[name.len()..])
            }
            _ => {
                let sign = SIGNS.iter().find(|s| rest.starts_with(**s));
                let sign = sign.ok_or_else(|| JqError::new(format!("unexpected {first:?}")))?;
                (Token::Sign(sign), &rest[sign.len()..])
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// A name that starts at `from`, with what stands before it.
fn word(text: &str, from: usize) -> &str {
    let end = text[from..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(text.len(), |i| from + i);
    &text[..end]
}

fn dot(text: &str) -> Result<(Token, &str), JqError> {
    if let Some(rest) = text.strip_prefix("..") {
        return Ok((Token::DotDot, rest));
    }
    let rest = &text[1..];
    match rest.chars().next() {
        Some('"') => string(rest).map(|(name, after)| (Token::Field(name), after)),
        Some(c) if is_name_start(c) => {
            let name = word(rest, 0);
            Ok((Token::Field(name.to_owned()), &rest[name.len()..]))
        }
        _ => Ok((Token::Dot, rest)),
    }
}

/// A quoted text and what follows it.
fn string(text: &str) -> Result<(String, &str), JqError> {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '(' if escaped => return Err(JqError::new("\\(…) in a text is not supported")),
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                let (quoted, after) = text.split_at(index + 1);
                let value = serde_json::from_str(quoted).map_err(|_| JqError::new(format!("{quoted} is not a text")))?;
                return Ok((value, after));
            }
            _ => {}
        }
    }
    Err(JqError::new("a text has no closing quote"))
}

fn number(text: &str) -> Result<(Token, &str), JqError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = serde_json::from_str(digits).map_err(|_| JqError::new(format!("{digits:?} is not a number")))?;
    Ok((Token::Number(number), rest))
}
