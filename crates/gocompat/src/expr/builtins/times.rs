//! Functions of times.

use super::super::error::ExprError;
use super::super::eval::Clock;
use super::super::value::Value;
use super::{Builtin, Out, arg, fails};
use crate::duration;
use crate::sprig::{Moment, zone};
use jiff::tz::TimeZone;

/// The layouts that `date` tries, in order.
const LAYOUTS: &[&str] = &[
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    "2006-01-02T15:04:05Z07:00",
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
];

pub(super) fn call(function: Builtin, args: &[Value], clock: &Clock) -> Out {
    match function {
        Builtin::Now => {
            let zone = match arg(args, 0) {
                Value::Location(zone) => zone.clone(),
                _ => clock.zone.clone(),
            };
            let now = Moment::new(clock.now, zone);
            Ok(Value::Time(now.with_local(clock.zone.clone())))
        }
        Builtin::Duration => duration::parse(&arg(args, 0).as_text()?)
            .map(Value::Duration)
            .map_err(|error| ExprError::run(error.to_string())),
        Builtin::Timezone => located(&arg(args, 0).as_text()?, clock).map(Value::Location),
        _ => date(args, clock).map(|at| Value::Time(at.with_local(clock.zone.clone()))),
    }
}

fn located(name: &str, clock: &Clock) -> Out<TimeZone> {
    zone(name, &clock.zone).ok_or_else(|| ExprError::run(format!("unknown time zone {name}")))
}

/// `date([zone,] text [, layout [, zone]])`
fn date(args: &[Value], clock: &Clock) -> Out<Moment> {
    let (mut zone, mut args) = (None, args);
    if let Some((Value::Location(first), rest)) = args.split_first() {
        zone = Some(first.clone());
        args = rest;
    }
    if args.is_empty() {
        return fails("runtime error: index out of range [0] with length 0");
    }
    let text = arg(args, 0).as_text()?;
    let read = |layout: &str, zone: &TimeZone| Moment::parse(layout, &text, zone);
    if args.len() == 2 || args.len() == 3 {
        let layout = args[1].as_text()?;
        let zone = match args.get(2) {
            Some(name) => located(&name.as_text()?, clock)?,
            None => zone.unwrap_or(TimeZone::UTC),
        };
        return read(&layout, &zone).map_err(ExprError::run);
    }
    let zone = zone.unwrap_or(TimeZone::UTC);
    let found = LAYOUTS.iter().find_map(|layout| read(layout, &zone).ok());
    found.ok_or_else(|| ExprError::run(format!("invalid date {text}")))
}
