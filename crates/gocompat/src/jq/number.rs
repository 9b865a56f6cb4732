//! Arithmetic as in gojq: integers of any size, floats for the rest; and the operators on texts,
//! lists and maps.
//!
//! Main functions: [`add`], [`subtract`], [`multiply`], [`divide`], [`modulo`], [`parse`].

use super::{
    fault::{Out, fail},
    text::{described, preview},
    value::{Map, Val, order},
};
use num_bigint::BigInt;
use std::sync::Arc;

/// Maximum size of an integer, in bits. Larger ones become floats.
const MAX_BITS: u64 = 1 << 16;
/// Longest text that a repetition may create.
const MAX_REPEATED: u64 = i32::MAX as u64;

/// The number as a float; NaN if it is not a number.
pub fn float(value: &Val) -> f64 {
    match value {
        Val::Int(n) => *n as f64,
        Val::Float(f) => *f,
        Val::Big(n) => big_float(n),
        _ => f64::NAN,
    }
}

pub fn as_float(value: &Val) -> Option<f64> {
    value.is_number().then(|| float(value))
}

pub fn big_float(n: &BigInt) -> f64 {
    n.to_string().parse().unwrap_or(f64::INFINITY)
}

/// The number as an integer: truncated, and clamped to the range.
pub fn as_int(value: &Val) -> Option<i64> {
    match value {
        Val::Int(n) => Some(*n),
        Val::Float(f) if f.is_nan() => Some(i64::MIN),
        Val::Float(f) => Some(*f as i64),
        Val::Big(n) => Some(if **n > BigInt::ZERO {
            i64::MAX
        } else {
            i64::MIN
        }),
        _ => None,
    }
}

pub fn as_int_up(value: &Val) -> Option<i64> {
    match value {
        Val::Float(f) => as_int(&Val::Float(f.ceil())),
        value => as_int(value),
    }
}

pub fn big(n: BigInt) -> Val {
    match i64::try_from(&n) {
        Ok(n) => Val::Int(n),
        Err(_) if n.bits() > MAX_BITS => Val::Float(big_float(&n)),
        Err(_) => Val::Big(Arc::new(n)),
    }
}

fn whole(value: &Val) -> Option<BigInt> {
    match value {
        Val::Int(n) => Some((*n).into()),
        Val::Big(n) => Some((**n).clone()),
        _ => None,
    }
}

/// Parses a number as written in a program or in JSON.
pub fn parse(text: &str) -> Option<Val> {
    if let Ok(n) = text.parse::<i64>() {
        return Some(Val::Int(n));
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse().ok().map(Val::Float);
    }
    text.parse::<BigInt>().ok().map(big)
}

/// The four operators on numbers: exact if possible, else as floats.
fn numeric(
    l: &Val,
    r: &Val,
    small: fn(i64, i64) -> Option<i64>,
    large: fn(BigInt, BigInt) -> BigInt,
    float_op: fn(f64, f64) -> f64,
) -> Option<Val> {
    match (l, r) {
        (Val::Int(a), Val::Int(b)) => Some(match small(*a, *b) {
            Some(n) => Val::Int(n),
            None => big(large((*a).into(), (*b).into())),
        }),
        (Val::Float(_), _) | (_, Val::Float(_)) => {
            Some(Val::Float(float_op(as_float(l)?, as_float(r)?)))
        }
        _ => Some(big(large(whole(l)?, whole(r)?))),
    }
}

fn mismatch(verb: &str, l: &Val, r: &Val) -> Out {
    fail(format!(
        "cannot {verb}: {} and {}",
        described(l),
        described(r)
    ))
}

pub fn add(l: &Val, r: &Val) -> Out {
    if let Some(sum) = numeric(l, r, i64::checked_add, |a, b| a + b, |a, b| a + b) {
        return Ok(sum);
    }
    Ok(match (l, r) {
        (Val::Null, other) | (other, Val::Null) => other.clone(),
        (Val::Text(a), Val::Text(b)) => Val::text([&**a, &**b].concat()),
        (Val::List(a), Val::List(_)) if a.items.is_empty() => r.clone(),
        (Val::List(_), Val::List(b)) if b.items.is_empty() => l.clone(),
        (Val::List(a), Val::List(b)) => Val::list([&a.items[..], &b.items[..]].concat()),
        (Val::Map(a), Val::Map(_)) if a.items.is_empty() => r.clone(),
        (Val::Map(_), Val::Map(b)) if b.items.is_empty() => l.clone(),
        (Val::Map(a), Val::Map(b)) => {
            let mut items = a.items.clone();
            items.extend(b.items.iter().map(|(k, v)| (k.clone(), v.clone())));
            Val::map(items)
        }
        _ => return mismatch("add", l, r),
    })
}

pub fn subtract(l: &Val, r: &Val) -> Out {
    if let Some(difference) = numeric(l, r, i64::checked_sub, |a, b| a - b, |a, b| a - b) {
        return Ok(difference);
    }
    match (l.as_list(), r.as_list()) {
        (Some(a), Some(b)) => Ok(Val::list(
            a.iter()
                .filter(|x| !b.iter().any(|y| order(x, y).is_eq()))
                .cloned()
                .collect(),
        )),
        _ => mismatch("subtract", l, r),
    }
}

pub fn multiply(l: &Val, r: &Val) -> Out {
    if let Some(product) = numeric(l, r, i64::checked_mul, |a, b| a * b, |a, b| a * b) {
        return Ok(product);
    }
    match (l, r) {
        (Val::Map(a), Val::Map(b)) => Ok(Val::map(merged(&a.items, &b.items))),
        (Val::Text(text), times) | (times, Val::Text(text)) if times.is_number() => {
            repeat(text, float(times))
        }
        _ => mismatch("multiply", l, r),
    }
}

fn merged(a: &Map, b: &Map) -> Map {
    let mut all = a.clone();
    for (key, value) in b {
        let value = match (a.get(key), value) {
            (Some(Val::Map(x)), Val::Map(y)) => Val::map(merged(&x.items, &y.items)),
            _ => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    all
}

fn repeat(text: &Arc<str>, times: f64) -> Out {
    if times < 0.0 || times.is_nan() {
        return Ok(Val::Null);
    }
    let count = times.min(f64::from(i32::MAX)) as u64;
    if text.len() as u64 * count >= MAX_REPEATED {
        let (text, times) = (
            preview(&Val::Text(text.clone())),
            preview(&Val::Float(times)),
        );
        return fail(format!("repeat string result too large: {text} * {times}"));
    }
    Ok(Val::text(text.repeat(count as usize)))
}

/// The length of the text that a multiplication would create.
pub fn repeated_length(l: &Val, r: &Val) -> u64 {
    match (l, r) {
        (Val::Text(text), times) | (times, Val::Text(text)) if times.is_number() => {
            text.len() as u64 * float(times).max(0.0) as u32 as u64
        }
        _ => 0,
    }
}

pub fn divide(l: &Val, r: &Val) -> Out {
    match (l, r) {
        (Val::Text(text), Val::Text(_)) if text.is_empty() => return Ok(Val::list(Vec::new())),
        (Val::Text(text), Val::Text(separator)) => return Ok(split(text, separator)),
        _ if !l.is_number() || !r.is_number() => return mismatch("divide", l, r),
        _ if float(r) == 0.0 => {
            return fail(format!(
                "cannot divide {} by: {}",
                described(l),
                described(r)
            ));
        }
        _ => {}
    }
    match (l, r) {
        (Val::Int(a), Val::Int(b)) if *b != -1 => Ok(if a % b == 0 {
            Val::Int(a / b)
        } else {
            Val::Float(*a as f64 / *b as f64)
        }),
        _ => Ok(match (whole(l), whole(r)) {
            (Some(a), Some(b)) if (&a % &b) == BigInt::ZERO => big(a / b),
            _ => Val::Float(float(l) / float(r)),
        }),
    }
}

pub fn modulo(l: &Val, r: &Val) -> Out {
    if !l.is_number() || !r.is_number() {
        return mismatch("modulo", l, r);
    }
    if let (Val::Int(_) | Val::Big(_), Val::Int(_) | Val::Big(_)) = (l, r)
        && let (Some(a), Some(b)) = (whole(l), whole(r))
    {
        return match b == BigInt::ZERO {
            true => fail(format!(
                "cannot modulo {} by: {}",
                described(l),
                described(r)
            )),
            false => Ok(big(a % b)),
        };
    }
    if float(l).is_nan() || float(r).is_nan() {
        return Ok(Val::Float(f64::NAN));
    }
    let whole = |v: &Val| as_int(&Val::Float(float(v))).unwrap_or(0);
    match whole(r) {
        0 => {
            let (l, r) = (Val::Float(float(l)), Val::Float(float(r)));
            fail(format!(
                "cannot modulo {} by: {}",
                described(&l),
                described(&r)
            ))
        }
        by => Ok(Val::Int(whole(l).wrapping_rem(by))),
    }
}

pub fn negate(value: &Val) -> Out {
    match value {
        Val::Int(n) => Ok(n
            .checked_neg()
            .map_or_else(|| big(-BigInt::from(*n)), Val::Int)),
        Val::Float(f) => Ok(Val::Float(-f)),
        Val::Big(n) => Ok(big(-(**n).clone())),
        other => fail(format!("cannot negate: {}", described(other))),
    }
}

/// The parts of a text between separators; without a separator, its characters.
pub fn split(text: &str, separator: &str) -> Val {
    let part = |part: &str| Val::text(part);
    Val::list(match separator {
        "" => text.split("").filter(|p| !p.is_empty()).map(part).collect(),
        separator => text.split(separator).map(part).collect(),
    })
}

/// The number of parts that [`split`] returns.
pub fn parts(text: &str, separator: &str) -> usize {
    if separator.is_empty() {
        text.len()
    } else {
        text.matches(separator).count() + 1
    }
}
