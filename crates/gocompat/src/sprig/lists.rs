//! Functions of lists. Each has a `must` variant, which is the same in a template: Go turns the
//! panic of the plain one into the other's error.
//!
//! Main value: [`TABLE`].

use super::args::{
    NIL, Out, charge_items, deep_equal, elements, empty, fails, kind, list, slice_of, string,
    text_of, texts,
};
use super::cast::to_int;
use crate::template::{Call, Error, Function, INT, LIST, List, Type, Value};

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const TABLE: &[(&str, Function)] = &[
    ("list", Function::variadic(ONE, make)),
    ("tuple", Function::variadic(ONE, make)),
    ("append", Function::new(TWO, push)),
    ("push", Function::new(TWO, push)),
    ("mustAppend", Function::new(TWO, push)),
    ("mustPush", Function::new(TWO, push)),
    ("prepend", Function::new(TWO, prepend)),
    ("mustPrepend", Function::new(TWO, prepend)),
    ("first", Function::new(ONE, first)),
    ("mustFirst", Function::new(ONE, first)),
    ("last", Function::new(ONE, last)),
    ("mustLast", Function::new(ONE, last)),
    ("rest", Function::new(ONE, rest)),
    ("mustRest", Function::new(ONE, rest)),
    ("initial", Function::new(ONE, initial)),
    ("mustInitial", Function::new(ONE, initial)),
    ("reverse", Function::new(ONE, reverse)),
    ("mustReverse", Function::new(ONE, reverse)),
    ("compact", Function::new(ONE, compact)),
    ("mustCompact", Function::new(ONE, compact)),
    ("uniq", Function::new(ONE, uniq)),
    ("mustUniq", Function::new(ONE, uniq)),
    ("without", Function::variadic(TWO, without)),
    ("mustWithout", Function::variadic(TWO, without)),
    ("has", Function::new(TWO, has)),
    ("mustHas", Function::new(TWO, has)),
    ("slice", Function::variadic(TWO, slice)),
    ("mustSlice", Function::variadic(TWO, slice)),
    ("chunk", Function::new(&[INT, Type::Any], chunk)),
    ("mustChunk", Function::new(&[INT, Type::Any], chunk)),
    ("concat", Function::variadic(ONE, concat)),
    ("join", Function::new(&[Type::String, Type::Any], join)),
    ("sortAlpha", Function::new(ONE, sort_alpha)),
    ("toStrings", Function::new(ONE, to_strings)),
];

/// The nil list that some functions return for an empty one.
fn nil_list() -> Out {
    Ok(Value::List(List::nil(LIST)))
}

fn make(call: &mut Call<'_>) -> Out {
    list(call.budget(), call.rest(0).cloned().collect())
}

fn push(call: &mut Call<'_>) -> Out {
    let mut items = slice_of(call, call.arg(0), "Cannot push on type")?;
    items.push(call.arg(1).clone());
    list(call.budget(), items)
}

fn prepend(call: &mut Call<'_>) -> Out {
    let mut items = slice_of(call, call.arg(0), "Cannot prepend on type")?;
    items.insert(0, call.arg(1).clone());
    list(call.budget(), items)
}

/// The length of the slice in the first argument.
fn length(call: &Call<'_>, words: &str) -> Result<usize, Error> {
    match call.arg(0).underlying().as_ref() {
        Value::List(list) => Ok(list.len()),
        Value::Bytes(bytes) => Ok(bytes.len()),
        Value::Nil => fails(NIL),
        other => fails(format!("{words} {}", kind(other))),
    }
}

fn element(call: &Call<'_>, index: usize) -> Value {
    match call.arg(0).underlying().as_ref() {
        Value::List(list) => list.get(index).unwrap_or_default(),
        other => elements(other)
            .ok()
            .and_then(|items| items.get(index).cloned())
            .unwrap_or_default(),
    }
}

fn first(call: &mut Call<'_>) -> Out {
    length(call, "Cannot find first on type")?;
    Ok(element(call, 0))
}

fn last(call: &mut Call<'_>) -> Out {
    let len = length(call, "Cannot find last on type")?;
    Ok(len
        .checked_sub(1)
        .map(|index| element(call, index))
        .unwrap_or_default())
}

fn rest(call: &mut Call<'_>) -> Out {
    let mut items = slice_of(call, call.arg(0), "Cannot find rest on type")?;
    if items.is_empty() {
        return nil_list();
    }
    items.remove(0);
    list(call.budget(), items)
}

fn initial(call: &mut Call<'_>) -> Out {
    let mut items = slice_of(call, call.arg(0), "Cannot find initial on type")?;
    if items.pop().is_none() {
        return nil_list();
    }
    list(call.budget(), items)
}

fn reverse(call: &mut Call<'_>) -> Out {
    let mut items = slice_of(call, call.arg(0), "Cannot find reverse on type")?;
    items.reverse();
    list(call.budget(), items)
}

fn compact(call: &mut Call<'_>) -> Out {
    let mut items = slice_of(call, call.arg(0), "Cannot compact on type")?;
    items.retain(|item| !empty(item));
    list(call.budget(), items)
}

fn contains(items: &[Value], needle: &Value, call: &Call<'_>) -> Result<bool, Error> {
    for item in items {
        if deep_equal(needle, item, call.budget())? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(call: &mut Call<'_>) -> Out {
    let mut seen = Vec::new();
    for item in slice_of(call, call.arg(0), "Cannot find uniq on type")? {
        if !contains(&seen, &item, call)? {
            seen.push(item);
        }
    }
    list(call.budget(), seen)
}

fn without(call: &mut Call<'_>) -> Out {
    let omitted: Vec<Value> = call.rest(1).cloned().collect();
    let mut kept = Vec::new();
    for item in slice_of(call, call.arg(0), "Cannot find without on type")? {
        if !contains(&omitted, &item, call)? {
            kept.push(item);
        }
    }
    list(call.budget(), kept)
}

fn has(call: &mut Call<'_>) -> Out {
    if matches!(call.arg(1), Value::Nil) {
        return Ok(Value::Bool(false));
    }
    let items = slice_of(call, call.arg(1), "Cannot find has on type")?;
    contains(&items, call.arg(0), call).map(Value::Bool)
}

/// A window of the same array, like `list[from:to]`.
fn slice(call: &mut Call<'_>) -> Out {
    let len = length(call, "list should be type of slice or array but")?;
    if len == 0 {
        return Ok(Value::Nil);
    }
    let from = if call.len() > 1 {
        to_int(call.arg(1))
    } else {
        0
    };
    let to = if call.len() > 2 {
        to_int(call.arg(2))
    } else {
        len as i64
    };
    let value = call.arg(0).underlying().into_owned();
    let cap = if let Value::List(list) = &value {
        list.cap()
    } else {
        len
    };
    match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) if from <= to && to <= cap => Ok(match value {
            Value::List(list) => {
                let part = Value::List(list.window(from, to, cap));
                match call.arg(0) {
                    Value::Object(object) => object.over(part.clone()).unwrap_or(part),
                    _ => part,
                }
            }
            Value::Bytes(bytes) => Value::Bytes(bytes.as_bytes()[from..to].into()),
            _ => Value::Nil,
        }),
        _ => fails("reflect.Value.Slice: slice index out of bounds"),
    }
}

fn chunk(call: &mut Call<'_>) -> Out {
    let size = call.integer(0)?;
    let items = slice_of(call, call.arg(1), "Cannot chunk type")?;
    let Ok(size) = usize::try_from(size) else {
        return negative_chunks(size, items.len());
    };
    if size == 0 {
        // Go divides by zero as floats and uses the result as the number of chunks.
        return fails("runtime error: makeslice: len out of range");
    }
    charge_items(call.budget(), items.len())?;
    let chunks = items
        .chunks(size)
        .map(|c| Value::List(c.iter().cloned().collect()))
        .collect();
    Ok(Value::List(List::of(Type::Slice(&LIST), chunks)))
}

/// With a negative size, Go still computes the number of chunks, and fails unless it is zero.
fn negative_chunks(size: i64, len: usize) -> Out {
    let count = ((len as f64 - 1.0) / size as f64).floor() + 1.0;
    if count != 0.0 {
        return fails("runtime error: makeslice: len out of range");
    }
    Ok(Value::List(List::of(Type::Slice(&LIST), Vec::new())))
}

fn concat(call: &mut Call<'_>) -> Out {
    let mut all = Vec::new();
    for value in call.rest(0) {
        let items = elements(value).map_err(|kind| match kind {
            "invalid" => Error::function(NIL),
            kind => Error::function(format!("Cannot concat type {kind} as list")),
        })?;
        charge_items(call.budget(), items.len())?;
        all.extend(items);
    }
    if all.is_empty() {
        nil_list()
    } else {
        Ok(Value::List(all.into_iter().collect()))
    }
}

fn join(call: &mut Call<'_>) -> Out {
    let parts = texts(call, call.arg(1))?;
    let separator = call.string(0)?;
    call.budget()
        .memory(separator.len().saturating_mul(parts.len()))?;
    string(call.budget(), parts.join(separator.as_bytes()))
}

fn sort_alpha(call: &mut Call<'_>) -> Out {
    let value = call.arg(0);
    if elements(value).is_err() {
        return Ok(Value::strings([text_of(value)?.into_owned()]));
    }
    let mut parts = texts(call, value)?;
    parts.sort();
    Ok(Value::strings(parts))
}

fn to_strings(call: &mut Call<'_>) -> Out {
    Ok(Value::strings(texts(call, call.arg(0))?))
}
