//! Converts values of any type to numbers, as spf13/cast does: anything else becomes 0.
//!
//! Main functions: [`to_int64`], [`to_int`] and [`to_float`].

use crate::template::Value;

/// `cast.ToInt64`
pub(super) fn to_int64(value: &Value) -> i64 {
    match value.underlying().as_ref() {
        Value::Int(_, i) => *i,
        Value::Uint(_, u) => *u as i64,
        Value::Float(f) => truncate(*f),
        Value::String(s) if matches!(value, Value::String(_)) => {
            parse_int(whole_text(&s.to_str()), 0).unwrap_or(0)
        }
        Value::Bool(b) => i64::from(*b),
        _ => 0,
    }
}

/// `cast.ToInt`: an int has 64 bits.
pub(super) fn to_int(value: &Value) -> i64 {
    to_int64(value)
}

/// `cast.ToFloat64`
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(_, i) => *i as f64,
        Value::Uint(_, u) => *u as f64,
        Value::Float(f) => *f,
        Value::String(s) => parse_float(&s.to_str()).unwrap_or(0.0),
        Value::Bool(b) => f64::from(u8::from(*b)),
        _ => 0.0,
    }
}

/// `int64(f)` on amd64: a value that does not fit becomes the minimum.
pub(super) fn truncate(f: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f) {
        f as i64
    } else {
        i64::MIN
    }
}

/// Removes a fraction that consists of zeros.
fn whole_text(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    }
}

/// `strconv.ParseInt`; base 0 accepts prefixes and underscores.
pub(super) fn parse_int(text: &str, base: u32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let fixed = base != 0;
    let (base, digits) = match (base, lower.as_bytes()) {
        (0, [b'0', b'x', _, ..]) => (16, &lower[2..]),
        (0, [b'0', b'o', _, ..]) => (8, &lower[2..]),
        (0, [b'0', b'b', _, ..]) => (2, &lower[2..]),
        (0, [b'0', _, ..]) => (8, &lower[1..]),
        (0, _) => (10, lower.as_str()),
        (base, _) => (base, lower.as_str()),
    };
    if digits.contains('_') && (fixed || !separates(digits, digits.len() < lower.len())) {
        return None;
    }
    let plain = digits.replace('_', "");
    if !plain.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let size = u64::from_str_radix(&plain, base).ok()?;
    if negative {
        0_i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    }
}

/// Whether underscores occur only between digits, or between a base prefix and a digit.
fn separates(digits: &str, prefixed: bool) -> bool {
    // Without a prefix, the `e` of an exponent is no digit.
    let is_digit: fn(&u8) -> bool = if prefixed {
        u8::is_ascii_hexdigit
    } else {
        u8::is_ascii_digit
    };
    let around = |at: usize| digits.as_bytes().get(at).is_some_and(is_digit);
    digits
        .match_indices('_')
        .all(|(at, _)| around(at + 1) && if at == 0 { prefixed } else { around(at - 1) })
}

/// `strconv.ParseFloat`
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match lower.as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return (unsigned.len() == text.len()).then_some(f64::NAN),
        _ => {}
    }
    if let Some(digits) = lower.strip_prefix("0x") {
        return hexadecimal(digits)
            .filter(|_| separates(digits, true))
            .map(|f| sign * f);
    }
    if !lower.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if !separates(&lower, false) {
        return None;
    }
    lower
        .replace('_', "")
        .parse::<f64>()
        .ok()
        .filter(|f| f.is_finite())
        .map(|f| sign * f)
}

/// Hexadecimal digits, possibly with a point, and a binary exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction]
        .concat()
        .chars()
        .filter(|c| *c != '_')
        .collect();
    if digits.is_empty() || digits.len() > 13 {
        return None;
    }
    let exponent = exponent
        .parse::<i32>()
        .ok()?
        .checked_sub(i32::try_from(fraction.len()).ok()? * 4)?;
    Some(u64::from_str_radix(&digits, 16).ok()? as f64 * 2_f64.powi(exponent.clamp(-1100, 1100)))
}
