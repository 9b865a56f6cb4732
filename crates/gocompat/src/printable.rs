//! Which characters Go prints as they are. Main function: [`is_print`].

use regex::Regex;
use std::sync::LazyLock;

static PRINTABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\pL\pM\pN\pP\pS]$").expect("a constant pattern"));

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c if c.is_ascii() => false,
        c => PRINTABLE.is_match(c.encode_utf8(&mut [0; 4])),
    }
}
