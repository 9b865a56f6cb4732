//! Times and numbers in text form as Go parses them, with Go's errors. Main functions: [`parse`],
//! [`read_int`].

use crate::gofmt;
use serde_json::Value;
use std::num::{IntErrorKind, ParseIntError};

/// A layout, split into Go's elements.
pub type Layout = [&'static str];

pub const RFC3339: &Layout = &[
    "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", "Z07:00",
];
pub const RFC3339_MICRO: &Layout = &[
    "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", ".000000", "Z07:00",
];

/// Why an element of the layout does not match.
enum Misfit {
    /// The text at this position does not match.
    Other,
    /// The number is out of range.
    OutOfRange(&'static str),
}

/// Checks that a text is a time in this layout.
pub fn parse(text: &str, layout: &Layout) -> Result<(), String> {
    let refused = |why: String| Err(format!("parsing time {text:?}{why}"));
    let mut date = Date::default();
    let mut rest = text;
    for (index, part) in layout.iter().enumerate() {
        let fraction_follows = layout
            .get(index + 1)
            .is_some_and(|next| next.starts_with('.'));
        match date.take(part, rest, fraction_follows) {
            Ok(after) => rest = after,
            Err(Misfit::OutOfRange(what)) => return refused(format!(": {what} out of range")),
            Err(Misfit::Other) => {
                return refused(format!(
                    " as {:?}: cannot parse {rest:?} as {part:?}",
                    layout.concat()
                ));
            }
        }
    }
    if !rest.is_empty() {
        return refused(format!(": extra text: {rest:?}"));
    }
    if date.day < 1 || date.day > date.days_in_month() {
        return refused(": day out of range".to_owned());
    }
    Ok(())
}

/// The text that Go writes for a time that it has parsed, if that differs: in UTC, without the
/// parts that the layout lacks.
pub fn as_written(text: &str, layout: &Layout) -> Option<Value> {
    let micro = layout.contains(&".000000");
    if text.ends_with('Z') && text.len() == if micro { 27 } else { 20 } && !text.starts_with(ZERO) {
        return None;
    }
    let mut text = text.replace(',', ".");
    if text.as_bytes().get(12) == Some(&b':') {
        // Go accepts a single digit for the hour.
        text.insert(11, '0');
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    let form = if micro {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    let shown = time.strftime(form).to_string();
    Some(
        if time.as_second() == ZERO_SECOND && time.subsec_nanosecond() == 0 {
            Value::Null
        } else {
            shown.into()
        },
    )
}

/// A time (RFC 3339) as Go keeps it; none for the zero time.
pub fn read_time(text: &str) -> Result<Option<String>, String> {
    parse(text, RFC3339)?;
    Ok(match as_written(text, RFC3339) {
        None => Some(text.to_owned()),
        Some(written) => written.as_str().map(str::to_owned),
    })
}

/// Parses an integer in a text without type information.
pub fn read_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {why}", gofmt::quoted(text))
    })
}

/// Go's zero time.
const ZERO: &str = "0001-01-01T00:00:00";
const ZERO_SECOND: i64 = -62_135_596_800;

/// The fields that decide whether a day exists.
#[derive(Default)]
struct Date {
    year: u32,
    month: u32,
    day: u32,
}

impl Date {
    /// The rest of the text after this element of the layout.
    fn take<'t>(
        &mut self,
        part: &str,
        text: &'t str,
        fraction_follows: bool,
    ) -> Result<&'t str, Misfit> {
        let (number, rest) = match part {
            "2006" => number(text, 4, 4)?,
            "15" => number(text, 1, 2)?,
            "01" | "02" | "04" | "05" => number(text, 2, 2)?,
            ".000000" => return fraction(text),
            "Z07:00" => return zone(text),
            literal => return text.strip_prefix(literal).ok_or(Misfit::Other),
        };
        match part {
            "2006" => self.year = number,
            "01" => self.month = number,
            "02" => self.day = number,
            _ => {}
        }
        match part {
            "01" if !(1..=12).contains(&number) => Err(Misfit::OutOfRange("month")),
            "15" if number > 23 => Err(Misfit::OutOfRange("hour")),
            "04" if number > 59 => Err(Misfit::OutOfRange("minute")),
            "05" if number > 59 => Err(Misfit::OutOfRange("second")),
            // A fraction is accepted even if the layout has none.
            "05" if !fraction_follows => Ok(after_fraction(rest)),
            _ => Ok(rest),
        }
    }

    fn days_in_month(&self) -> u32 {
        match self.month {
            2 if self.year.is_multiple_of(4)
                && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400)) =>
            {
                29
            }
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

/// A number of so many digits.
fn number(text: &str, least: usize, most: usize) -> Result<(u32, &str), Misfit> {
    let digits = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    if digits < least {
        return Err(Misfit::Other);
    }
    Ok((
        text[..digits].parse().map_err(|_| Misfit::Other)?,
        &text[digits..],
    ))
}

/// Microseconds, all six digits.
fn fraction(text: &str) -> Result<&str, Misfit> {
    let digits = text.strip_prefix(['.', ',']).ok_or(Misfit::Other)?;
    number(digits, 6, 6).map(|(_, rest)| rest)
}

fn after_fraction(text: &str) -> &str {
    match text.strip_prefix(['.', ',']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            rest.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => text,
    }
}

/// `Z` or an offset such as `+02:00`.
fn zone(text: &str) -> Result<&str, Misfit> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Ok(rest);
    }
    let (hours, rest) = number(text.strip_prefix(['+', '-']).ok_or(Misfit::Other)?, 2, 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':').ok_or(Misfit::Other)?, 2, 2)?;
    match (hours, minutes) {
        (25.., _) => Err(Misfit::OutOfRange("time zone offset hour")),
        (_, 61..) => Err(Misfit::OutOfRange("time zone offset minute")),
        _ => Ok(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let shown = |text, layout| as_written(text, layout).map(|v| v.as_str().map(str::to_owned));
        assert_eq!(shown("2024-01-01T00:00:00Z", RFC3339), None);
        assert_eq!(
            shown("2024-01-01T00:00:00.7+01:00", RFC3339),
            Some(Some("2023-12-31T23:00:00Z".into()))
        );
        assert_eq!(
            shown("2024-01-01T00:00:00.000001-02:00", RFC3339_MICRO),
            Some(Some("2024-01-01T02:00:00.000001Z".into()))
        );
        assert_eq!(
            shown("2024-01-01T1:00:00,5Z", RFC3339),
            Some(Some("2024-01-01T01:00:00Z".into()))
        );
        assert_eq!(shown("0001-01-01T00:00:00Z", RFC3339), Some(None));
    }

    #[test]
    fn says_what_go_says() {
        let micro = |text| parse(text, RFC3339_MICRO).err().unwrap_or_default();
        assert_eq!(micro("2024-01-01T00:00:00.000000Z"), "");
        assert_eq!(micro("2024-01-01T00:00:00.000000+02:00"), "");
        assert_eq!(
            micro("2024-01-01T00:00:00.000000Z-2"),
            r#"parsing time "2024-01-01T00:00:00.000000Z-2": extra text: "-2""#
        );
        assert!(micro("2024-01-01T00:00:00Z").ends_with(r#"cannot parse "Z" as ".000000""#));
        let whole = |text| parse(text, RFC3339).err().unwrap_or_default();
        assert_eq!(whole("2024-02-29T1:00:00,5Z"), "");
        assert_eq!(
            whole("2023-02-29T01:00:00Z"),
            r#"parsing time "2023-02-29T01:00:00Z": day out of range"#
        );
        assert_eq!(
            whole("2023-13-01T01:00:00Z"),
            r#"parsing time "2023-13-01T01:00:00Z": month out of range"#
        );
        assert_eq!(
            whole("soon"),
            r#"parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006""#
        );
        assert_eq!(
            whole(""),
            r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#
        );
    }
}
