//! Parses times by Go's layouts, with the errors of `time.ParseInLocation`.
//!
//! Main function: [`parse`].

use super::layout::{DAYS, MONTHS, chunk};
use super::moment::{Moment, fixed};
use jiff::{Timestamp, civil, tz::TimeZone};

/// Why an element of the layout does not match.
enum Misfit {
    Other,
    Range(&'static str),
}

/// The values parsed so far.
#[derive(Default)]
struct Parts {
    year: i16,
    month: Option<i8>,
    day: Option<u16>,
    year_day: Option<u16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanos: i32,
    afternoon: Option<bool>,
    utc: bool,
    offset: Option<i32>,
    zone: Option<String>,
}

pub(super) fn parse(layout: &str, text: &str, local: &TimeZone) -> Result<Moment, String> {
    let refused = |why: &str| format!("parsing time {}{why}", quote(text.as_bytes()));
    let misfit = |value: &[u8], element: &str| {
        refused(&format!(
            " as {}: cannot parse {} as {}",
            quote(layout.as_bytes()),
            quote(value),
            quote(element.as_bytes())
        ))
    };
    let mut parts = Parts::default();
    let (mut rest_layout, mut rest) = (layout, text.as_bytes());
    loop {
        let (before, element, after) = chunk(rest_layout);
        rest = skip(rest, before.as_bytes()).map_err(|at| misfit(at, before))?;
        if element.is_empty() {
            if !rest.is_empty() {
                return Err(refused(&format!(": extra text: {}", quote(rest))));
            }
            break;
        }
        rest_layout = after;
        rest = match parts.take(element, rest, after) {
            Ok(next) => next,
            Err(Misfit::Range(what)) => return Err(refused(&format!(": {what} out of range"))),
            Err(Misfit::Other) => return Err(misfit(rest, element)),
        };
    }
    parts
        .moment(local)
        .map_err(|why| refused(&format!(": {why}")))
}

/// The text after the literal prefix of the layout; a space matches any number of them.
fn skip<'t>(mut text: &'t [u8], mut prefix: &[u8]) -> Result<&'t [u8], &'t [u8]> {
    fn without_spaces(text: &[u8]) -> &[u8] {
        &text[text.iter().take_while(|b| **b == b' ').count()..]
    }
    while let Some(&wanted) = prefix.first() {
        if wanted == b' ' {
            if text.first().is_some_and(|b| *b != b' ') {
                return Err(text);
            }
            (prefix, text) = (without_spaces(prefix), without_spaces(text));
            continue;
        }
        if text.first() != Some(&wanted) {
            return Err(text);
        }
        (prefix, text) = (&prefix[1..], &text[1..]);
    }
    Ok(text)
}

/// A text in quotes, as in the errors of package time.
fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for b in text {
        match b {
            b'"' | b'\\' => out.extend(['\\', char::from(*b)]),
            b' '..=0x7f => out.push(char::from(*b)),
            b => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out.push('"');
    out
}

/// A number of one or two digits.
fn number(text: &[u8], both: bool) -> Result<(i8, &[u8]), Misfit> {
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', rest @ ..] => {
            Ok(((a - b'0') as i8 * 10 + (b - b'0') as i8, rest))
        }
        [a @ b'0'..=b'9', rest @ ..] if !both => Ok(((a - b'0') as i8, rest)),
        _ => Err(Misfit::Other),
    }
}

fn ranged<'t>(
    read: Result<(i8, &'t [u8]), Misfit>,
    most: i8,
    what: &'static str,
) -> Result<(i8, &'t [u8]), Misfit> {
    match read? {
        (number, _) if number > most => Err(Misfit::Range(what)),
        fits => Ok(fits),
    }
}

fn name<'t>(text: &'t [u8], names: &[&str], length: usize) -> Result<(i8, &'t [u8]), Misfit> {
    let fits = |name: &&str| {
        let name = &name.as_bytes()[..length.min(name.len())];
        text.get(..name.len())
            .is_some_and(|t| t.eq_ignore_ascii_case(name))
    };
    let at = names.iter().position(fits).ok_or(Misfit::Other)?;
    Ok((
        i8::try_from(at).unwrap_or(0),
        &text[length.min(names[at].len())..],
    ))
}

impl Parts {
    fn take<'t>(&mut self, element: &str, text: &'t [u8], after: &str) -> Result<&'t [u8], Misfit> {
        let both = element.starts_with('0');
        let rest;
        match element {
            "2006" | "06" => return self.take_year(text, element.len()),
            "Jan" | "January" => {
                let month;
                (month, rest) = name(text, &MONTHS, if element == "Jan" { 3 } else { usize::MAX })?;
                self.month = Some(month + 1);
            }
            "Mon" | "Monday" => {
                (_, rest) = name(text, &DAYS, if element == "Mon" { 3 } else { usize::MAX })?
            }
            "1" | "01" => {
                let month;
                (month, rest) = ranged(number(text, both), 12, "month")?;
                if month == 0 {
                    return Err(Misfit::Range("month"));
                }
                self.month = Some(month);
            }
            "2" | "_2" | "02" => {
                let text = if element == "_2" {
                    text.strip_prefix(b" ").unwrap_or(text)
                } else {
                    text
                };
                let day;
                (day, rest) = number(text, both)?;
                self.day = Some(day.unsigned_abs().into());
            }
            "__2" | "002" => return self.take_year_day(text, element == "002"),
            "15" => (self.hour, rest) = ranged(number(text, false), 23, "hour")?,
            "3" | "03" => (self.hour, rest) = ranged(number(text, both), 12, "hour")?,
            "4" | "04" => (self.minute, rest) = ranged(number(text, both), 59, "minute")?,
            "5" | "05" => {
                let second;
                (second, rest) = ranged(number(text, both), 59, "second")?;
                self.second = second;
                let fraction_follows = chunk(after).1.starts_with(['.', ',']);
                if !fraction_follows && matches!(rest, [b'.' | b',', b'0'..=b'9', ..]) {
                    return self.take_fraction(rest, None);
                }
            }
            "PM" | "pm" => {
                let half = text.get(..2).ok_or(Misfit::Other)?;
                let names = if element == "PM" {
                    ["AM", "PM"]
                } else {
                    ["am", "pm"]
                };
                self.afternoon = Some(
                    names
                        .iter()
                        .position(|n| n.as_bytes() == half)
                        .ok_or(Misfit::Other)?
                        == 1,
                );
                rest = &text[2..];
            }
            "MST" => return self.take_zone(text),
            _ if element.starts_with(['Z', '-']) => return self.take_offset(element, text),
            _ => return self.take_fraction(text, Some(element)),
        }
        Ok(rest)
    }

    fn take_year<'t>(&mut self, text: &'t [u8], digits: usize) -> Result<&'t [u8], Misfit> {
        let shown = text
            .get(..digits)
            .filter(|t| t.iter().all(u8::is_ascii_digit))
            .ok_or(Misfit::Other)?;
        let year = shown
            .iter()
            .fold(0, |year, b| year * 10 + i16::from(b - b'0'));
        self.year = match year {
            year if digits == 4 => year,
            year @ 69.. => year + 1900,
            year => year + 2000,
        };
        Ok(&text[digits..])
    }

    fn take_year_day<'t>(&mut self, mut text: &'t [u8], three: bool) -> Result<&'t [u8], Misfit> {
        for _ in 0..2 {
            text = if three {
                text
            } else {
                text.strip_prefix(b" ").unwrap_or(text)
            };
        }
        let digits = text
            .iter()
            .take(3)
            .take_while(|b| b.is_ascii_digit())
            .count();
        if digits == 0 || (three && digits != 3) {
            return Err(Misfit::Other);
        }
        self.year_day = Some(
            text[..digits]
                .iter()
                .fold(0, |day, b| day * 10 + u16::from(b - b'0')),
        );
        Ok(&text[digits..])
    }

    /// As many digits as the layout has zeros; for nines any number, or none.
    fn take_fraction<'t>(
        &mut self,
        text: &'t [u8],
        element: Option<&str>,
    ) -> Result<&'t [u8], Misfit> {
        let len = match element {
            Some(zeros) if zeros.ends_with('0') => zeros.len(),
            _ if !matches!(text, [b'.' | b',', b'0'..=b'9', ..]) => return Ok(text),
            _ => 1 + text[1..].iter().take_while(|b| b.is_ascii_digit()).count(),
        };
        let shown = text.get(..len).ok_or(Misfit::Other)?;
        if !matches!(shown[0], b'.' | b',') || !shown[1..].iter().all(u8::is_ascii_digit) {
            return Err(Misfit::Other);
        }
        let digits = shown[1..]
            .iter()
            .map(|b| i32::from(b - b'0'))
            .chain(std::iter::repeat(0))
            .take(9);
        self.nanos = digits.fold(0, |nanos, digit| nanos * 10 + digit);
        Ok(&text[len..])
    }

    fn take_offset<'t>(&mut self, element: &str, text: &'t [u8]) -> Result<&'t [u8], Misfit> {
        if element.starts_with('Z') && text.first() == Some(&b'Z') {
            self.utc = true;
            return Ok(&text[1..]);
        }
        let shown = text.get(..element.len()).ok_or(Misfit::Other)?;
        let mut numbers = [0_i32; 3];
        let mut digits = &shown[1..];
        for (index, part) in numbers.iter_mut().enumerate() {
            if digits.is_empty() {
                break;
            }
            if index > 0 && element.contains(':') {
                digits = digits.strip_prefix(b":").ok_or(Misfit::Other)?;
            }
            let (number, rest) = number(digits, true)?;
            (*part, digits) = (number.into(), rest);
        }
        let limits = [
            (24, "time zone offset hour"),
            (60, "time zone offset minute"),
            (60, "time zone offset second"),
        ];
        for (number, (most, what)) in numbers.iter().zip(limits) {
            if *number > most {
                return Err(Misfit::Range(what));
            }
        }
        let seconds = (numbers[0] * 60 + numbers[1]) * 60 + numbers[2];
        self.offset = Some(match shown[0] {
            b'+' => seconds,
            b'-' => -seconds,
            _ => return Err(Misfit::Other),
        });
        Ok(&text[element.len()..])
    }

    fn take_zone<'t>(&mut self, text: &'t [u8]) -> Result<&'t [u8], Misfit> {
        if let Some(rest) = text.strip_prefix(b"UTC") {
            self.utc = true;
            return Ok(rest);
        }
        let len = zone_length(text).ok_or(Misfit::Other)?;
        self.zone = Some(String::from_utf8_lossy(&text[..len]).into_owned());
        Ok(&text[len..])
    }

    /// The date, from the day of the year if that is given.
    fn date(&self) -> Result<civil::Date, &'static str> {
        let Some(year_day) = self.year_day else {
            let (month, day) = (
                self.month.unwrap_or(1),
                i8::try_from(self.day.unwrap_or(1)).unwrap_or(0),
            );
            return civil::Date::new(self.year, month, day).map_err(|_| "day out of range");
        };
        let first = civil::date(self.year, 1, 1);
        let days = if first.in_leap_year() { 366 } else { 365 };
        if !(1..=days).contains(&year_day) {
            return Err("day-of-year out of range");
        }
        let date = first.saturating_add(jiff::SignedDuration::from_hours(
            24 * (i64::from(year_day) - 1),
        ));
        if self.month.is_some_and(|month| month != date.month()) {
            return Err("day-of-year does not match month");
        }
        if self
            .day
            .is_some_and(|day| day != u16::from(date.day().unsigned_abs()))
        {
            return Err("day-of-year does not match day");
        }
        Ok(date)
    }

    fn moment(&self, local: &TimeZone) -> Result<Moment, &'static str> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let time = self.date()?.at(hour, self.minute, self.second, self.nanos);
        let at = |zone: &TimeZone| zone.to_timestamp(time).map_err(|_| "day out of range");
        if self.utc {
            return Ok(Moment::new(at(&TimeZone::UTC)?, TimeZone::UTC));
        }
        if let Some(offset) = self.offset {
            let at = at(&fixed(offset))?;
            let info = local.to_offset_info(at);
            if info.offset().seconds() == offset
                && self
                    .zone
                    .as_ref()
                    .is_none_or(|name| name == info.abbreviation())
            {
                return Ok(Moment::new(at, local.clone()));
            }
            return Ok(Moment {
                at,
                zone: fixed(offset),
                name: Some(self.zone.clone().unwrap_or_default()),
                local: local.clone(),
            });
        }
        let Some(name) = &self.zone else {
            let at = on_clock(local, at(&TimeZone::UTC)?).ok_or("day out of range")?;
            return Ok(Moment::new(at, local.clone()));
        };
        if let Some(offset) = named_offset(local, name, at(&TimeZone::UTC)?) {
            return Ok(Moment::new(at(&fixed(offset))?, local.clone()));
        }
        let hours = name
            .strip_prefix("GMT")
            .and_then(|hours| hours.parse::<i32>().ok())
            .unwrap_or(0);
        Ok(Moment {
            at: at(&fixed(hours * 3600))?,
            zone: fixed(hours * 3600),
            name: Some(name.clone()),
            local: local.clone(),
        })
    }
}

/// The time at which the clocks of a zone show what those of UTC show at another time. What they
/// skip is before the gap or after it, as Go has it.
fn on_clock(zone: &TimeZone, shown: Timestamp) -> Option<Timestamp> {
    let earlier = |by: i32| {
        let by = jiff::SignedDuration::from_secs(i64::from(by));
        shown.checked_sub(by).ok()
    };
    let first = zone.to_offset(shown).seconds();
    let second = zone.to_offset(earlier(first)?).seconds();
    earlier(second)
}

/// The offset of an abbreviation in a zone around a time.
fn named_offset(zone: &TimeZone, name: &str, around: Timestamp) -> Option<i32> {
    [0, 90, 180, 270].into_iter().find_map(|days| {
        let at = around
            .checked_add(jiff::SignedDuration::from_hours(24 * days))
            .ok()?;
        let info = zone.to_offset_info(at);
        (info.abbreviation() == name).then(|| info.offset().seconds())
    })
}

/// The length of an abbreviation such as `CEST`, `GMT+3` or `-03`.
fn zone_length(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_length(rest));
    }
    if text.len() < 3 {
        return None;
    }
    if matches!(text[0], b'+' | b'-') {
        return Some(signed_length(text)).filter(|len| *len > 0);
    }
    match text
        .iter()
        .take(6)
        .take_while(|b| b.is_ascii_uppercase())
        .count()
    {
        5 if text[4] == b'T' => Some(5),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// The length of a sign and hours up to 23.
fn signed_length(text: &[u8]) -> usize {
    let digits = text
        .iter()
        .skip(1)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let hours = text
        .get(1..=digits)
        .and_then(|t| std::str::from_utf8(t).ok())
        .and_then(|t| t.parse::<u32>().ok());
    match (text.first(), hours) {
        (Some(b'+' | b'-'), Some(..=23)) => digits + 1,
        _ => 0,
    }
}
