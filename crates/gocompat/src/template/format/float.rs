//! Floating-point numbers as printed by `strconv.FormatFloat`.
//!
//! Main function: [`format_float`]. The digits come from Rust's own formatting, which is exact,
//! too; the layout is Go's.

/// More digits than any float64 has; further ones are zeros.
const MOST_DIGITS: usize = 1100;

/// A number in one of Go's formats (`e E f g G b x X`); without a precision, with as few digits as
/// parse to the same number. Negative numbers always have a sign; infinity is `+Inf`.
pub fn format_float(number: f64, format: u8, precision: Option<usize>) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        };
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let size = number.abs();
    let text = match format {
        b'b' => binary(size),
        b'x' | b'X' => hexadecimal(size, precision),
        b'f' => fixed(size, precision),
        b'e' | b'E' => exponential(size, precision),
        _ => general(size, precision),
    };
    let text = if matches!(format, b'E' | b'G' | b'X') {
        text.to_uppercase()
    } else {
        text
    };
    if sign.is_empty() {
        text
    } else {
        format!("{sign}{text}")
    }
}

fn fixed(size: f64, precision: Option<usize>) -> String {
    match precision {
        None => size.to_string(),
        Some(wanted) => {
            let mut text = format!("{size:.*}", wanted.min(MOST_DIGITS));
            text.extend(std::iter::repeat_n('0', wanted.saturating_sub(MOST_DIGITS)));
            text
        }
    }
}

fn exponential(size: f64, precision: Option<usize>) -> String {
    let text = match precision {
        None => format!("{size:e}"),
        Some(wanted) => format!("{size:.*e}", wanted.min(MOST_DIGITS)),
    };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(precision.unwrap_or(0).saturating_sub(MOST_DIGITS));
    format!(
        "{digits}{zeros}{}",
        exponent_text(exponent.parse().unwrap_or(0))
    )
}

fn exponent_text(exponent: i32) -> String {
    format!(
        "e{}{:02}",
        if exponent < 0 { '-' } else { '+' },
        exponent.abs()
    )
}

fn general(size: f64, precision: Option<usize>) -> String {
    if size == 0.0 {
        return "0".into();
    }
    // Most numbers of values are small and whole.
    if precision.is_none() && size < 1e6 && size.fract() == 0.0 {
        return format!("{size:.0}");
    }
    let text = match precision {
        None => format!("{size:e}"),
        Some(wanted) => format!("{size:.*e}", wanted.clamp(1, MOST_DIGITS) - 1),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let most = match precision {
        None => 6,
        Some(wanted) => {
            let wanted = i32::try_from(wanted.max(1)).unwrap_or(i32::MAX);
            if wanted > count && count > exponent {
                count
            } else {
                wanted
            }
        }
    };
    if exponent < -4 || exponent >= most {
        let point = if count > 1 {
            format!("{}.{}", &digits[..1], &digits[1..])
        } else {
            digits.to_owned()
        };
        return format!("{point}{}", exponent_text(exponent));
    }
    layout(digits, exponent)
}

/// Digits with the point at the position given by the exponent, without an exponent.
fn layout(digits: &str, exponent: i32) -> String {
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("0.{zeros}{digits}");
    }
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    if digits.len() <= whole {
        return format!("{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{}.{}", &digits[..whole], &digits[whole..])
}

/// The integer significand and the binary exponent of a number.
fn parts(size: f64) -> (u64, i64) {
    let bits = size.to_bits();
    let exponent = i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, exponent - 1075)
    }
}

fn binary(size: f64) -> String {
    let (fraction, exponent) = parts(size);
    format!(
        "{fraction}p{}{}",
        if exponent < 0 { '-' } else { '+' },
        exponent.abs()
    )
}

fn hexadecimal(size: f64, precision: Option<usize>) -> String {
    let (mut fraction, mut exponent) = parts(size);
    exponent = if fraction == 0 { 0 } else { exponent + 52 };
    // One leading digit of 1, then 60 bits of fraction.
    fraction <<= 8;
    while fraction != 0 && fraction & (1 << 60) == 0 {
        fraction <<= 1;
        exponent -= 1;
    }
    if let Some(wanted) = precision.filter(|wanted| *wanted < 15) {
        let shift = wanted * 4;
        let extra = (fraction << shift) & ((1 << 60) - 1);
        fraction >>= 60 - shift;
        if extra | (fraction & 1) > 1 << 59 {
            fraction += 1;
        }
        fraction <<= 60 - shift;
        if fraction & (1 << 61) != 0 {
            fraction >>= 1;
            exponent += 1;
        }
    }
    let mut digits = format!("{:015x}", fraction & ((1 << 60) - 1));
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(wanted) => {
            digits.truncate(wanted);
            digits.extend(std::iter::repeat_n('0', wanted.saturating_sub(15)));
        }
    }
    let point = if digits.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "0x{}{point}{digits}p{sign}{:02}",
        fraction >> 60,
        exponent.abs()
    )
}
