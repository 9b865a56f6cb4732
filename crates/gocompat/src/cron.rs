//! Cron schedules as parsed by the Go library robfig/cron (v3), with its error messages.
//!
//! Main type: [`Schedule`]. Source: the library's documentation and, for the messages, its output.

use crate::duration;
use jiff::{SignedDuration, Timestamp, ToSpan, civil, tz::TimeZone};

/// When something is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    rule: Rule,
    /// Set in front of the schedule (`TZ=Asia/Tokyo 0 9 * * *`); it overrides the caller's zone.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Fields(Fields),
    Every(SignedDuration),
}

/// The matching minutes, hours, days, months and weekdays, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
}

/// Set if a field was written as a star without a step.
const STAR: u64 = 1 << 63;

/// A field: its minimum and maximum, and names for numbers.
struct Bounds(u64, u64, &'static [&'static str]);

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Bounds; 5] = [
    Bounds(0, 59, &[]),
    Bounds(0, 23, &[]),
    Bounds(1, 31, &[]),
    Bounds(1, 12, &MONTHS),
    Bounds(0, 6, &DAYS),
];
/// How far ahead the next time is searched for.
const YEARS: i16 = 5;

impl Schedule {
    /// Parses five fields or a descriptor such as `@daily` or `@every 1h`.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, true)
    }

    /// Parses five fields and nothing else.
    pub fn parse_fields(text: &str) -> Result<Self, String> {
        Self::read(text, false)
    }

    fn read(text: &str, descriptors: bool) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        let (zone, text) = split_zone(text)?;
        let rule = match text.strip_prefix('@') {
            Some(_) if !descriptors => {
                return Err(format!("parser does not accept descriptors: {text}"));
            }
            Some(_) => descriptor(text)?,
            None => Rule::Fields(fields(text)?),
        };
        Ok(Self { rule, zone })
    }

    /// The first time after `time`, in whole seconds; `None` if there is none within five years.
    pub fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        match &self.rule {
            Rule::Every(delay) => Timestamp::from_second(time.as_second())
                .ok()?
                .checked_add(*delay)
                .ok(),
            Rule::Fields(fields) => fields.next(time, zone),
        }
    }
}

impl Fields {
    fn has_day(&self, date: civil::Date) -> bool {
        let day = self.days >> date.day() & 1 == 1;
        let weekday = self.weekdays >> date.weekday().to_sunday_zero_offset() & 1 == 1;
        let either = (self.days | self.weekdays) & STAR == 0;
        let fits = if either {
            day || weekday
        } else {
            day && weekday
        };
        fits && self.months >> date.month() & 1 == 1
    }

    fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = zone.to_datetime(time.checked_add(1.minute()).ok()?);
        let mut date = start.date();
        let mut from = (start.hour(), start.minute());
        let last = date.year().checked_add(YEARS)?;
        while date.year() <= last {
            if self.has_day(date) {
                for hour in from.0..24 {
                    let first = if hour == from.0 { from.1 } else { 0 };
                    let minute = (first..60).find(|m| self.minutes >> m & 1 == 1);
                    if let (1, Some(minute)) = (self.hours >> hour & 1, minute) {
                        return zone.to_timestamp(date.at(hour, minute, 0, 0)).ok();
                    }
                }
            }
            date = date.tomorrow().ok()?;
            from = (0, 0);
        }
        None
    }
}

/// The time zone with exactly this name in the database; empty means UTC.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        _ => TimeZone::get(name)
            .ok()
            .filter(|zone| zone.iana_name() == Some(name)),
    }
}

fn split_zone(text: &str) -> Result<(Option<TimeZone>, &str), String> {
    let Some(rest) = text
        .strip_prefix("TZ=")
        .or_else(|| text.strip_prefix("CRON_TZ="))
    else {
        return Ok((None, text));
    };
    let Some((name, spec)) = rest.split_once(' ') else {
        // The library panics here; the caller provides the message.
        let start = text.len() - rest.len();
        return Err(format!(
            "invalid schedule format: runtime error: slice bounds out of range [{start}:-1]"
        ));
    };
    match time_zone(name) {
        Some(zone) => Ok((Some(zone), spec.trim())),
        None if name == "Local" => Ok((None, spec.trim())),
        None => Err(format!(
            "provided bad location {name}: unknown time zone {name}"
        )),
    }
}

fn descriptor(text: &str) -> Result<Rule, String> {
    let spec = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return every(text),
    };
    fields(spec).map(Rule::Fields)
}

fn every(text: &str) -> Result<Rule, String> {
    let written = text
        .strip_prefix("@every ")
        .ok_or_else(|| format!("unrecognized descriptor: {text}"))?;
    let delay = duration::parse(written).map_err(|_| {
        format!("failed to parse duration {text}: time: invalid duration \"{written}\"")
    })?;
    Ok(Rule::Every(SignedDuration::from_secs(
        (delay / 1_000_000_000).max(1),
    )))
}

fn fields(text: &str) -> Result<Fields, String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            parts.len(),
            parts.join(" ")
        ));
    }
    let mut bits = [0; FIELDS.len()];
    for ((bits, part), bounds) in bits.iter_mut().zip(parts).zip(&FIELDS) {
        for range in part.split(',').filter(|r| !r.is_empty()) {
            *bits |= range_bits(range, bounds)?;
        }
    }
    let [minutes, hours, days, months, weekdays] = bits;
    Ok(Fields {
        minutes,
        hours,
        days,
        months,
        weekdays,
    })
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Err(format!("negative number ({n}) not allowed: {text}")),
        Ok(n) => Ok(n.unsigned_abs()),
        Err(error) => {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Err(format!(
                "failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": {why}"
            ))
        }
    }
}

fn named(text: &str, bounds: &Bounds) -> Result<u64, String> {
    match bounds
        .2
        .iter()
        .position(|name| text.eq_ignore_ascii_case(name))
    {
        Some(i) => Ok(i as u64 + bounds.0),
        None => number(text),
    }
}

fn range_bits(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let star = matches!(ends[0], "*" | "?");
    let (start, mut end) = if star {
        (bounds.0, bounds.1)
    } else {
        let start = named(ends[0], bounds)?;
        match ends[..] {
            [_] => (start, start),
            [_, end] => (start, named(end, bounds)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.1;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    match () {
        () if start < bounds.0 => Err(format!(
            "beginning of range ({start}) below minimum ({}): {text}",
            bounds.0
        )),
        () if end > bounds.1 => Err(format!(
            "end of range ({end}) above maximum ({}): {text}",
            bounds.1
        )),
        () if start > end => Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        )),
        () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
        () => {
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let bits = (start..=end).step_by(step).fold(0, |bits, n| bits | 1 << n);
            Ok(if star && step == 1 { bits | STAR } else { bits })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect(text)
    }

    #[test]
    fn the_next_time_of_a_schedule() {
        for (schedule, from, want) in [
            (
                "* * * * *",
                "2026-03-01T10:00:30Z",
                Some("2026-03-01T10:01:00Z"),
            ),
            (
                "* * * * *",
                "2026-03-01T10:00:00Z",
                Some("2026-03-01T10:01:00Z"),
            ),
            (
                "* * * * *",
                "2026-03-01T09:59:59.5Z",
                Some("2026-03-01T10:00:00Z"),
            ),
            (
                "*/15 * * * *",
                "2026-03-01T10:46:00Z",
                Some("2026-03-01T11:00:00Z"),
            ),
            (
                "30 2 * * mon-fri",
                "2026-03-06T03:00:00Z",
                Some("2026-03-09T02:30:00Z"),
            ),
            (
                "0 0 29 2 *",
                "2026-03-01T00:00:00Z",
                Some("2028-02-29T00:00:00Z"),
            ),
            (
                "0 0 13 * 5",
                "2026-03-01T00:00:00Z",
                Some("2026-03-06T00:00:00Z"),
            ),
            // A star with a step does not count as a star: one of the two days is enough.
            (
                "0 0 */31 * 1",
                "2026-03-01T00:00:00Z",
                Some("2026-03-02T00:00:00Z"),
            ),
            (
                "@hourly",
                "2026-12-31T23:00:00Z",
                Some("2027-01-01T00:00:00Z"),
            ),
            (
                "@every 90s",
                "2026-03-01T00:00:00Z",
                Some("2026-03-01T00:01:30Z"),
            ),
            (
                "TZ=Asia/Tokyo 0 12 * * *",
                "2026-03-01T00:00:00Z",
                Some("2026-03-01T03:00:00Z"),
            ),
            ("0 0 31 2 *", "2026-03-01T00:00:00Z", None),
        ] {
            let next = Schedule::parse(schedule)
                .expect(schedule)
                .next(at(from), &TimeZone::UTC);
            assert_eq!(next, want.map(at), "{schedule} after {from}");
        }
    }

    #[test]
    fn schedules_are_refused_in_the_words_of_the_library() {
        for good in [
            "*/5 * * * *",
            "@daily",
            "@every 1h",
            "0 0 1 jan sun-fri",
            "?,1 2-4/2 * * *",
            "CRON_TZ=UTC * * * * *",
        ] {
            assert!(Schedule::parse(good).is_ok(), "{good}");
        }
        let table = [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("@often", "unrecognized descriptor: @often"),
            (
                "TZ=Mars/Olympus * * * * *",
                "provided bad location Mars/Olympus: unknown time zone Mars/Olympus",
            ),
        ];
        for (text, why) in table {
            assert_eq!(Schedule::parse(text).expect_err(text), why);
        }
        assert_eq!(
            Schedule::parse_fields("@daily").expect_err("a descriptor"),
            "parser does not accept descriptors: @daily"
        );
    }
}
