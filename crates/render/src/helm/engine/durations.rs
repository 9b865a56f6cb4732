//! Duration functions that Helm added after 4.2: `durationSeconds` and the like. Anything that is
//! not a duration counts as zero.
//!
//! Main value: [`TABLE`].

use std::rc::Rc;
use tiphys_gocompat::duration;
use tiphys_gocompat::template::{Call, Error, Function, INT64, Named, Object, Type, Value};

const SECOND: i64 = 1_000_000_000;
const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "durationNanoseconds",
        Function::new(ONE, |call| Ok(Value::int64(nanos(call.arg(0))))),
    ),
    (
        "durationMicroseconds",
        Function::new(ONE, |call| Ok(Value::int64(nanos(call.arg(0)) / 1000))),
    ),
    (
        "durationMilliseconds",
        Function::new(ONE, |call| Ok(Value::int64(nanos(call.arg(0)) / 1_000_000))),
    ),
    (
        "durationSeconds",
        Function::new(ONE, |call| Ok(units(call, SECOND))),
    ),
    (
        "durationMinutes",
        Function::new(ONE, |call| Ok(units(call, 60 * SECOND))),
    ),
    (
        "durationHours",
        Function::new(ONE, |call| Ok(units(call, 3600 * SECOND))),
    ),
    (
        "durationDays",
        Function::new(ONE, |call| Ok(units(call, 24 * 3600 * SECOND))),
    ),
    (
        "durationWeeks",
        Function::new(ONE, |call| Ok(units(call, 7 * 24 * 3600 * SECOND))),
    ),
    (
        "durationRoundTo",
        Function::new(TWO, |call| stepped(call, true)),
    ),
    (
        "durationTruncateTo",
        Function::new(TWO, |call| stepped(call, false)),
    ),
];

static DURATION: Named = Named {
    name: "time.Duration",
    underlying: Some(INT64),
};

/// `time.Duration`, in nanoseconds.
pub struct Duration(pub i64);

impl Object for Duration {
    fn go_type(&self) -> Type {
        Type::Named(&DURATION)
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::int64(self.0))
    }

    fn text(&self) -> Option<String> {
        Some(duration::to_string(self.0))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A number, or a text that is one, counts as seconds.
fn nanos(value: &Value) -> i64 {
    match value {
        Value::Object(object) => object
            .as_any()
            .downcast_ref::<Duration>()
            .map_or(0, |d| d.0),
        Value::Int(_, seconds) => seconds.checked_mul(SECOND).unwrap_or(0),
        Value::Uint(_, seconds) => i64::try_from(*seconds)
            .ok()
            .and_then(|s| s.checked_mul(SECOND))
            .unwrap_or(0),
        Value::Float(seconds) => from_float(*seconds),
        Value::String(text) => {
            let text = text.to_str();
            let text = text.trim();
            duration::parse(text).unwrap_or_else(|_| text.parse().map_or(0, from_float))
        }
        _ => 0,
    }
}

fn from_float(seconds: f64) -> i64 {
    let nanos = seconds * SECOND as f64;
    // The largest float below 2^63.
    if nanos.abs() <= 9_223_372_036_854_774_784.0 {
        nanos as i64
    } else {
        0
    }
}

fn units(call: &Call<'_>, unit: i64) -> Value {
    let nanos = nanos(call.arg(0));
    Value::Float((nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64)
}

/// Rounds to a multiple of a step; with `nearest`, half a step or more rounds away from zero.
/// Without a step the value is unchanged.
fn stepped(call: &mut Call<'_>, nearest: bool) -> Result<Value, Error> {
    let (nanos, step) = (nanos(call.arg(0)), nanos(call.arg(1)));
    let mut out = nanos;
    if step > 0 {
        let rest = nanos % step;
        out = nanos - rest;
        if nearest && i128::from(rest).abs() * 2 >= i128::from(step) {
            out = out.saturating_add(step * rest.signum());
        }
    }
    Ok(Value::Object(Rc::new(Duration(out))))
}
