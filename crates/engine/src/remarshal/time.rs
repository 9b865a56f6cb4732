//! Times as metav1.Time and metav1.MicroTime read and write them. Pure.
//!
//! Main function: [`rewritten`]. The arithmetic is our own: our time library accepts a second 60,
//! and ends before the last day of the year 9999, which often stands for "never".

use serde_json::Value;

const DAY: i64 = 24 * 60 * 60;
/// Go's zero time, 0001-01-01, in seconds since 1970.
const ZERO: i64 = -62_135_596_800;

/// The time in UTC without a fraction, or with the six digits of a MicroTime; null for Go's zero
/// time. `None` if Go cannot read it.
pub(super) fn rewritten(text: &str, micro: bool) -> Option<Value> {
    let (date, clock) = text.split_once('T')?;
    let (clock, fraction, zone) = parts(clock)?;
    if micro && fraction.len() != 6 {
        return None;
    }
    let seconds = day(date)? * DAY + second_of_day(clock)? - offset(zone)?;
    // Go keeps nine digits.
    let exact = fraction.bytes().take(9).all(|digit| digit == b'0');
    if seconds == ZERO && exact {
        return Some(Value::Null);
    }
    let point = if micro { "." } else { "" };
    let digits = if micro { fraction } else { "" };
    let (date, clock) = (date_of(seconds.div_euclid(DAY)), seconds.rem_euclid(DAY));
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    Some(format!("{date}T{hour:02}:{minute:02}:{second:02}{point}{digits}Z").into())
}

/// What stands after the `T`: the clock, the digits of the fraction, and the zone.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':')?;
    let (clock, rest) = text.split_at(end);
    let Some(rest) = rest.strip_prefix(['.', ',']) else {
        return Some((clock, "", rest));
    };
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let (fraction, zone) = rest.split_at(end);
    (!fraction.is_empty()).then_some((clock, fraction, zone))
}

/// Exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn second_of_day(text: &str) -> Option<i64> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    // Of an hour, and of nothing else, Go also takes one digit.
    let hour = digits(hour, 2).or_else(|| digits(hour, 1))?;
    let (minute, second) = (digits(minute, 2)?, digits(second, 2)?);
    let exists = hour < 24 && minute < 60 && second < 60;
    exists.then_some(hour * 3600 + minute * 60 + second)
}

/// Seconds east of UTC. Go takes 24 hours and 60 minutes, too.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 24 && minutes <= 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// The number of a day, counted from 1970-01-01.
fn day(text: &str) -> Option<i64> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) {
        return None;
    }
    // Years that begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let in_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + in_year - 719_468)
}

/// The date of that day. Years beyond 9999 have five digits, as in Go.
fn date_of(day: i64) -> String {
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 {
        (era * 400 + year, month + 3)
    } else {
        (era * 400 + year + 1, month - 9)
    };
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go 1.26 makes of them: "-" is an error.
    const OF_GO: &[(&str, &str, &str)] = &[
        ("2024-01-01T00:00:60Z", "-", "-"),
        ("2016-12-31T23:59:60.5Z", "-", "-"),
        ("2024-01-01T00:00:60.000000Z", "-", "-"),
        ("0001-01-01T00:00:00Z", "null", "-"),
        ("0001-01-01T00:00:00.5Z", "0001-01-01T00:00:00Z", "-"),
        ("0001-01-01T00:00:00.000000Z", "null", "null"),
        (
            "0001-01-01T00:00:00.000000001Z",
            "0001-01-01T00:00:00Z",
            "-",
        ),
        (
            "0001-01-01T00:00:00.999999Z",
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00.999999Z",
        ),
        (
            "0001-01-01T00:00:00,123456Z",
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00.123456Z",
        ),
        ("0001-01-01T02:00:00+02:00", "null", "-"),
        ("0001-01-01T00:00:00+01:00", "0000-12-31T23:00:00Z", "-"),
        ("0000-12-31T23:00:00-01:00", "null", "-"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "-"),
        (
            "0000-01-01T00:00:00.000000+12:00",
            "-0001-12-31T12:00:00Z",
            "-0001-12-31T12:00:00.000000Z",
        ),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "-"),
        ("9999-12-31T23:59:59-02:00", "10000-01-01T01:59:59Z", "-"),
        ("2024-01-01T24:00:00Z", "-", "-"),
        ("2024-01-01T0:00:00Z", "2024-01-01T00:00:00Z", "-"),
        ("2024-1-01T00:00:00Z", "-", "-"),
        ("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00Z", "-"),
        ("2024-01-01T00:00:00.Z", "-", "-"),
        (
            "2024-01-01T00:00:00.1234567890123Z",
            "2024-01-01T00:00:00Z",
            "-",
        ),
        ("2024-02-29T12:34:56Z", "2024-02-29T12:34:56Z", "-"),
        ("2024-02-30T00:00:00Z", "-", "-"),
        (
            "2024-01-01T00:00:00.123456+24:00",
            "2023-12-31T00:00:00Z",
            "2023-12-31T00:00:00.123456Z",
        ),
        ("2024-01-01T00:00:00+00:60", "2023-12-31T23:00:00Z", "-"),
        ("2024-01-01T00:00:00+25:59", "-", "-"),
        ("2024-01-01t00:00:00z", "-", "-"),
        ("2024-01-01T00:00:00z", "-", "-"),
        ("-001-01-01T00:00:00Z", "-", "-"),
        ("2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00Z", "-"),
        ("2024-W01-1T00:00:00Z", "-", "-"),
        ("2024-01-01T00:00:00[UTC]Z", "-", "-"),
    ];

    #[test]
    fn times_are_those_of_go() {
        for (given, time, micro) in OF_GO {
            for (want, is_micro) in [(time, false), (micro, true)] {
                let got = match rewritten(given, is_micro) {
                    None => "-".to_owned(),
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                };
                assert_eq!(got, **want, "{given}, micro {is_micro}");
            }
        }
    }

    #[test]
    fn each_day_is_its_own_date() {
        let mut before = String::new();
        for number in day("1899-01-01").expect("a day")..=day("2101-12-31").expect("a day") {
            let date = date_of(number);
            assert_eq!(day(&date), Some(number), "{date}");
            assert!(date > before, "{date} after {before}");
            before = date;
        }
        assert_eq!(day("1970-01-01"), Some(0));
        assert_eq!(day("2000-02-29"), Some(11_016));
        assert_eq!(day("1900-02-29"), None);
    }
}
