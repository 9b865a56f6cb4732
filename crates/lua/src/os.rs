//! `os.time` and `os.date`, in UTC, for the time at which the run began. The directives are Argo
//! CD's, including its quirks.

use crate::{
    call::{Answer, Args, Fault},
    number as numbers,
};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use mlua::{Table, Value};

pub fn time(args: &Args<'_>) -> Result<Answer, Fault> {
    let Value::Table(fields) = args.get(1) else {
        return Ok(vec![number(args.meter.now().as_second())]);
    };
    let field = |name: &str, default: i64| match fields.raw_get::<Value>(name) {
        Ok(Value::Number(n)) => n as i64,
        Ok(Value::Integer(n)) => n,
        // Such as a capture of `string.match`.
        Ok(Value::String(text)) => match numbers::parse(&text.as_bytes(), None) {
            Some(n) => n as i64,
            None => default,
        },
        _ => default,
    };
    let clock = field("hour", 12)
        .saturating_mul(3600)
        .saturating_add(field("min", 0).saturating_mul(60))
        .saturating_add(field("sec", 0));
    let days = days_since_epoch(field("year", -1), field("month", -1), field("day", -1));
    Ok(vec![number(
        days.saturating_mul(86_400).saturating_add(clock),
    )])
}

/// Days from 1970 to a date; months and days outside their range carry over.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year =
        year.clamp(-1_000_000, 1_000_000) + (month.clamp(-1_000_000, 1_000_000) - 1).div_euclid(12);
    let month = (month.clamp(-1_000_000, 1_000_000) - 1).rem_euclid(12);
    // Years start in March here, so that the leap day is the last day of a year.
    let (year, month) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let before = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5;
    before + day.clamp(-1_000_000_000, 1_000_000_000) - 1 - 719_468
}

fn number(n: i64) -> Value {
    Value::Number(n as f64)
}

pub fn date(args: &Args<'_>) -> Result<Answer, Fault> {
    let format = if args.is_none(1) {
        b"%c".to_vec()
    } else {
        args.bytes(1)?
    };
    let format = format.strip_prefix(b"!").unwrap_or(&format);
    let when = if args.is_none(2) {
        args.meter.now()
    } else {
        Timestamp::from_second(args.number(2)? as i64)
            .map_err(|_| Fault::text("time is out of range".into()))?
    };
    let when = when.to_zoned(TimeZone::UTC).datetime();
    if format.starts_with(b"*t") {
        return Ok(vec![Value::Table(table(args, when)?)]);
    }
    args.charge(format.len() as u64)?;
    args.text(&written(format, when))
}

fn table(args: &Args<'_>, when: DateTime) -> Result<Table, Fault> {
    let table = args.lua.create_table()?;
    let fields = [
        ("year", i64::from(when.year())),
        ("month", when.month().into()),
        ("day", when.day().into()),
        ("hour", when.hour().into()),
        ("min", when.minute().into()),
        ("sec", when.second().into()),
        (
            "wday",
            i64::from(when.weekday().to_sunday_zero_offset()) + 1,
        ),
        ("yday", 0),
    ];
    for (name, value) in fields {
        table.raw_set(name, value)?;
    }
    table.raw_set("isdst", false)?;
    Ok(table)
}

fn written(format: &[u8], when: DateTime) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = format.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        match rest.next() {
            Some(b'%') => out.push(b'%'),
            Some(b'w') => out.extend(
                when.weekday()
                    .to_sunday_zero_offset()
                    .to_string()
                    .into_bytes(),
            ),
            Some(name) => match directive(*name) {
                Some(pattern) => out.extend(
                    when.to_zoned(TimeZone::UTC)
                        .map(|z| z.strftime(pattern).to_string())
                        .unwrap_or_default()
                        .into_bytes(),
                ),
                None => out.extend_from_slice(&[b'%', *name]),
            },
            None => {}
        }
    }
    out
}

fn directive(name: u8) -> Option<&'static str> {
    Some(match name {
        // Not a mistake: these are the values that scripts get in Argo CD.
        b'a' => "mon",
        b'x' => "%H/%M/%S",
        b'A' => "%A",
        b'b' => "%b",
        b'B' => "%B",
        b'c' => "%d %b %y %H:%M UTC",
        b'd' => "%d",
        b'F' => "%Y-%m-%d",
        b'H' => "%H",
        b'I' => "%I",
        b'm' => "%m",
        b'M' => "%M",
        b'p' => "%p",
        b'P' => "%P",
        b'S' => "%S",
        b'X' => "%H:%M:%S",
        b'y' => "%y",
        b'Y' => "%Y",
        b'z' => "+0000",
        b'Z' => "UTC",
        _ => return None,
    })
}
