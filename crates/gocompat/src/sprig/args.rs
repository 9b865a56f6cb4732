//! Helpers for arguments of any type: their kinds, elements and texts, emptiness and equality.
//!
//! Main functions: [`kind`], [`elements`], [`text_of`], [`empty`] and [`deep_equal`].

use crate::template::{Budget, Call, Error, IntKind, Map, Type, UintKind, Value, format};
use std::borrow::Cow;

pub(super) type Out = Result<Value, Error>;

/// Maximum depth when values are compared, copied or written; a deeper value contains itself.
pub(super) const DEPTH: usize = 200;

/// The message of Go's runtime when a nil interface is asked for its type.
pub(super) const NIL: &str = "runtime error: invalid memory address or nil pointer dereference";

/// An error of a function.
pub(super) fn fails<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::function(message))
}

/// A string result, charged.
pub(super) fn string(budget: &Budget, bytes: impl Into<Vec<u8>>) -> Out {
    let bytes = bytes.into();
    budget.memory(bytes.len())?;
    Ok(Value::String(bytes.into()))
}

/// A `[]interface {}` result, charged.
pub(super) fn list(budget: &Budget, items: Vec<Value>) -> Out {
    charge_items(budget, items.len())?;
    Ok(Value::List(items.into_iter().collect()))
}

/// Charges for the elements of a list or map before they are created.
pub(super) fn charge_items(budget: &Budget, count: usize) -> Result<(), Error> {
    budget.memory(count.saturating_mul(size_of::<Value>()))
}

/// `reflect.Kind` as text.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(kind, _) => match kind {
            IntKind::Int => "int",
            IntKind::Int8 => "int8",
            IntKind::Int16 => "int16",
            IntKind::Int32 => "int32",
            IntKind::Int64 => "int64",
        },
        Value::Uint(kind, _) => match kind {
            UintKind::Uint => "uint",
            UintKind::Uint8 => "uint8",
            UintKind::Uint16 => "uint16",
            UintKind::Uint32 => "uint32",
            UintKind::Uint64 => "uint64",
        },
        Value::Float(_) => "float64",
        Value::Complex(..) => "complex128",
        Value::String(_) => "string",
        Value::Bytes(_) | Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Object(object) => match (object.underlying(), object.go_type()) {
            (Some(inner), _) => kind(&inner),
            (None, Type::Named(named)) if named.name.starts_with('*') => "ptr",
            (None, _) => "struct",
        },
    }
}

/// The elements of a slice; the kind of any other value.
pub(super) fn elements(value: &Value) -> Result<Vec<Value>, &'static str> {
    match value.underlying().as_ref() {
        Value::List(list) => Ok(list.items()),
        Value::Bytes(bytes) => Ok(bytes
            .as_bytes()
            .iter()
            .map(|b| Value::Uint(UintKind::Uint8, u64::from(*b)))
            .collect()),
        _ => Err(kind(value)),
    }
}

/// The elements of the slice that a function needs; `words` is the beginning of the error for other
/// kinds.
pub(super) fn slice_of(call: &Call<'_>, value: &Value, words: &str) -> Result<Vec<Value>, Error> {
    let items = elements(value).map_err(|kind| match kind {
        "invalid" => Error::function(NIL),
        kind => Error::function(format!("{words} {kind}")),
    })?;
    call.budget().steps(items.len() as u64 / 8)?;
    Ok(items)
}

/// A value as text: strings and bytes unchanged, everything else as `%v`.
pub(super) fn text_of(value: &Value) -> Result<Cow<'_, [u8]>, Error> {
    match value {
        Value::String(s) | Value::Bytes(s) => Ok(Cow::Borrowed(s.as_bytes())),
        Value::Nil => Ok(Cow::Borrowed(b"<nil>")),
        other => format::sprint([other]).map(Cow::Owned),
    }
}

/// The texts of a list except nils, or the text of a single value.
pub(super) fn texts(call: &Call<'_>, value: &Value) -> Result<Vec<Vec<u8>>, Error> {
    let items = match elements(value) {
        Ok(items) => items,
        Err("invalid") => Vec::new(),
        Err(_) => vec![value.clone()],
    };
    let mut out = Vec::with_capacity(items.len());
    for item in items.iter().filter(|v| !matches!(v, Value::Nil)) {
        let text = text_of(item)?.into_owned();
        call.budget().memory(text.len() + size_of::<Vec<u8>>())?;
        out.push(text);
    }
    Ok(out)
}

/// Whether a value is the zero value of its type, or an empty list or map.
pub(super) fn empty(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.underlying().is_some_and(|inner| empty(&inner)),
        other => !other.truth(),
    }
}

/// `reflect.DeepEqual`
pub(super) fn deep_equal(a: &Value, b: &Value, budget: &Budget) -> Result<bool, Error> {
    equal(a, b, budget, 0)
}

fn equal(a: &Value, b: &Value, budget: &Budget, depth: usize) -> Result<bool, Error> {
    if depth > DEPTH {
        return fails("values nest too deeply to be compared");
    }
    budget.steps(1)?;
    if a.go_type() != b.go_type() {
        return Ok(false);
    }
    Ok(match (a, b) {
        (Value::List(x), Value::List(y)) => {
            if x.is_nil() != y.is_nil() || x.len() != y.len() {
                return Ok(false);
            }
            for (x, y) in x.items().iter().zip(&y.items()) {
                if !equal(x, y, budget, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(x), Value::Map(y)) => return equal_maps(x, y, budget, depth),
        (Value::Object(x), Value::Object(y)) => match (x.underlying(), y.underlying()) {
            (Some(x), Some(y)) => return equal(&x, &y, budget, depth + 1),
            _ => x.text() == y.text() && equal_fields(&x.fields(), &y.fields(), budget, depth)?,
        },
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Int(_, x), Value::Int(_, y)) => x == y,
        (Value::Uint(_, x), Value::Uint(_, y)) => x == y,
        (Value::Float(x), Value::Float(y)) => x == y,
        (Value::Complex(x, i), Value::Complex(y, j)) => x == y && i == j,
        (Value::String(x), Value::String(y)) | (Value::Bytes(x), Value::Bytes(y)) => x == y,
        _ => false,
    })
}

fn equal_maps(x: &Map, y: &Map, budget: &Budget, depth: usize) -> Result<bool, Error> {
    if x.same(y) {
        return Ok(true);
    }
    if x.is_nil() != y.is_nil() || x.len() != y.len() {
        return Ok(false);
    }
    for ((k, v), (l, w)) in x.entries().iter().zip(&y.entries()) {
        if k != l || !equal(v, w, budget, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_fields(
    x: &[(&str, Value)],
    y: &[(&str, Value)],
    budget: &Budget,
    depth: usize,
) -> Result<bool, Error> {
    for ((_, x), (_, y)) in x.iter().zip(y) {
        if !equal(x, y, budget, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}
