//! Durations and times in expressions.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Parses a Go duration, in nanoseconds.
pub fn parse_duration(text: &str) -> Option<i64> {
    tiphys_gocompat::duration::parse(text).ok()
}

/// The range of all times, in seconds: from the year 1 to 9999.
pub const YEARS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// RFC 3339.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 20 && bytes[4] == b'-' && bytes[10].eq_ignore_ascii_case(&b'T');
    shaped
        .then(|| text.parse().ok().or_else(|| last_day(text)))
        .flatten()
}

/// Our time library ends a day before the real one; that last day, which often stands for "never",
/// becomes our last moment.
fn last_day(text: &str) -> Option<Timestamp> {
    let rest = text.strip_prefix("9999-12-3")?;
    format!("9998-12-3{rest}")
        .parse::<Timestamp>()
        .ok()
        .map(|_| Timestamp::MAX)
}

pub fn from_seconds(seconds: i64) -> Option<Timestamp> {
    YEARS
        .contains(&seconds)
        .then(|| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

pub fn text(time: Timestamp) -> String {
    time.to_string()
}

/// The result of `string(duration)`: seconds.
pub fn seconds(nanos: i64) -> String {
    let (whole, rest) = (nanos / 1_000_000_000, (nanos % 1_000_000_000).abs());
    let sign = if nanos < 0 && whole == 0 { "-" } else { "" };
    if rest == 0 {
        return format!("{sign}{whole}s");
    }
    format!(
        "{sign}{whole}.{}s",
        format!("{rest:09}").trim_end_matches('0')
    )
}

/// The time in a zone: a name, an offset such as `+02:00`, or UTC.
pub fn in_zone(time: Timestamp, zone: Option<&str>) -> Option<Zoned> {
    let Some(zone) = zone else {
        return Some(time.to_zoned(TimeZone::UTC));
    };
    if let Some((hours, minutes)) = zone.split_once(':') {
        let negative = hours.starts_with('-');
        let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
        let seconds = hours * 3600 + minutes.parse::<i32>().ok()? * 60;
        let offset =
            jiff::tz::Offset::from_seconds(if negative { -seconds } else { seconds }).ok()?;
        return Some(time.to_zoned(TimeZone::fixed(offset)));
    }
    if zone == "UTC" || zone.is_empty() {
        return Some(time.to_zoned(TimeZone::UTC));
    }
    Some(time.to_zoned(TimeZone::get(zone).ok()?))
}

/// A part of a time, by the name of the function.
pub fn part(function: &str, time: &Zoned) -> Option<i64> {
    Some(match function {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month()) - 1,
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDate" => i64::from(time.day()),
        "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        "getMilliseconds" => i64::from(time.millisecond()),
        _ => return None,
    })
}

/// A whole number of units in a duration.
pub fn whole(function: &str, nanos: i64) -> Option<i64> {
    Some(match function {
        "getHours" => nanos / 3_600_000_000_000,
        "getMinutes" => nanos / 60_000_000_000,
        "getSeconds" => nanos / 1_000_000_000,
        "getMilliseconds" => nanos / 1_000_000,
        _ => return None,
    })
}
