//! Numbers as texts, the way Argo CD's Lua, which is written in Go, writes and reads them. Only
//! `..` and arithmetic with texts, which the virtual machine does by itself, keep its own way.
//!
//! Main functions: [`text`], [`parse`] for `tonumber`, and [`literal`] for what takes a text as a
//! number.

/// The first whole number that is too large for 64 bits.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Whole numbers have no exponent; others have all their digits, and an exponent as Go's `%v`.
pub fn text(n: f64) -> String {
    if n.is_nan() {
        return "NaN".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if n.fract() == 0.0 && (-TOO_LARGE..TOO_LARGE).contains(&n) {
        return (n as i64).to_string();
    }
    let scientific = format!("{n:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match power.parse::<i32>() {
        Ok(power) if !(-4..6).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.abs())
        }
        _ => n.to_string(),
    }
}

/// What `tonumber` makes of a text. An exponent needs a decimal point; without a base, `0x` means
/// 16.
pub fn parse(text: &[u8], base: Option<i64>) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_matches([' ', '\n', '\t']);
    if text.contains('.') {
        return float(text);
    }
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match (base, hexadecimal) {
        (Some(base), _) => (text, u32::try_from(base).ok()?),
        (None, Some(digits)) => (digits, 16),
        (None, None) => (text, 10),
    };
    if !(2..=36).contains(&base) {
        return None;
    }
    i64::from_str_radix(digits, base).ok().map(|n| n as f64)
}

/// What Argo CD's Lua makes of a text in the place of a number: a number as in Go's sources, so
/// `010` is 8 and `1_000` a thousand; or else a float, so `08` is 8.
pub fn literal(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_matches([' ', '\n', '\t']);
    if let Some(whole) = whole(text) {
        return Some(whole as f64);
    }
    float(text)
}

/// A decimal float as in Go's sources.
fn float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_separator = |at: usize| at > 0 && is_digit(at - 1) && is_digit(at + 1);
    if (0..bytes.len()).any(|at| bytes[at] == b'_' && !is_separator(at)) {
        return None;
    }
    // Rust makes numbers that are too large infinite, and Go refuses them.
    let is_named = !text.contains(|c: char| c.is_ascii_digit());
    let is_signed = text.starts_with(['+', '-']);
    let found: f64 = text.replace('_', "").parse().ok()?;
    let is_valid = match found.is_nan() {
        true => !is_signed,
        false => found.is_finite() || is_named,
    };
    is_valid.then_some(found)
}

fn whole(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (&text[..1], digits),
        None => ("+", text),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // One underscore separates digits; it may also stand behind the prefix.
    let is_misplaced =
        digits.ends_with('_') || digits.contains("__") || (base == 10 && digits.starts_with('_'));
    if is_misplaced {
        return None;
    }
    // With the sign in front, a second one is an error.
    i64::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_arithmetic_are_those_of_gopher_lua() {
        for (text, want) in [
            ("010", Some(8.0)),
            ("08", Some(8.0)),
            ("0", Some(0.0)),
            ("-0x10", Some(-16.0)),
            ("0b11", Some(3.0)),
            ("0o17", Some(15.0)),
            ("1_000", Some(1000.0)),
            ("0x_1f", Some(31.0)),
            (" 5\n", Some(5.0)),
            ("+2.5", Some(2.5)),
            ("1e2", Some(100.0)),
            ("inf", Some(f64::INFINITY)),
            ("9223372036854775808", Some(9_223_372_036_854_775_808.0)),
            ("1_0.5", Some(10.5)),
            ("1e1_0", Some(1e10)),
            ("0_8", Some(8.0)),
            ("-INF", Some(f64::NEG_INFINITY)),
            ("1e400", None),
            ("1_.5", None),
            ("1._5", None),
            ("1.5_", None),
            ("_1.5", None),
            ("-nan", None),
            ("+NaN", None),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("0x", None),
            ("0x-1", None),
            ("--1", None),
            ("", None),
            ("\u{e9}", None),
            ("x", None),
        ] {
            assert_eq!(literal(text.as_bytes()), want, "{text:?}");
        }
        assert!(literal(b"nan").is_some_and(f64::is_nan));
        assert_eq!(parse(b"1_0.5", None), Some(10.5));
        assert_eq!(parse(b"1_.5", None), None);
    }
}
