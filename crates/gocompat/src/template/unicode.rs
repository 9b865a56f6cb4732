//! Runes as Go decodes and classifies them.
//!
//! Main functions: [`decode`], [`lossy`], [`is_letter`] and [`is_digit`]. `crate::printable` knows which characters
//! are printable.

use regex::Regex;
use std::{borrow::Cow, sync::LazyLock};

/// The first rune of a text and its width: U+FFFD and 1 for a byte that is not UTF-8, width 0 at
/// the end.
pub fn decode(bytes: &[u8]) -> (char, usize) {
    let Some(&first) = bytes.first() else {
        return (char::REPLACEMENT_CHARACTER, 0);
    };
    if first < 0x80 {
        return (char::from(first), 1);
    }
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default(),
    };
    valid
        .chars()
        .next()
        .map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, c.len_utf8()))
}

/// The text, with invalid UTF-8 replaced.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // This check compares many bytes at once; the standard replacement looks at each.
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The runes of a text with their widths.
pub fn runes(mut bytes: &[u8]) -> impl Iterator<Item = (char, usize)> {
    std::iter::from_fn(move || {
        let (rune, width) = decode(bytes);
        bytes = &bytes[width..];
        (width > 0).then_some((rune, width))
    })
}

/// `utf8.RuneCount`
pub fn count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        bytes.len()
    } else {
        runes(bytes).count()
    }
}

/// `unicode.IsLetter`
pub fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{L}"));
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        matches(&LETTER, c)
    }
}

/// `unicode.IsDigit`
pub fn is_digit(c: char) -> bool {
    static DIGIT: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{Nd}"));
    if c.is_ascii() {
        c.is_ascii_digit()
    } else {
        matches(&DIGIT, c)
    }
}

fn class(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern")
}

fn matches(class: &Regex, c: char) -> bool {
    class.is_match(c.encode_utf8(&mut [0; 4]))
}
