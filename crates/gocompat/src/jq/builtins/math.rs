//! Functions of numbers. All compute with floats, as in gojq.
//!
//! Main value: [`TABLE`].

use super::{Native, refuses};
use crate::jq::{fault::Out, number::as_float, value::Val};
use crate::power::pow;

type Args<'v> = &'v [Val];

pub const TABLE: &[Native] = &[
    Native::flat("floor", 0, |_, v, _| one("floor", v, f64::floor)),
    Native::flat("ceil", 0, |_, v, _| one("ceil", v, f64::ceil)),
    Native::flat("round", 0, |_, v, _| one("round", v, f64::round)),
    Native::flat("trunc", 0, |_, v, _| one("trunc", v, f64::trunc)),
    Native::flat("rint", 0, |_, v, _| one("rint", v, f64::round_ties_even)),
    Native::flat("nearbyint", 0, |_, v, _| {
        one("nearbyint", v, f64::round_ties_even)
    }),
    Native::flat("fabs", 0, |_, v, _| one("fabs", v, f64::abs)),
    Native::flat("sqrt", 0, |_, v, _| one("sqrt", v, f64::sqrt)),
    Native::flat("cbrt", 0, |_, v, _| one("cbrt", v, f64::cbrt)),
    Native::flat("exp", 0, |_, v, _| one("exp", v, f64::exp)),
    Native::flat("exp2", 0, |_, v, _| one("exp2", v, f64::exp2)),
    Native::flat("exp10", 0, |_, v, _| one("exp10", v, |x| pow(10.0, x))),
    Native::flat("expm1", 0, |_, v, _| one("expm1", v, f64::exp_m1)),
    Native::flat("log", 0, |_, v, _| one("log", v, f64::ln)),
    Native::flat("log2", 0, |_, v, _| one("log2", v, f64::log2)),
    Native::flat("log10", 0, |_, v, _| one("log10", v, f64::log10)),
    Native::flat("log1p", 0, |_, v, _| one("log1p", v, f64::ln_1p)),
    Native::flat("sin", 0, |_, v, _| one("sin", v, f64::sin)),
    Native::flat("cos", 0, |_, v, _| one("cos", v, f64::cos)),
    Native::flat("tan", 0, |_, v, _| one("tan", v, f64::tan)),
    Native::flat("asin", 0, |_, v, _| one("asin", v, f64::asin)),
    Native::flat("acos", 0, |_, v, _| one("acos", v, f64::acos)),
    Native::flat("atan", 0, |_, v, _| one("atan", v, f64::atan)),
    Native::flat("sinh", 0, |_, v, _| one("sinh", v, f64::sinh)),
    Native::flat("cosh", 0, |_, v, _| one("cosh", v, f64::cosh)),
    Native::flat("tanh", 0, |_, v, _| one("tanh", v, f64::tanh)),
    Native::flat("asinh", 0, |_, v, _| one("asinh", v, f64::asinh)),
    Native::flat("acosh", 0, |_, v, _| one("acosh", v, f64::acosh)),
    Native::flat("atanh", 0, |_, v, _| one("atanh", v, f64::atanh)),
    Native::flat("significand", 0, |_, v, _| {
        one("significand", v, |x| parts(x).0 * 2.0)
    }),
    Native::flat("logb", 0, |_, v, _| one("logb", v, exponent)),
    Native::flat("frexp", 0, |_, v, _| match as_float(v) {
        Some(x) => Ok(Val::list(vec![
            Val::Float(parts(x).0),
            Val::Int(parts(x).1),
        ])),
        None => refuses("frexp", v),
    }),
    Native::flat("modf", 0, |_, v, _| match as_float(v) {
        Some(x) if x.is_infinite() => {
            Ok(Val::list(vec![Val::Float(0f64.copysign(x)), Val::Float(x)]))
        }
        Some(x) => Ok(Val::list(vec![
            Val::Float(x.fract()),
            Val::Float(x.trunc()),
        ])),
        None => refuses("modf", v),
    }),
    Native::flat("pow", 2, |_, _, a| two("pow", a, pow)),
    Native::flat("atan2", 2, |_, _, a| two("atan2", a, f64::atan2)),
    Native::flat("copysign", 2, |_, _, a| two("copysign", a, f64::copysign)),
    Native::flat("fmod", 2, |_, _, a| two("fmod", a, |x, y| x % y)),
    Native::flat("hypot", 2, |_, _, a| two("hypot", a, f64::hypot)),
    Native::flat("fdim", 2, |_, _, a| {
        two("fdim", a, |x, y| {
            if x.is_nan() || y.is_nan() {
                f64::NAN
            } else {
                (x - y).max(0.0)
            }
        })
    }),
    Native::flat("fmax", 2, |_, _, a| two("fmax", a, f64::max)),
    Native::flat("fmin", 2, |_, _, a| two("fmin", a, f64::min)),
    Native::flat("drem", 2, |_, _, a| {
        two("drem", a, |x, y| {
            Some(remainder(x, y))
                .filter(|r| *r != 0.0)
                .unwrap_or(0f64.copysign(x))
        })
    }),
    Native::flat("remainder", 2, |_, _, a| two("remainder", a, remainder)),
    Native::flat("ldexp", 2, |_, _, a| two("ldexp", a, scale)),
    Native::flat("scalb", 2, |_, _, a| two("scalb", a, scale)),
    Native::flat("scalbln", 2, |_, _, a| two("scalbln", a, scale)),
    Native::flat("nextafter", 2, |_, _, a| two("nextafter", a, next_after)),
    Native::flat("nexttoward", 2, |_, _, a| two("nexttoward", a, next_after)),
    Native::flat("fma", 3, |_, _, a| {
        match (as_float(&a[0]), as_float(&a[1]), as_float(&a[2])) {
            (Some(x), Some(y), Some(z)) => Ok(Val::Float(x.mul_add(y, z))),
            _ => refuses("fma", a.iter().find(|v| !v.is_number()).unwrap_or(&a[0])),
        }
    }),
    Native::flat("infinite", 0, |_, _, _| Ok(Val::Float(f64::INFINITY))),
    Native::flat("nan", 0, |_, _, _| Ok(Val::Float(f64::NAN))),
    Native::flat("isfinite", 0, |_, v, _| {
        Ok(as_float(v).is_some_and(|x| !x.is_infinite()).into())
    }),
    Native::flat("isinfinite", 0, |_, v, _| {
        Ok(as_float(v).is_some_and(f64::is_infinite).into())
    }),
    Native::flat("isnormal", 0, |_, v, _| {
        Ok(as_float(v).is_some_and(f64::is_normal).into())
    }),
    Native::flat("isnan", 0, |_, v, _| match (v, as_float(v)) {
        (_, Some(x)) => Ok(x.is_nan().into()),
        (Val::Null, _) => Ok(false.into()),
        _ => refuses("isnan", v),
    }),
];

fn one(name: &str, value: &Val, compute: fn(f64) -> f64) -> Out {
    as_float(value).map_or_else(|| refuses(name, value), |x| Ok(Val::Float(compute(x))))
}

fn two(name: &str, arguments: Args<'_>, compute: fn(f64, f64) -> f64) -> Out {
    match (as_float(&arguments[0]), as_float(&arguments[1])) {
        (Some(x), Some(y)) => Ok(Val::Float(compute(x, y))),
        (None, _) => refuses(name, &arguments[0]),
        _ => refuses(name, &arguments[1]),
    }
}

/// A fraction between a half and one, and the exponent of two it is multiplied with.
fn parts(x: f64) -> (f64, i64) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Subnormal numbers are normalized first.
    let (x, shift) = if x.is_normal() {
        (x, 0)
    } else {
        (x * 2f64.powi(54), -54)
    };
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1022;
    (
        f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52),
        exponent + shift,
    )
}

fn exponent(x: f64) -> f64 {
    match x {
        0.0 => f64::NEG_INFINITY,
        x if x.is_nan() => x,
        x if x.is_infinite() => f64::INFINITY,
        x => (parts(x).1 - 1) as f64,
    }
}

fn scale(x: f64, by: f64) -> f64 {
    let mut by = by as i64;
    let mut x = x;
    while by != 0 && x != 0.0 && x.is_finite() {
        let step = by.clamp(-1000, 1000);
        x *= 2f64.powi(step as i32);
        by -= step;
    }
    x
}

/// The remainder of the division whose quotient is rounded to the nearest.
fn remainder(x: f64, y: f64) -> f64 {
    if y.is_infinite() && x.is_finite() {
        return x;
    }
    let size = y.abs();
    let rest = (x % (2.0 * size)).abs();
    let rest = match rest {
        rest if 2.0 * rest >= 3.0 * size => rest - 2.0 * size,
        rest if 2.0 * rest > size => rest - size,
        rest => rest,
    };
    if x.is_sign_negative() { -rest } else { rest }
}

fn next_after(x: f64, towards: f64) -> f64 {
    match x.partial_cmp(&towards) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Less) => x.next_up(),
        Some(std::cmp::Ordering::Greater) => x.next_down(),
        Some(std::cmp::Ordering::Equal) => x,
    }
}
