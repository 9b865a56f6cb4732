//! Functions of dates and durations, using the caller's clock and local zone.
//!
//! Main function: [`table`].

mod layout;
mod moment;
mod parse;

use super::Host;
use super::args::{Out, fails};
use crate::duration;
use crate::template::{Call, Error, Function, IntKind, Type, Value};
use jiff::{Timestamp, tz::TimeZone};
pub(crate) use layout::{DAYS, MONTHS};
pub use moment::Moment;
pub(super) use moment::TYPE;
use moment::argument;

const DATED: &[Type] = &[Type::String, Type::Any];
const MODIFY: &[Type] = &[Type::String, TYPE];
const SECOND: i64 = 1_000_000_000;

/// `time.LoadLocation`: the empty name is UTC. `None` for a name that does not exist.
pub(crate) fn zone(name: &str, local: &TimeZone) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        "Local" => Some(local.clone()),
        name => TimeZone::get(name).ok(),
    }
}

/// The name of a zone.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or("Local").to_owned()
}

/// What is wrong with a text in a layout.
pub(super) fn check(layout: &str, text: &str) -> Result<(), String> {
    parse::parse(layout, text, &TimeZone::UTC).map(drop)
}

pub(super) const fn table<H: Host>() -> [(&'static str, Function); 16] {
    [
        (
            "now",
            Function::new(&[], |call| Ok(now::<H>(call)?.value())),
        ),
        (
            "date",
            Function::new(DATED, |call| shown::<H>(call, None, 1, None)),
        ),
        (
            "dateInZone",
            Function::new(&[Type::String, Type::Any, Type::String], |call| {
                shown::<H>(call, None, 1, Some(2))
            }),
        ),
        (
            "date_in_zone",
            Function::new(&[Type::String, Type::Any, Type::String], |call| {
                shown::<H>(call, None, 1, Some(2))
            }),
        ),
        (
            "htmlDate",
            Function::new(&[Type::Any], |call| {
                shown::<H>(call, Some("2006-01-02"), 0, None)
            }),
        ),
        (
            "htmlDateInZone",
            Function::new(&[Type::Any, Type::String], |call| {
                shown::<H>(call, Some("2006-01-02"), 0, Some(1))
            }),
        ),
        (
            "dateModify",
            Function::new(MODIFY, |call| {
                Ok(modified(call).unwrap_or(argument(call, 1)?).value())
            }),
        ),
        (
            "date_modify",
            Function::new(MODIFY, |call| {
                Ok(modified(call).unwrap_or(argument(call, 1)?).value())
            }),
        ),
        (
            "mustDateModify",
            Function::new(MODIFY, |call| modified(call).map(Moment::value)),
        ),
        (
            "must_date_modify",
            Function::new(MODIFY, |call| modified(call).map(Moment::value)),
        ),
        (
            "toDate",
            Function::new(&[Type::String, Type::String], |call| {
                Ok(read::<H>(call)?.unwrap_or_else(|_| Moment::zero()).value())
            }),
        ),
        (
            "mustToDate",
            Function::new(&[Type::String, Type::String], |call| {
                read::<H>(call)?.map(Moment::value).or_else(fails)
            }),
        ),
        (
            "unixEpoch",
            Function::new(&[TYPE], |call| {
                Ok(argument(call, 0)?
                    .at
                    .as_nanosecond()
                    .div_euclid(SECOND.into())
                    .to_string()
                    .into())
            }),
        ),
        ("ago", Function::new(&[Type::Any], ago::<H>)),
        ("duration", Function::new(&[Type::Any], seconds)),
        ("durationRound", Function::new(&[Type::Any], rounded::<H>)),
    ]
}

fn local<H: Host>(call: &mut Call<'_>) -> Result<TimeZone, Error> {
    Ok((call.host::<H>()?.sources().zone)())
}

fn now<H: Host>(call: &mut Call<'_>) -> Result<Moment, Error> {
    let sources = call.host::<H>()?.sources();
    Ok(Moment::new(sources.now, (sources.zone)()))
}

/// A time, or seconds since 1970 as one of three integer types; any other value means now.
fn moment<H: Host>(call: &mut Call<'_>, index: usize) -> Result<Moment, Error> {
    let zone = local::<H>(call)?;
    match call.arg(index) {
        Value::Int(IntKind::Int | IntKind::Int32 | IntKind::Int64, seconds) => {
            match Timestamp::from_second(*seconds) {
                Ok(at) => Ok(Moment::new(at, zone)),
                Err(_) => fails("the date is out of range"),
            }
        }
        value => match Moment::of(value) {
            Some(moment) => Ok(moment.clone()),
            None => now::<H>(call),
        },
    }
}

/// A date in a layout, in the local or the named zone; an unknown name means UTC.
fn shown<H: Host>(
    call: &mut Call<'_>,
    layout: Option<&str>,
    index: usize,
    zone: Option<usize>,
) -> Out {
    let moment = moment::<H>(call, index)?;
    let name = zone.map_or(Ok("Local".into()), |zone| {
        call.text(zone).map(std::borrow::Cow::into_owned)
    })?;
    let zone = match name.as_str() {
        "Local" => local::<H>(call)?,
        "" => TimeZone::UTC,
        name => TimeZone::get(name).unwrap_or(TimeZone::UTC),
    };
    let layout = layout.map_or_else(|| call.text(0), |layout| Ok(layout.into()))?;
    call.budget().memory(layout.len())?;
    Ok(layout::format(&moment.in_zone(zone), &layout).into())
}

fn modified(call: &Call<'_>) -> Result<Moment, Error> {
    let nanos = duration::parse(&call.text(0)?).map_err(|e| Error::function(e.to_string()))?;
    Ok(argument(call, 1)?.after(nanos))
}

fn read<H: Host>(call: &mut Call<'_>) -> Result<Result<Moment, String>, Error> {
    let zone = local::<H>(call)?;
    Ok(Moment::parse(&call.text(0)?, &call.text(1)?, &zone))
}

/// How long ago a time is, in whole seconds. Only two integer types count as seconds since 1970.
fn ago<H: Host>(call: &mut Call<'_>) -> Out {
    let then = match call.arg(0) {
        Value::Int(IntKind::Int32, _) => now::<H>(call)?,
        _ => moment::<H>(call, 0)?,
    };
    let nanos = now::<H>(call)?.since(&then);
    let rest = nanos % SECOND;
    let whole = nanos - rest;
    let up = if rest.abs() * 2 >= SECOND {
        SECOND * rest.signum()
    } else {
        0
    };
    Ok(duration::to_string(whole.saturating_add(up)).into())
}

fn seconds(call: &mut Call<'_>) -> Out {
    let seconds = match call.arg(0) {
        Value::String(text) => {
            let text = text.to_str();
            let clamped = if text.starts_with('-') {
                i64::MIN
            } else {
                i64::MAX
            };
            let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
            let number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if number {
                text.parse().unwrap_or(clamped)
            } else {
                0
            }
        }
        Value::Int(IntKind::Int64, seconds) => *seconds,
        _ => 0,
    };
    Ok(duration::to_string(seconds.wrapping_mul(SECOND)).into())
}

/// The largest unit of a duration.
fn rounded<H: Host>(call: &mut Call<'_>) -> Out {
    let nanos = match call.arg(0) {
        Value::String(text) => duration::parse(&text.to_str()).unwrap_or(0),
        Value::Int(IntKind::Int64, nanos) => *nanos,
        value => match Moment::of(value).cloned() {
            Some(then) => now::<H>(call)?.since(&then),
            None => 0,
        },
    };
    let size = nanos.unsigned_abs();
    let hour = 3600 * SECOND.unsigned_abs();
    let units = [
        (365 * 24 * hour, "y"),
        (30 * 24 * hour, "mo"),
        (24 * hour, "d"),
        (hour, "h"),
        (hour / 60, "m"),
        (hour / 3600, "s"),
    ];
    let unit = units.iter().find(|(length, _)| size > *length);
    Ok(unit
        .map_or("0s".into(), |(length, name)| {
            format!("{}{name}", size / length)
        })
        .into())
}
