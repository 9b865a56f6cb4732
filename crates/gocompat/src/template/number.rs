//! Number and character constants of a template.
//!
//! Main type: [`Number`], which holds all interpretations of a literal, because its type depends on
//! the context.

use super::format::quote::{quote, unquote_char};

/// A literal number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number {
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    pub complex: Option<(f64, f64)>,
    /// Written like a float: it is a float64 if no type is expected.
    pub fractional: bool,
}

impl Number {
    /// A character in single quotes.
    pub fn character(text: &[u8]) -> Result<Self, String> {
        let (code, tail) = unquote_char(&text[1..]).ok_or("invalid syntax")?;
        if tail != b"'" {
            return Err(format!(
                "malformed character constant: {}",
                String::from_utf8_lossy(text)
            ));
        }
        Ok(Self {
            int: Some(i64::from(code)),
            uint: Some(u64::from(code)),
            float: Some(f64::from(code)),
            ..Self::default()
        })
    }

    /// A number with a real and an imaginary part.
    pub fn complex(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix('i').unwrap_or(text);
        let bytes = body.as_bytes();
        let sign = (1..bytes.len())
            .rev()
            .find(|i| b"+-".contains(&bytes[*i]) && !b"eEpP".contains(&bytes[i - 1]));
        let (re, im) = body.split_at(sign.unwrap_or(0));
        match (parse_float(re), parse_float(im)) {
            (Some(re), Some(im)) => Ok(Self::of_complex(re, im)),
            _ => Err("syntax error scanning complex number".into()),
        }
    }

    fn of_complex(re: f64, im: f64) -> Self {
        let mut number = Self {
            complex: Some((re, im)),
            ..Self::default()
        };
        if im == 0.0 {
            number.float = Some(re);
            number.int = whole(re);
            number.uint = whole_unsigned(re);
        }
        number
    }

    /// Any other number.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(im) = text.strip_suffix('i').and_then(parse_float) {
            return Ok(Self::of_complex(0.0, im));
        }
        let mut number = Self {
            int: parse_int(text),
            uint: parse_uint(text),
            ..Self::default()
        };
        if number.int == Some(0) {
            number.uint = Some(0);
        }
        let hexadecimal = text.len() > 2
            && matches!(text.as_bytes(), [b'0', b'x' | b'X', ..])
            && !text.contains(['p', 'P']);
        number.fractional = !hexadecimal && text.contains(['.', 'e', 'E', 'p', 'P']);
        if let Some(int) = number.int {
            number.float = Some(int as f64);
        } else if let Some(uint) = number.uint {
            number.float = Some(uint as f64);
        } else if let Some(float) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quoted(text)));
            }
            number.float = Some(float);
            number.int = whole(float);
            number.uint = whole_unsigned(float);
        } else {
            return Err(format!("illegal number syntax: {}", quoted(text)));
        }
        Ok(number)
    }
}

fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&quote(text.as_bytes(), false)).into_owned()
}

fn whole(f: f64) -> Option<i64> {
    let int = f as i64;
    (int as f64 == f && int != i64::MAX).then_some(int)
}

fn whole_unsigned(f: f64) -> Option<u64> {
    let uint = f as u64;
    (uint as f64 == f && uint != u64::MAX).then_some(uint)
}

/// `strconv.ParseInt` with base 0.
fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let size = parse_uint(digits)?;
    if negative {
        0_i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    }
}

/// `strconv.ParseUint` with base 0.
fn parse_uint(text: &str) -> Option<u64> {
    if !underscores_separate(text) || text.starts_with(['+', '-']) {
        return None;
    }
    let plain = text.replace('_', "");
    let (base, digits) = match plain.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &plain[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &plain[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &plain[2..]),
        [b'0', _, ..] => (8, &plain[1..]),
        _ => (10, plain.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

/// `strconv.ParseFloat`, for the lexer's number tokens.
fn parse_float(text: &str) -> Option<f64> {
    if !underscores_separate(text) {
        return None;
    }
    let plain = text.replace('_', "");
    let unsigned = plain.trim_start_matches(['+', '-']);
    let float = if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        let size = parse_hexadecimal(&unsigned[2..])?;
        if plain.starts_with('-') { -size } else { size }
    } else {
        plain.parse().ok()?
    };
    float.is_finite().then_some(float)
}

/// Hexadecimal digits, possibly with a point, and a binary exponent.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let mut exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 13 {
        return None;
    }
    let value = u64::from_str_radix(&digits, 16).ok()?;
    exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()? * 4)?;
    Some(value as f64 * 2_f64.powi(exponent.clamp(-1100, 1100)))
}

/// Underscores are permitted only between digits, or between a base prefix and a digit.
fn underscores_separate(text: &str) -> bool {
    let bytes = text.trim_start_matches(['+', '-']).as_bytes();
    let (mut before, hex, digits) = match bytes {
        [b'0', b'b' | b'B' | b'o' | b'O', rest @ ..] => ('0', false, rest),
        [b'0', b'x' | b'X', rest @ ..] => ('0', true, rest),
        _ => ('^', false, bytes),
    };
    for b in digits {
        before = match b {
            b'0'..=b'9' => '0',
            b'a'..=b'f' | b'A'..=b'F' if hex => '0',
            b'_' if before != '0' => return false,
            b'_' => '_',
            _ if before == '_' => return false,
            _ => '!',
        };
    }
    before != '_'
}
