//! Go's `time.Duration`: `ParseDuration` and `String`.

/// The unit prefixes and their length in nanoseconds.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5
    ("μs", 1_000), // U+03BC
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Why a text is not a duration, worded as Go does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit { unit: String, text: String },
}

/// Nanoseconds of a text like `1h30m`, `1.5s` or `-3ms`.
pub fn parse(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after_fraction) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_len = after_fraction
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after_fraction.len());
        let (unit, next) = after_fraction.split_at(unit_len);
        if unit.is_empty() {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(DurationError::UnknownUnit {
                unit: unit.to_owned(),
                text: text.to_owned(),
            });
        };
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| invalid())?
        };
        let part = whole
            .checked_mul(*scale)
            .and_then(|n| n.checked_add(fraction_nanos(fraction, *scale)));
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|t| *t <= 1 << 63)
            .ok_or_else(invalid)?;
        rest = next;
    }
    match (negative, i64::try_from(total)) {
        (true, _) => 0i64.checked_sub_unsigned(total).ok_or_else(invalid),
        (false, total) => total.map_err(|_| invalid()),
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The fraction in nanoseconds, truncated. Digits that no longer fit are ignored, as in Go.
fn fraction_nanos(digits: &str, scale: u64) -> u64 {
    let (mut value, mut divisor) = (0u64, 1u64);
    for digit in digits.bytes().take(18) {
        value = value * 10 + u64::from(digit - b'0');
        divisor *= 10;
    }
    let nanos = u128::from(value) * u128::from(scale) / u128::from(divisor);
    u64::try_from(nanos).unwrap_or(0)
}

/// What Go's `Duration.String` prints: `1h30m0s`, `1.5s`, `100ms`, `0s`.
pub fn to_string(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(size, 1_000_000)),
        _ => {
            let (minutes, nanos) = (size / 60_000_000_000, size % 60_000_000_000);
            let seconds = decimal(nanos, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

fn decimal(value: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", value / unit, value % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
