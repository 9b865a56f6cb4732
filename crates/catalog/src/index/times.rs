//! The times of an index as Go reads them and writes them again. Pure.

use jiff::civil::Date;

/// A time of RFC 3339; `None` if Go could not read it, or not write it again.
pub(super) fn go_time(text: &str) -> Option<String> {
    let (date, clock) = text.split_once('T')?;
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    let in_year = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Date::new(i16::try_from(year).ok()?, in_year.0, in_year.1).ok()?;
    let (hour, rest) = clock.split_once(':')?;
    // Of an hour, and of nothing else, Go also takes one digit.
    let hour = digits(hour, 2).or_else(|| digits(hour, 1))?;
    let (minute, rest) = rest.split_once(':')?;
    let minute = digits(minute, 2)?;
    let second = digits(rest.get(..2)?, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, zone) = fraction(rest.get(2..)?)?;
    let zone = offset(zone)?;
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"
    ))
}

/// Exactly so many of them.
fn digits(text: &str, count: usize) -> Option<u16> {
    let is_number = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// What is written of the fraction of a second, and what follows it.
fn fraction(text: &str) -> Option<(String, &str)> {
    let Some(text) = text.strip_prefix(['.', ',']) else {
        return Some((String::new(), text));
    };
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (fraction, rest) = text.split_at(end);
    if fraction.is_empty() {
        return None;
    }
    let known = fraction.get(..9).unwrap_or(fraction).trim_end_matches('0');
    let dot = if known.is_empty() { "" } else { "." };
    Some((format!("{dot}{known}"), rest))
}

fn offset(zone: &str) -> Option<String> {
    const DAY: u16 = 24 * 60;
    if zone == "Z" {
        return Some(zone.to_owned());
    }
    let rest = zone.strip_prefix(['+', '-'])?;
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    // Go reads these two, and writes what they mean.
    if hours > 24 || minutes > 60 {
        return None;
    }
    match hours * 60 + minutes {
        0 => Some("Z".to_owned()),
        all if all < DAY => {
            let sign = &zone[..1];
            Some(format!("{sign}{:02}:{:02}", all / 60, all % 60))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each as a genuine asset-syncer stored it.
    #[test]
    fn odd_times_are_read_as_go_reads_them() {
        for (written, again) in [
            ("2020-01-01T00:00:00-00:00", Some("2020-01-01T00:00:00Z")),
            ("2020-01-01T0:00:00Z", Some("2020-01-01T00:00:00Z")),
            ("2020-01-01T00:00:00,5Z", Some("2020-01-01T00:00:00.5Z")),
            ("9999-12-31T23:59:59Z", Some("9999-12-31T23:59:59Z")),
            ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z")),
            (
                "2020-01-01T00:00:00+00:60",
                Some("2020-01-01T00:00:00+01:00"),
            ),
            (
                "2020-01-01T00:00:00-00:30",
                Some("2020-01-01T00:00:00-00:30"),
            ),
            ("2020-01-01T00:00:00+24:00", None),
            ("2020-01-01T00:00:60Z", None),
            ("2020-01-01T24:00:00Z", None),
            ("2020-01-01T00:0:00Z", None),
            ("2021-02-29T00:00:00Z", None),
            ("2020-01-01T00:00:00.Z", None),
            ("2020-01-01T00:00:00", None),
            ("2020-01-01t00:00:00z", None),
            ("20-01-01T00:00:00Z", None),
        ] {
            assert_eq!(go_time(written).as_deref(), again, "{written}");
        }
    }
}
