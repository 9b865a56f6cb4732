//! Functions of numbers.
//!
//! Main value: [`TABLE`].

use super::args::{Out, charge_items, fails, string};
use super::cast::{parse_int, to_float, to_int, to_int64};
use super::decimal::Decimal;
use crate::template::{Call, Error, Function, INT, List, Type, Value, format};

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const TABLE: &[(&str, Function)] = &[
    ("atoi", Function::new(&[Type::String], atoi)),
    (
        "int",
        Function::new(ONE, |call| Ok(Value::int(to_int(call.arg(0))))),
    ),
    (
        "int64",
        Function::new(ONE, |call| Ok(Value::int64(to_int64(call.arg(0))))),
    ),
    (
        "float64",
        Function::new(ONE, |call| Ok(Value::Float(to_float(call.arg(0))))),
    ),
    ("toDecimal", Function::new(ONE, to_decimal)),
    ("seq", Function::variadic(&[INT], seq)),
    ("until", Function::new(&[INT], until)),
    (
        "untilStep",
        Function::new(&[INT, INT, INT], |call| {
            ints(steps(
                call,
                call.integer(0)?,
                call.integer(1)?,
                call.integer(2)?,
            )?)
        }),
    ),
    (
        "add1",
        Function::new(ONE, |call| {
            Ok(Value::int64(to_int64(call.arg(0)).wrapping_add(1)))
        }),
    ),
    (
        "add",
        Function::variadic(ONE, |call| {
            Ok(Value::int64(
                call.rest(0).map(to_int64).fold(0, i64::wrapping_add),
            ))
        }),
    ),
    (
        "sub",
        Function::new(TWO, |call| {
            Ok(Value::int64(
                to_int64(call.arg(0)).wrapping_sub(to_int64(call.arg(1))),
            ))
        }),
    ),
    (
        "mul",
        Function::variadic(TWO, |call| {
            Ok(Value::int64(
                call.rest(0).map(to_int64).fold(1, i64::wrapping_mul),
            ))
        }),
    ),
    (
        "div",
        Function::new(TWO, |call| divided(call, i64::wrapping_div)),
    ),
    (
        "mod",
        Function::new(TWO, |call| divided(call, i64::wrapping_rem)),
    ),
    (
        "add1f",
        Function::new(ONE, |call| {
            decimals(to_float(call.arg(0)), [1.0], |a, b| Ok(a.add(b)))
        }),
    ),
    (
        "addf",
        Function::variadic(ONE, |call| {
            decimals(0.0, call.rest(0).map(to_float), |a, b| Ok(a.add(b)))
        }),
    ),
    (
        "subf",
        Function::variadic(TWO, |call| {
            decimals(to_float(call.arg(0)), call.rest(1).map(to_float), |a, b| {
                Ok(a.sub(b))
            })
        }),
    ),
    (
        "mulf",
        Function::variadic(TWO, |call| {
            decimals(to_float(call.arg(0)), call.rest(1).map(to_float), |a, b| {
                Ok(a.mul(b))
            })
        }),
    ),
    (
        "divf",
        Function::variadic(TWO, |call| {
            decimals(
                to_float(call.arg(0)),
                call.rest(1).map(to_float),
                Decimal::div,
            )
        }),
    ),
    ("max", Function::variadic(TWO, |call| Ok(greatest(call)))),
    (
        "biggest",
        Function::variadic(TWO, |call| Ok(greatest(call))),
    ),
    (
        "min",
        Function::variadic(TWO, |call| {
            Ok(Value::int64(call.rest(0).map(to_int64).min().unwrap_or(0)))
        }),
    ),
    (
        "maxf",
        Function::variadic(TWO, |call| Ok(extreme(call, f64::max))),
    ),
    (
        "minf",
        Function::variadic(TWO, |call| Ok(extreme(call, f64::min))),
    ),
    (
        "ceil",
        Function::new(ONE, |call| Ok(Value::Float(to_float(call.arg(0)).ceil()))),
    ),
    (
        "floor",
        Function::new(ONE, |call| Ok(Value::Float(to_float(call.arg(0)).floor()))),
    ),
    (
        "round",
        Function::variadic(&[Type::Any, INT, Type::Float64], round),
    ),
];

/// Numbers that are too large become the maximum.
fn atoi(call: &mut Call<'_>) -> Out {
    let text = call.text(0)?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Value::int(0));
    }
    let limit = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Ok(Value::int(text.parse().unwrap_or(limit)))
}

/// Parses octal digits.
fn to_decimal(call: &mut Call<'_>) -> Out {
    let text = format::sprint([call.arg(0)])?;
    Ok(Value::int64(
        std::str::from_utf8(&text)
            .ok()
            .and_then(|text| parse_int(text, 8))
            .unwrap_or(0),
    ))
}

/// The numbers from `start` to `stop`, exclusive.
fn steps(call: &Call<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, Error> {
    let down = stop < start;
    if (down && step >= 0) || (!down && step <= 0) || start == stop {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    let size = usize::try_from(count).unwrap_or(usize::MAX);
    charge_items(call.budget(), size)?;
    call.budget().steps(count)?;
    Ok(std::iter::successors(Some(start), |n| n.checked_add(step))
        .take(size)
        .collect())
}

fn ints(numbers: Vec<i64>) -> Out {
    Ok(Value::List(List::of(
        Type::Slice(&INT),
        numbers.into_iter().map(Value::int).collect(),
    )))
}

fn until(call: &mut Call<'_>) -> Out {
    let count = call.integer(0)?;
    ints(steps(call, 0, count, if count < 0 { -1 } else { 1 })?)
}

/// `seq END`, `seq START END` or `seq START STEP END`; the end is inclusive.
fn seq(call: &mut Call<'_>) -> Out {
    let given = (0..call.len())
        .map(|i| call.integer(i))
        .collect::<Result<Vec<i64>, Error>>()?;
    let (start, step, end) = match given[..] {
        [end] => (1, None, end),
        [start, end] => (start, None, end),
        [start, step, end] => (start, Some(step), end),
        _ => return Ok("".into()),
    };
    let direction = if end < start { -1 } else { 1 };
    if end < start && step.is_some_and(|step| step > 0) {
        return Ok("".into());
    }
    let numbers = steps(
        call,
        start,
        end.wrapping_add(direction),
        step.unwrap_or(direction),
    )?;
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    string(call.budget(), texts.join(" "))
}

fn divided(call: &Call<'_>, divide: fn(i64, i64) -> i64) -> Out {
    match to_int64(call.arg(1)) {
        0 => fails("runtime error: integer divide by zero"),
        by => Ok(Value::int64(divide(to_int64(call.arg(0)), by))),
    }
}

fn decimals(
    first: f64,
    rest: impl IntoIterator<Item = f64>,
    apply: fn(&Decimal, &Decimal) -> Result<Decimal, Error>,
) -> Out {
    let mut result = Decimal::from_float(first)?;
    for next in rest {
        result = apply(&result, &Decimal::from_float(next)?)?;
    }
    Ok(Value::Float(result.to_float()))
}

fn greatest(call: &Call<'_>) -> Value {
    Value::int64(call.rest(0).map(to_int64).max().unwrap_or(0))
}

fn extreme(call: &Call<'_>, choose: fn(f64, f64) -> f64) -> Value {
    // In Go, unlike in Rust, the result is NaN if one argument is.
    let both = |a: f64, b: f64| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else {
            choose(a, b)
        }
    };
    Value::Float(call.rest(0).map(to_float).reduce(both).unwrap_or(0.0))
}

fn round(call: &mut Call<'_>) -> Out {
    let up_from = if call.len() > 2 { call.float(2)? } else { 0.5 };
    let places = i32::try_from(call.integer(1)?.clamp(-400, 400)).unwrap_or(0);
    let size = 10_f64.powi(places.abs());
    let power = if places < 0 { 1.0 / size } else { size };
    let digits = power * to_float(call.arg(0));
    let rounded = if digits.fract() >= up_from {
        digits.ceil()
    } else {
        digits.floor()
    };
    Ok(Value::Float(rounded / power))
}
