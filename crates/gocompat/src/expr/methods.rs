//! The methods of times, durations and their parts.
//!
//! Main functions: [`bound`] (a method of a value) and [`of_type`] (what the checker knows of it).

use super::error::ExprError;
use super::types::Ty;
use super::value::{Param, Struct, Value};
use crate::sprig::Moment;
use crate::template::{Error, Function, Type};
use jiff::tz::TimeZone;
use std::rc::Rc;

type Out = Result<Value, ExprError>;

/// A method: its parameters, its result, and its body, which gets the receiver.
pub(super) struct Method {
    name: &'static str,
    pub params: &'static [Param],
    pub result: Ty,
    body: fn(&Value, &[Value]) -> Out,
}

impl Method {
    /// Whether a call that is checked asserts the type of its argument. Other methods get the zero
    /// value for nil, as do calls of what is known only at run time.
    pub fn refuses_nil(&self) -> bool {
        // The library has no typed call for the signature of `Compare`.
        matches!(self.params, [Param::Str | Param::Time | Param::Duration])
            && self.name != "Compare"
    }
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn method(
    name: &'static str,
    params: &'static [Param],
    result: Ty,
    body: fn(&Value, &[Value]) -> Out,
) -> Method {
    Method {
        name,
        params,
        result,
        body,
    }
}

/// A method of a value, bound to it.
pub(super) fn bound(of: &Value, name: &str) -> Option<Value> {
    let table = match of {
        Value::Time(_) => TIME,
        Value::Duration(_) => DURATION,
        Value::Month(_) | Value::Weekday(_) | Value::Location(_) => NAMED,
        Value::Struct(value) => return of_struct(value, name),
        _ => return None,
    };
    let method = table.iter().find(|method| method.name == name)?;
    let receiver = of.clone();
    Some(Value::func(method.params, move |args| {
        (method.body)(&receiver, args)
    }))
}

fn of_struct(value: &Rc<Struct>, name: &str) -> Option<Value> {
    let index = value.methods.iter().position(|(own, _)| *own == name)?;
    let (_, method) = &value.methods[index];
    let (params, owner) = (method.params, value.clone());
    Some(Value::func(params, move |args| {
        (owner.methods[index].1.body)(args)
    }))
}

/// A method of a type.
pub(super) fn of_type(ty: &Ty, name: &str) -> Option<&'static Method> {
    let table = match ty {
        Ty::Time => TIME,
        Ty::Duration => DURATION,
        Ty::Month | Ty::Weekday | Ty::Location => NAMED,
        _ => return None,
    };
    table.iter().find(|method| method.name == name)
}

/// The same for templates.
pub(super) fn template_method(of: &Value, name: &str) -> Option<&'static Function> {
    macro_rules! calls {
        ($($name:literal)*) => {
            match name {
                $($name => {
                    static CALL: Function = Function::variadic(&[Type::Any], |call| {
                        let receiver = super::from_template(call.receiver());
                        let args = call.rest(0).map(super::from_template).collect();
                        match bound(&receiver, $name) {
                            Some(Value::Func(func)) => func
                                .call(args)
                                .map(|value| super::to_template(&value))
                                .map_err(|error| Error::function(error.to_string())),
                            _ => Err(Error::function("no such method")),
                        }
                    });
                    bound(of, $name).map(|_| &CALL)
                })*
                _ => None,
            }
        };
    }
    calls!("Hours" "Minutes" "Seconds" "Milliseconds" "Microseconds" "Nanoseconds" "String"
        "Round" "Truncate" "Abs" "GetParameterValueByName" "GetFileParameterPathByName"
        "Add" "Sub" "AddDate" "Compare" "UTC" "Local" "In" "Location")
}

fn time(value: &Value) -> Result<&Moment, ExprError> {
    match value {
        Value::Time(at) => Ok(at),
        other => Err(ExprError::run(format!("{} is no time", other.go_type()))),
    }
}

fn nanos(value: &Value) -> Result<i64, ExprError> {
    match value {
        Value::Duration(nanos) => Ok(*nanos),
        other => Err(ExprError::run(format!(
            "{} is no duration",
            other.go_type()
        ))),
    }
}

fn civil(value: &Value) -> Result<jiff::civil::DateTime, ExprError> {
    time(value).map(Moment::civil)
}

/// Units since 1970.
fn unix(value: &Value, unit: i128) -> Out {
    let since = time(value)?.at.as_nanosecond().div_euclid(unit);
    Ok(Value::int64(i64::try_from(since).unwrap_or(i64::MAX)))
}

fn text(value: &Value, _: &[Value]) -> Out {
    Ok(super::print::display(value).into())
}

fn integer(args: &[Value], index: usize) -> Result<i64, ExprError> {
    args.get(index).unwrap_or(&Value::Nil).to_int()
}

/// A multiple of the duration, since the year one; rounded up from the half, or down.
fn rounded(value: &Value, args: &[Value], up: bool) -> Out {
    let (at, unit) = (time(value)?, i128::from(nanos(&args[0])?));
    if unit <= 0 {
        return Ok(value.clone());
    }
    let rest = at.since_zero().rem_euclid(unit);
    let by = if up && rest * 2 >= unit {
        unit - rest
    } else {
        -rest
    };
    Ok(Value::Time(at.after(i64::try_from(by).unwrap_or(0))))
}

fn rounded_duration(value: &Value, args: &[Value], up: bool) -> Out {
    let (nanos, unit) = (nanos(value)?, nanos(&args[0])?);
    if unit <= 0 {
        return Ok(value.clone());
    }
    let rest = nanos.wrapping_rem(unit);
    let down = nanos.wrapping_sub(rest);
    let result = if up && rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs() {
        down.saturating_add(unit * rest.signum())
    } else {
        down
    };
    Ok(Value::Duration(result))
}

static TIME: &[Method] = &[
    method("After", &[Param::Time], Ty::Bool, |me, args| {
        Ok((time(me)?.at > time(&args[0])?.at).into())
    }),
    method("Before", &[Param::Time], Ty::Bool, |me, args| {
        Ok((time(me)?.at < time(&args[0])?.at).into())
    }),
    method("Equal", &[Param::Time], Ty::Bool, |me, args| {
        Ok((time(me)?.at == time(&args[0])?.at).into())
    }),
    method("Compare", &[Param::Time], Ty::Int, |me, args| {
        Ok(Value::int(time(me)?.at.cmp(&time(&args[0])?.at) as i64))
    }),
    method("IsZero", &[], Ty::Bool, |me, _| {
        Ok((time(me)?.at == Moment::zero().at).into())
    }),
    method("IsDST", &[], Ty::Bool, |me, _| {
        Ok(time(me)?.is_dst().into())
    }),
    method("Add", &[Param::Duration], Ty::Time, |me, args| {
        Ok(Value::Time(time(me)?.after(nanos(&args[0])?)))
    }),
    method("Sub", &[Param::Time], Ty::Duration, |me, args| {
        Ok(Value::Duration(time(me)?.since(time(&args[0])?)))
    }),
    method(
        "AddDate",
        &[Param::Int, Param::Int, Param::Int],
        Ty::Time,
        |me, args| {
            let (years, months) = (integer(args, 0)?, integer(args, 1)?);
            let moved = time(me)?.add_date(years, months, integer(args, 2)?);
            moved
                .map(Value::Time)
                .ok_or_else(|| ExprError::run("the date is out of range"))
        },
    ),
    method("Year", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.year().into()))
    }),
    method("Month", &[], Ty::Month, |me, _| {
        Ok(Value::Month(civil(me)?.month()))
    }),
    method("Day", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.day().into()))
    }),
    method("Weekday", &[], Ty::Weekday, |me, _| {
        Ok(Value::Weekday(civil(me)?.weekday().to_sunday_zero_offset()))
    }),
    method("YearDay", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.day_of_year().into()))
    }),
    method("Hour", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.hour().into()))
    }),
    method("Minute", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.minute().into()))
    }),
    method("Second", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.second().into()))
    }),
    method("Nanosecond", &[], Ty::Int, |me, _| {
        Ok(Value::int(civil(me)?.subsec_nanosecond().into()))
    }),
    method("Unix", &[], Ty::Int64, |me, _| unix(me, 1_000_000_000)),
    method("UnixMilli", &[], Ty::Int64, |me, _| unix(me, 1_000_000)),
    method("UnixMicro", &[], Ty::Int64, |me, _| unix(me, 1_000)),
    method("UnixNano", &[], Ty::Int64, |me, _| unix(me, 1)),
    method("Format", &[Param::Str], Ty::Str, |me, args| {
        Ok(time(me)?.format(&args[0].as_text()?).into())
    }),
    method("String", &[], Ty::Str, text),
    method("UTC", &[], Ty::Time, |me, _| {
        Ok(Value::Time(time(me)?.in_zone(TimeZone::UTC)))
    }),
    method("Local", &[], Ty::Time, |me, _| {
        Ok(Value::Time(time(me)?.to_local()))
    }),
    method("In", &[Param::Location], Ty::Time, |me, args| {
        match &args[0] {
            Value::Location(zone) => Ok(Value::Time(time(me)?.in_zone(zone.clone()))),
            _ => Err(ExprError::run("time: missing Location in call to Time.In")),
        }
    }),
    method("Location", &[], Ty::Location, |me, _| {
        Ok(Value::Location(time(me)?.zone.clone()))
    }),
    method("Truncate", &[Param::Duration], Ty::Time, |me, args| {
        rounded(me, args, false)
    }),
    method("Round", &[Param::Duration], Ty::Time, |me, args| {
        rounded(me, args, true)
    }),
];

static DURATION: &[Method] = &[
    method("Hours", &[], Ty::Float, |me, _| {
        Ok(Value::Float(parts(nanos(me)?, 3_600_000_000_000)))
    }),
    method("Minutes", &[], Ty::Float, |me, _| {
        Ok(Value::Float(parts(nanos(me)?, 60_000_000_000)))
    }),
    method("Seconds", &[], Ty::Float, |me, _| {
        Ok(Value::Float(parts(nanos(me)?, 1_000_000_000)))
    }),
    method("Milliseconds", &[], Ty::Int64, |me, _| {
        Ok(Value::int64(nanos(me)? / 1_000_000))
    }),
    method("Microseconds", &[], Ty::Int64, |me, _| {
        Ok(Value::int64(nanos(me)? / 1_000))
    }),
    method("Nanoseconds", &[], Ty::Int64, |me, _| {
        Ok(Value::int64(nanos(me)?))
    }),
    method("String", &[], Ty::Str, text),
    method("Truncate", &[Param::Duration], Ty::Duration, |me, args| {
        rounded_duration(me, args, false)
    }),
    method("Round", &[Param::Duration], Ty::Duration, |me, args| {
        rounded_duration(me, args, true)
    }),
    method("Abs", &[], Ty::Duration, |me, _| {
        Ok(Value::Duration(nanos(me)?.saturating_abs()))
    }),
];

/// Whole units, and the rest as a fraction.
fn parts(nanos: i64, unit: i64) -> f64 {
    (nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64
}

/// Months, days of the week and locations.
static NAMED: &[Method] = &[method("String", &[], Ty::Str, text)];
