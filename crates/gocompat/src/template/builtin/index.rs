//! `index`, `slice` and `len`.

use super::super::error::Error;
use super::super::function::Call;
use super::super::types::UintKind;
use super::super::value::{Str, Value};
use super::text;

/// An index in a sequence of this length; Go also permits the length itself here.
fn position(index: &Value, cap: usize) -> Result<usize, Error> {
    let number = match index.underlying().as_ref() {
        Value::Int(_, i) => *i,
        Value::Uint(_, u) => *u as i64,
        Value::Nil => return Err(Error::function("cannot index slice/array with nil")),
        _ => {
            return Err(Error::function(format!(
                "cannot index slice/array with type {}",
                index.go_type()
            )));
        }
    };
    usize::try_from(number)
        .ok()
        .filter(|n| *n <= cap)
        .ok_or_else(|| Error::function(format!("index out of range: {number}")))
}

/// `index x 1 "k"` is `x[1]["k"]`.
pub fn index(call: &mut Call<'_>) -> Result<Value, Error> {
    let mut item = call.arg(0).clone();
    if matches!(item, Value::Nil) {
        return Err(Error::function("index of untyped nil"));
    }
    for index in call.rest(1) {
        let inner = item.underlying().into_owned();
        item = match inner {
            Value::Nil => return Err(Error::function("index of nil pointer")),
            Value::String(bytes) | Value::Bytes(bytes) => {
                let at = position(index, bytes.len())?;
                let byte = bytes.as_bytes().get(at).ok_or_else(|| {
                    out_of_range(matches!(item.underlying().as_ref(), Value::String(_)))
                })?;
                Value::Uint(UintKind::Uint8, u64::from(*byte))
            }
            Value::List(list) => list
                .get(position(index, list.len())?)
                .ok_or_else(|| out_of_range(false))?,
            Value::Map(map) => match index {
                Value::String(key) => map
                    .get(key)
                    .unwrap_or_else(|| map.go_type().element().zero()),
                Value::Nil => {
                    return Err(Error::function("value is nil; should be of type string"));
                }
                other => {
                    return Err(Error::function(format!(
                        "value has type {}; should be string",
                        other.go_type()
                    )));
                }
            },
            _ => {
                return Err(Error::function(format!(
                    "can't index item of type {}",
                    pointed_type(&item)
                )));
            }
        };
    }
    Ok(item)
}

/// The type behind a pointer.
fn pointed_type(value: &Value) -> String {
    value
        .go_type()
        .to_string()
        .trim_start_matches('*')
        .to_owned()
}

/// The panic message of Go's reflection.
fn out_of_range(string: bool) -> Error {
    Error::function(format!(
        "reflect: {} index out of range",
        if string { "string" } else { "slice" }
    ))
}

/// `slice x 1 2` is `x[1:2]`.
pub fn slice(call: &mut Call<'_>) -> Result<Value, Error> {
    let item = call.arg(0).clone();
    let inner = item.underlying().into_owned();
    let count = call.len().saturating_sub(1);
    if matches!(item, Value::Nil) {
        return Err(Error::function("slice of untyped nil"));
    }
    if count > 3 {
        return Err(Error::function(format!("too many slice indexes: {count}")));
    }
    let (len, cap) = match &inner {
        Value::String(_) if count == 3 => {
            return Err(Error::function("cannot 3-index slice a string"));
        }
        Value::String(bytes) | Value::Bytes(bytes) => (bytes.len(), bytes.len()),
        Value::List(list) => (list.len(), list.cap()),
        _ => {
            return Err(Error::function(format!(
                "can't slice item of type {}",
                pointed_type(&item)
            )));
        }
    };
    let mut at = [0, len, cap];
    for (slot, index) in at.iter_mut().zip(call.args.iter().skip(1)) {
        if index.boxed {
            return Err(Error::function(
                "cannot index slice/array with type interface {}",
            ));
        }
        *slot = position(&index.value, cap)?;
    }
    let [from, to, end] = at;
    if from > to {
        return Err(Error::function(format!(
            "invalid slice index: {from} > {to}"
        )));
    }
    if count == 3 && to > end {
        return Err(Error::function(format!(
            "invalid slice index: {to} > {end}"
        )));
    }
    match inner {
        Value::String(bytes) => text(call, bytes.as_bytes()[from..to].to_vec()),
        Value::Bytes(bytes) => Ok(Value::Bytes(Str::from(&bytes.as_bytes()[from..to]))),
        Value::List(list) => Ok(Value::List(list.window(from, to, end))),
        _ => Ok(Value::Nil),
    }
}

pub fn len(call: &mut Call<'_>) -> Result<Value, Error> {
    if call.args.first().is_some_and(|slot| slot.is_invalid()) {
        return Err(Error::function(
            "reflect: call of reflect.Value.Type on zero Value",
        ));
    }
    let item = call.arg(0);
    let length = match item.underlying().as_ref() {
        Value::String(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Nil => return Err(Error::function("len of nil pointer")),
        _ => {
            return Err(Error::function(format!(
                "len of type {}",
                pointed_type(item)
            )));
        }
    };
    Ok(Value::int(length as i64))
}
