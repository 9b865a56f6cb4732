//! Go's quoted strings and characters: `strconv.Quote` and `Unquote`.
//!
//! Main functions: [`quote`], [`quote_rune`] and [`unquote`].

use super::super::unicode::decode;
use crate::printable::is_print;

/// `strconv.Quote`, or `QuoteToASCII`.
pub fn quote(text: &[u8], ascii: bool) -> Vec<u8> {
    quote_with(text, b'"', ascii)
}

/// `strconv.QuoteRune`, or `QuoteRuneToASCII`.
pub fn quote_rune(rune: char, ascii: bool) -> Vec<u8> {
    quote_with(rune.encode_utf8(&mut [0; 4]).as_bytes(), b'\'', ascii)
}

/// `strconv.Quote` of text, as text.
pub fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&quote(text.as_bytes(), false)).into_owned()
}

fn quote_with(text: &[u8], mark: u8, ascii: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(mark);
    let stands_for_itself = |b: &u8| matches!(b, b' '..=b'~') && *b != mark && *b != b'\\';
    let mut rest = text;
    loop {
        let plain = rest.iter().take_while(|b| stands_for_itself(b)).count();
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
        if rest.is_empty() {
            break;
        }
        let (rune, width) = decode(rest);
        if width == 1 && !rune.is_ascii() {
            out.extend(format!("\\x{:02x}", rest[0]).bytes());
        } else {
            escape(&mut out, rune, mark, ascii);
        }
        rest = &rest[width..];
    }
    out.push(mark);
    out
}

fn escape(out: &mut Vec<u8>, rune: char, mark: u8, ascii: bool) {
    if rune == char::from(mark) || rune == '\\' {
        out.push(b'\\');
        out.extend(rune.encode_utf8(&mut [0; 4]).bytes());
        return;
    }
    if (rune.is_ascii() || !ascii) && is_print(rune) {
        out.extend(rune.encode_utf8(&mut [0; 4]).bytes());
        return;
    }
    let short: &[u8] = match rune {
        '\x07' => b"\\a",
        '\x08' => b"\\b",
        '\x0c' => b"\\f",
        '\n' => b"\\n",
        '\r' => b"\\r",
        '\t' => b"\\t",
        '\x0b' => b"\\v",
        _ => {
            let code = u32::from(rune);
            let long = match code {
                0..0x20 | 0x7f => format!("\\x{code:02x}"),
                0x80..0x10000 => format!("\\u{code:04x}"),
                _ => format!("\\U{code:08x}"),
            };
            out.extend(long.bytes());
            return;
        }
    };
    out.extend(short);
}

/// `strconv.CanBackquote`
pub fn can_backquote(text: &[u8]) -> bool {
    match std::str::from_utf8(text) {
        Ok(text) => !text
            .chars()
            .any(|c| c == '\u{feff}' || c == '`' || c == '\x7f' || (c < ' ' && c != '\t')),
        Err(_) => false,
    }
}

/// `strconv.Unquote` of a string in double or back quotes; `None` is Go's `invalid syntax`.
pub fn unquote(literal: &[u8]) -> Option<Vec<u8>> {
    let (&mark, rest) = literal.split_first()?;
    let (&end, body) = rest.split_last()?;
    if mark != end {
        return None;
    }
    if mark == b'`' {
        return (!body.contains(&b'`'))
            .then(|| body.iter().copied().filter(|b| *b != b'\r').collect());
    }
    if mark != b'"' || body.contains(&b'\n') {
        return None;
    }
    if !body.contains(&b'\\') && !body.contains(&b'"') && std::str::from_utf8(body).is_ok() {
        return Some(body.to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while !rest.is_empty() {
        let (unit, tail) = unquote_unit(rest, b'"')?;
        match unit {
            Unit::Byte(b) => out.push(b),
            Unit::Rune(c) => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
        rest = tail;
    }
    Some(out)
}

/// `strconv.UnquoteChar` for a character constant without its opening quote: the character and the
/// rest.
pub fn unquote_char(body: &[u8]) -> Option<(u32, &[u8])> {
    let (unit, tail) = unquote_unit(body, b'\'')?;
    let code = match unit {
        Unit::Byte(b) => u32::from(b),
        Unit::Rune(c) => u32::from(c),
    };
    Some((code, tail))
}

enum Unit {
    Byte(u8),
    Rune(char),
}

fn unquote_unit(text: &[u8], mark: u8) -> Option<(Unit, &[u8])> {
    let (&first, rest) = text.split_first()?;
    if first == mark {
        return None;
    }
    if first != b'\\' {
        let (rune, width) = decode(text);
        return Some((Unit::Rune(rune), &text[width..]));
    }
    let (&kind, rest) = rest.split_first()?;
    let simple = |b: u8| Some((Unit::Byte(b), rest));
    match kind {
        b'a' => simple(7),
        b'b' => simple(8),
        b'f' => simple(12),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(11),
        b'\\' => simple(b'\\'),
        b'\'' | b'"' if kind == mark => simple(kind),
        b'x' => digits(rest, 2, 16)
            .and_then(|(v, tail)| Some((Unit::Byte(u8::try_from(v).ok()?), tail))),
        b'u' => {
            digits(rest, 4, 16).and_then(|(v, tail)| Some((Unit::Rune(char::from_u32(v)?), tail)))
        }
        b'U' => {
            digits(rest, 8, 16).and_then(|(v, tail)| Some((Unit::Rune(char::from_u32(v)?), tail)))
        }
        b'0'..=b'7' => digits(&text[1..], 3, 8)
            .and_then(|(v, tail)| Some((Unit::Byte(u8::try_from(v).ok()?), tail))),
        _ => None,
    }
}

fn digits(text: &[u8], count: usize, base: u32) -> Option<(u32, &[u8])> {
    let mut value = 0_u32;
    for b in text.get(..count)? {
        value = value
            .checked_mul(base)?
            .checked_add(char::from(*b).to_digit(base)?)?;
    }
    Some((value, &text[count..]))
}
