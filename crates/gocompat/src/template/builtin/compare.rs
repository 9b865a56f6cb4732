//! `eq`, `ne` and the ordering functions. Numbers of different kinds cannot be compared, except
//! signed and unsigned integers.

use super::super::error::Error;
use super::super::format::sprintf;
use super::super::function::Call;
use super::super::value::Value;
use std::{cmp::Ordering, rc::Rc};

/// The kinds that can be compared with each other.
#[derive(Clone, Copy, PartialEq)]
enum Basic {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(f64, f64),
    Text,
}

fn basic(value: &Value) -> Option<Basic> {
    match value {
        Value::Bool(b) => Some(Basic::Bool(*b)),
        Value::Int(_, i) => Some(Basic::Int(*i)),
        Value::Uint(_, u) => Some(Basic::Uint(*u)),
        Value::Float(f) => Some(Basic::Float(*f)),
        Value::Complex(re, im) => Some(Basic::Complex(*re, *im)),
        Value::String(_) => Some(Basic::Text),
        Value::Object(object) => object.underlying().and_then(|inner| basic(&inner)),
        _ => None,
    }
}

fn incompatible(a: &Value, b: &Value) -> Error {
    Error::function(format!(
        "incompatible types for comparison: {} and {}",
        a.go_type(),
        b.go_type()
    ))
}

/// Whether the first argument equals one of the others.
pub fn equal_any(call: &mut Call<'_>) -> Result<bool, Error> {
    if call.len() < 2 {
        return Err(Error::function("missing argument for comparison"));
    }
    let first = call.arg(0);
    for other in call.rest(1) {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(a: &Value, b: &Value) -> Result<bool, Error> {
    match (basic(a), basic(b)) {
        (Some(Basic::Int(a)), Some(Basic::Uint(b)))
        | (Some(Basic::Uint(b)), Some(Basic::Int(a))) => Ok(u64::try_from(a) == Ok(b)),
        (Some(Basic::Text), Some(Basic::Text)) => Ok(text(a) == text(b)),
        (Some(x), Some(y)) if std::mem::discriminant(&x) == std::mem::discriminant(&y) => {
            Ok(x == y)
        }
        (None, None) => equal_composite(a, b),
        _ if matches!(a, Value::Nil) || matches!(b, Value::Nil) => Ok(false),
        _ => Err(incompatible(a, b)),
    }
}

/// Lists, maps and objects: comparable only with nil; objects also by identity.
fn equal_composite(a: &Value, b: &Value) -> Result<bool, Error> {
    let (a_inner, b_inner) = (a.underlying(), b.underlying());
    let (a_kind, b_kind) = (kind(&a_inner), kind(&b_inner));
    if a_kind != b_kind && !matches!(a, Value::Nil) && !matches!(b, Value::Nil) {
        let text = format!(
            "non-comparable types {}: {}, {}: {}",
            shown("%s", a),
            a.go_type(),
            b.go_type(),
            shown("%v", b)
        );
        return Err(Error::function(text));
    }
    if is_nil(&a_inner) || is_nil(&b_inner) {
        return Ok(is_nil(&a_inner) == is_nil(&b_inner));
    }
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if y.underlying().is_none() => Ok(Rc::ptr_eq(x, y)),
        _ => Err(Error::function(format!(
            "non-comparable type {}: {}",
            shown("%s", b),
            b.go_type()
        ))),
    }
}

fn shown(verb: &str, value: &Value) -> String {
    let text = sprintf(verb.as_bytes(), std::slice::from_ref(value)).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::List(_) | Value::Bytes(_) => 1,
        Value::Map(_) => 2,
        _ => 3,
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

fn text(value: &Value) -> Vec<u8> {
    match value.underlying().as_ref() {
        Value::String(s) => s.as_bytes().to_vec(),
        _ => Vec::new(),
    }
}

/// Whether the first argument comes before the second.
pub fn less(call: &mut Call<'_>) -> Result<bool, Error> {
    Ok(order(call.arg(0), call.arg(1))? == Some(Ordering::Less))
}

pub fn less_or_equal(call: &mut Call<'_>) -> Result<bool, Error> {
    Ok(matches!(
        order(call.arg(0), call.arg(1))?,
        Some(Ordering::Less | Ordering::Equal)
    ))
}

fn order(a: &Value, b: &Value) -> Result<Option<Ordering>, Error> {
    let bad = || Error::function("invalid type for comparison");
    Ok(
        match (basic(a).ok_or_else(bad)?, basic(b).ok_or_else(bad)?) {
            (Basic::Int(x), Basic::Int(y)) => Some(x.cmp(&y)),
            (Basic::Uint(x), Basic::Uint(y)) => Some(x.cmp(&y)),
            (Basic::Float(x), Basic::Float(y)) => x.partial_cmp(&y),
            (Basic::Text, Basic::Text) => Some(text(a).cmp(&text(b))),
            (Basic::Int(x), Basic::Uint(y)) => {
                Some(u64::try_from(x).map_or(Ordering::Less, |x| x.cmp(&y)))
            }
            (Basic::Uint(x), Basic::Int(y)) => {
                Some(u64::try_from(y).map_or(Ordering::Greater, |y| x.cmp(&y)))
            }
            (Basic::Bool(_), Basic::Bool(_)) | (Basic::Complex(..), Basic::Complex(..)) => {
                return Err(bad());
            }
            _ => return Err(incompatible(a, b)),
        },
    )
}
