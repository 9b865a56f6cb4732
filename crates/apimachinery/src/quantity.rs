//! Resource quantities (`100m`, `1.5Gi`, `12e6`): parsing, the API server's canonical form, and
//! order.
//!
//! Main type: [`Quantity`]. It knows nothing of the measured resources.

use std::{cmp::Ordering, fmt, str::FromStr};

const NANO: i128 = 1_000_000_000;
/// Binary quantities are capped here, as the API server does.
const MAX_BINARY: i128 = i64::MAX as i128 * NANO;

/// The suffix family of a quantity; the canonical form uses the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `k`, `M`, `m`, ... and no suffix.
    DecimalSi,
    /// `Ki`, `Mi`, ...
    BinarySi,
    /// `e3`, `E6`, ...
    DecimalExponent,
}

/// An exact number in billionths.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
    #[error("quantity {0:?} is too large")]
    TooLarge(String),
}

impl Quantity {
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Rounded up, as the scheduler counts (`100m` is 1).
    pub fn value(&self) -> i64 {
        saturate(round_up(self.nanos, NANO))
    }

    /// Thousandths, rounded up.
    pub fn milli_value(&self) -> i64 {
        saturate(round_up(self.nanos, NANO / 1000))
    }

    /// Rounded up to whole thousandths; None if it already is.
    pub fn in_thousandths(&self) -> Option<Self> {
        let unit = NANO / 1000;
        (self.nanos % unit != 0).then(|| Self {
            nanos: round_up(self.nanos, unit) * unit,
            ..*self
        })
    }

    /// Rounded up to a whole number.
    pub fn in_units(&self) -> Self {
        Self {
            nanos: round_up(self.nanos, NANO) * NANO,
            ..*self
        }
    }

    pub fn as_f64(&self) -> f64 {
        self.nanos as f64 / NANO as f64
    }

    /// The sum, in the format of `self` (of `other` if `self` is zero).
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format,
        }
    }

    /// The difference, in the format of `self` (of `other` if `self` is zero).
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self {
            nanos: -other.nanos,
            format: other.format,
        })
    }

    /// The number, if it is an integer that fits.
    pub fn to_whole(&self) -> Option<i64> {
        if self.nanos % NANO == 0 {
            i64::try_from(self.nanos / NANO).ok()
        } else {
            None
        }
    }
}

fn saturate(v: i128) -> i64 {
    i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX })
}

/// Away from zero.
fn round_up(nanos: i128, unit: i128) -> i128 {
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        whole
    } else {
        whole + rest.signum()
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let too_large = || QuantityError::TooLarge(text.chars().take(40).collect());
        let (negative, rest) = match text.as_bytes().first() {
            None => return Err(QuantityError::Format),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if number.is_empty() {
            return Err(QuantityError::Format);
        }
        if fraction.contains('.') {
            return Err(QuantityError::Format);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::Numeric);
        }
        if !is_suffix(suffix) {
            return Err(QuantityError::Format);
        }
        let (format, exponent) = suffix_of(suffix)?;
        let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
        let digits = digits.trim_start_matches('0');
        if digits.len() > 38 {
            return Err(too_large());
        }
        let mantissa: i128 = if digits.is_empty() {
            0
        } else {
            digits.parse().map_err(|_| too_large())?
        };
        let scale = -(fraction.trim_end_matches('0').len() as i32);
        let mut nanos = match format {
            Format::BinarySi => shift10(mantissa, 9 + scale)
                .and_then(|n| n.checked_mul(1i128 << exponent))
                .unwrap_or(MAX_BINARY)
                .min(MAX_BINARY),
            _ => shift10(mantissa, 9 + scale + exponent).ok_or_else(too_large)?,
        };
        // A fraction below one cannot be written with a binary suffix.
        let format = if format == Format::BinarySi && nanos > 0 && nanos < NANO {
            Format::DecimalSi
        } else {
            format
        };
        if negative {
            nanos = -nanos;
        }
        Ok(Self { nanos, format })
    }
}

/// `n * 10^by`, rounded up if digits are lost; None on overflow.
fn shift10(n: i128, by: i32) -> Option<i128> {
    if n == 0 {
        return Some(0);
    }
    if by >= 0 {
        return n.checked_mul(10i128.checked_pow(by.unsigned_abs())?);
    }
    match 10i128.checked_pow(by.unsigned_abs()) {
        Some(unit) => Some(round_up(n, unit)),
        None => Some(1),
    }
}

/// Letters of the known suffixes, then an optional sign, then digits.
fn is_suffix(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits.bytes().all(|b| b.is_ascii_digit())
}

fn suffix_of(suffix: &str) -> Result<(Format, i32), QuantityError> {
    let decimal = |e| Ok((Format::DecimalSi, e));
    let binary = |e| Ok((Format::BinarySi, e));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => match suffix.strip_prefix(['e', 'E']) {
            Some(exponent) => match exponent.parse::<i32>() {
                Ok(e) if e.abs() <= 1000 => Ok((Format::DecimalExponent, e)),
                _ => Err(QuantityError::Suffix),
            },
            None => Err(QuantityError::Suffix),
        },
    }
}

/// The canonical form: no fraction, the largest suffix that keeps the number whole.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANO == 0;
        if self.format == Format::BinarySi && whole && self.nanos.abs() >= 1024 * NANO {
            let (mut n, mut power) = (self.nanos / NANO, 0);
            while n % 1024 == 0 && power < 6 {
                n /= 1024;
                power += 1;
            }
            return write!(f, "{n}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let (mut n, mut power) = (self.nanos, 0);
        let most = if self.format == Format::DecimalExponent {
            usize::MAX
        } else {
            9
        };
        while n % 1000 == 0 && power < most {
            n /= 1000;
            power += 1;
        }
        if self.format != Format::DecimalExponent {
            return write!(
                f,
                "{n}{}",
                ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power]
            );
        }
        match 3 * power as i32 - 9 {
            0 => write!(f, "{n}"),
            exponent => write!(f, "{n}e{exponent}"),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The canonical form of a quantity that may be a JSON number; None if it is not a quantity.
pub fn canonical(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(s) => s.parse::<Quantity>().ok().map(|q| q.to_string()),
        serde_json::Value::Number(n) => n
            .to_string()
            .parse::<Quantity>()
            .ok()
            .map(|q| q.to_string()),
        _ => None,
    }
}

/// The form in which the API server stores a quantity: unchanged if it considers the text
/// canonical, which it also does with leading zeros and signs.
pub fn kept(text: &str) -> Result<String, QuantityError> {
    let quantity: Quantity = text.parse()?;
    Ok(if looks_canonical(text) {
        text.to_owned()
    } else {
        quantity.to_string()
    })
}

fn looks_canonical(text: &str) -> bool {
    let rest = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
    let length = digits.len() as i32;
    match suffix_of(suffix) {
        Ok((Format::BinarySi, exponent)) => {
            length + exponent * 3 / 10 < 15
                && fraction.is_empty()
                && digits.parse::<u64>().is_ok_and(|n| n % 8 != 0)
        }
        Ok((_, exponent)) => {
            let scale = exponent - fraction.len() as i32;
            length <= 18
                && scale >= -9
                && scale % 3 == 0
                && !digits.ends_with("000")
                && !digits.starts_with('0')
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, expected) in [
            ("0", "0"),
            ("0Mi", "0"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("1000k", "1M"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1025Ki", "1025Ki"),
            ("512", "512"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1.1Ki", "1126400m"),
            ("12e6", "12e6"),
            ("12E6", "12e6"),
            ("1e2", "100"),
            ("1e-3", "1e-3"),
            ("-1.5", "-1500m"),
            ("+5", "5"),
            (".5", "500m"),
            ("5.", "5"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("100Ei", "9223372036854775807"),
            ("1E", "1E"),
            ("00100", "100"),
        ] {
            assert_eq!(
                text.parse::<Quantity>().map(|q| q.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_looks_canonical_stays_as_it_was_written() {
        for text in [
            "0", "010", "+5", "5.", "1e0", "1E3", "01Ki", "1e+3", "0001.500", "0100m",
        ] {
            assert_eq!(kept(text).as_deref(), Ok(text));
        }
        for (text, canonical) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("00", "0"),
            ("1024Mi", "1Gi"),
            ("1.50", "1500m"),
            ("1000000", "1M"),
        ] {
            assert_eq!(kept(text).as_deref(), Ok(canonical));
        }
        assert_eq!(
            "1001u"
                .parse::<Quantity>()
                .ok()
                .and_then(|q| q.in_thousandths())
                .map(|q| q.to_string()),
            Some("2m".to_owned())
        );
    }

    #[test]
    fn bad_quantities() {
        for (text, expected) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1K", QuantityError::Suffix),
            ("1mi", QuantityError::Suffix),
            ("1.2.3", QuantityError::Format),
            (".", QuantityError::Numeric),
            ("1e99999", QuantityError::Suffix),
        ] {
            assert_eq!(text.parse::<Quantity>().err(), Some(expected), "{text}");
        }
        assert!(matches!(
            "1e900".parse::<Quantity>(),
            Err(QuantityError::TooLarge(_))
        ));
    }

    #[test]
    fn order_and_values() {
        let q = |s: &str| s.parse::<Quantity>().expect(s);
        assert!(q("1Gi") > q("1G"));
        assert_eq!(q("1000m"), q("1"));
        assert_eq!(q("100m").value(), 1);
        assert_eq!(q("1.5").milli_value(), 1500);
        assert_eq!(q("100m").plus(&q("0.9")).to_string(), "1");
    }
}
