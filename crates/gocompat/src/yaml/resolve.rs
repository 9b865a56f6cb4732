//! The value of a plain scalar: the rules of go-yaml v2 (YAML 1.1 booleans, octal, underscores, no
//! base 60).

/// A scalar after resolution. A timestamp stays text, but text that must be quoted when printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Timestamp(&'a str),
    Str(&'a str),
}

impl Scalar<'_> {
    /// The short tag in error messages.
    pub fn tag(&self) -> &'static str {
        match self {
            Scalar::Null => "!!null",
            Scalar::Bool(_) => "!!bool",
            Scalar::Int(_) | Scalar::Uint(_) => "!!int",
            Scalar::Float(_) => "!!float",
            Scalar::Timestamp(_) => "!!timestamp",
            Scalar::Str(_) => "!!str",
        }
    }
}

/// Resolves an untagged plain scalar.
pub fn plain(text: &str) -> Scalar<'_> {
    match text.as_bytes().first() {
        None => Scalar::Null,
        Some(b'+' | b'-' | b'0'..=b'9') => named(text)
            .or_else(|| number(text))
            .unwrap_or(Scalar::Str(text)),
        Some(b'.') => named(text)
            .or_else(|| float(text))
            .unwrap_or(Scalar::Str(text)),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            named(text).unwrap_or(Scalar::Str(text))
        }
        Some(_) => Scalar::Str(text),
    }
}

fn named(text: &str) -> Option<Scalar<'static>> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(text: &str) -> Option<Scalar<'_>> {
    if is_timestamp(text) {
        return Some(Scalar::Timestamp(text));
    }
    let stripped;
    let digits = if text.contains('_') {
        stripped = text.replace('_', "");
        stripped.as_str()
    } else {
        text
    };
    if let Some(value) = integer(digits) {
        return Some(value);
    }
    if is_float_text(digits) {
        return parse_float(digits).map(Scalar::Float);
    }
    None
}

fn float(text: &str) -> Option<Scalar<'static>> {
    text.bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        .then_some(())?;
    parse_float(text).map(Scalar::Float)
}

/// Go's ParseFloat refuses numbers out of range; Rust's parser returns infinity.
fn parse_float(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|f| f.is_finite())
}

/// Go's ParseInt, then ParseUint, with base 0: 0x, 0o, 0b and a bare leading zero (octal).
fn integer(text: &str) -> Option<Scalar<'static>> {
    let (negative, signed, body) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let prefix = body.get(..2).unwrap_or_default();
    let (base, digits) = match prefix {
        "0x" | "0X" => (16, body.get(2..)?),
        "0b" | "0B" => (2, body.get(2..)?),
        "0o" | "0O" => (8, body.get(2..)?),
        _ if body.len() > 1 && body.starts_with('0') => (8, body.get(1..)?),
        _ => (10, body),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    match (negative, i64::try_from(magnitude)) {
        (false, Ok(value)) => Some(Scalar::Int(value)),
        (false, Err(_)) => (!signed).then_some(Scalar::Uint(magnitude)),
        (true, _) => 0i64.checked_sub_unsigned(magnitude).map(Scalar::Int),
    }
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_float_text(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = text
        .split_once(['e', 'E'])
        .map_or((text, None), |(m, e)| (m, Some(e)));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        None => !mantissa.is_empty() && digits(mantissa),
        Some(("", after)) => !after.is_empty() && digits(after),
        Some((before, after)) => digits(before) && digits(after),
    };
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    mantissa_ok && exponent_ok
}

/// `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`: never parsed as a number, but printed in
/// quotes for other parsers.
pub fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (body, fraction) = text
        .split_once('.')
        .map_or((text, None), |(b, f)| (b, Some(f)));
    let mut parts = body.split(':');
    let head = parts.next().unwrap_or_default();
    let loose = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut count = 0;
    let sixties = parts.all(|p| {
        count += 1;
        matches!(p.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    head.starts_with(|c: char| c.is_ascii_digit())
        && loose(head)
        && sixties
        && count > 0
        && fraction.is_none_or(loose)
}

/// The four timestamp layouts of go-yaml v2, with Go's validation of months, days and hours.
pub fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(year), Some(rest)) = (text.get(..4), text.get(4..)) else {
        return false;
    };
    if !year.bytes().all(|b| b.is_ascii_digit()) || !rest.starts_with('-') || bytes.len() > 64 {
        return false;
    }
    let Ok(year) = year.parse::<u32>() else {
        return false;
    };
    let date = small(&rest[1..]).and_then(|(month, rest)| {
        let (day, rest) = small(rest.strip_prefix('-')?)?;
        (in_month(year, month, day)).then_some(rest)
    });
    match date {
        None => false,
        Some("") => true,
        Some(rest) => match rest.as_bytes().first() {
            Some(b'T' | b't') => time(&rest[1..]).is_some_and(is_zone),
            Some(b' ') => time(&rest[1..]) == Some(""),
            _ => false,
        },
    }
}

/// One or two digits.
fn small(text: &str) -> Option<(u32, &str)> {
    let len = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    Some((text.get(..len)?.parse().ok()?, text.get(len..)?))
}

fn in_month(year: u32, month: u32, day: u32) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn time(text: &str) -> Option<&str> {
    let (hour, rest) = small(text)?;
    let (minute, rest) = small(rest.strip_prefix(':')?)?;
    let (second, rest) = small(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                Some(rest)
            } else {
                fraction.get(digits..)
            }
        }
        None => Some(rest),
    }
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let two = |s: &[u8]| {
        s.iter()
            .all(u8::is_ascii_digit)
            .then(|| s.iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0')))
    };
    match text.as_bytes() {
        [b'+' | b'-', hour @ .., b':', m1, m2] if hour.len() == 2 => {
            two(hour).is_some_and(|h| h <= 24) && two(&[*m1, *m2]).is_some_and(|m| m < 60)
        }
        _ => false,
    }
}
