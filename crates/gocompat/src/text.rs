//! Text as Go's `unicode` and `strconv` see it.
//!
//! Main functions: [`quote`] (`%q`), [`is_print`] and [`is_space`].

use regex::Regex;
use std::sync::LazyLock;

static PRINTABLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\pL\pM\pN\pP\pS]$").expect("a constant pattern"));

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c if c.is_ascii() => false,
        c => PRINTABLE.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

/// `unicode.IsSpace`.
pub fn is_space(c: char) -> bool {
    c.is_whitespace()
}

/// `strconv.Quote`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_print(c) => out.push(c),
            c => out.push_str(&match u32::from(c) {
                code @ (0..0x20 | 0x7f) => format!("\\x{code:02x}"),
                code @ 0..0x1_0000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push('"');
    out
}

/// `strconv.QuoteRune`.
pub fn quote_rune(c: char) -> String {
    match c {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => {
            let quoted = quote(c.encode_utf8(&mut [0; 4]));
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}
