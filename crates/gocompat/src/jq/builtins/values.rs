//! Operators, and functions of values of any kind: types, JSON, paths, errors.
//!
//! Main values: [`TABLE`] and [`OPERATORS`].

use super::{Native, fails_on, refuses, refuses_with};
use crate::{
    jq::{
        fault::{Fault, Out, ended, fail},
        lexer, number, paths,
        text::{described, to_json},
        value::{Map, Val, order},
    },
    sprig::json_read,
};
use num_bigint::{BigInt, Sign};
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::Arc;

pub const OPERATORS: &[Native] = &[
    Native::flat("+", 2, |_, _, a| number::add(&a[0], &a[1])),
    Native::flat("-", 2, |budget, _, a| {
        if let (Some(l), Some(r)) = (a[0].as_list(), a[1].as_list()) {
            budget.steps((l.len() as u64).saturating_mul(r.len() as u64) / 4)?;
            budget.steps(a[0].weight().saturating_mul(r.len() as u64) / 128)?;
        }
        number::subtract(&a[0], &a[1])
    }),
    Native::deep("*", 2, |budget, _, a| {
        budget.bytes(
            usize::try_from(number::repeated_length(&a[0], &a[1]).min(i32::MAX as u64))
                .unwrap_or(usize::MAX),
        )?;
        number::multiply(&a[0], &a[1])
    }),
    Native::deep("/", 2, |_, _, a| number::divide(&a[0], &a[1])),
    Native::deep("%", 2, |_, _, a| number::modulo(&a[0], &a[1])),
    Native::flat("//", 2, |_, _, a| {
        Ok(if a[0].is_true() {
            a[0].clone()
        } else {
            a[1].clone()
        })
    }),
    Native::deep("==", 2, |_, _, a| Ok(order(&a[0], &a[1]).is_eq().into())),
    Native::deep("!=", 2, |_, _, a| Ok(order(&a[0], &a[1]).is_ne().into())),
    Native::deep("<", 2, |_, _, a| Ok(order(&a[0], &a[1]).is_lt().into())),
    Native::deep("<=", 2, |_, _, a| Ok(order(&a[0], &a[1]).is_le().into())),
    Native::deep(">", 2, |_, _, a| Ok(order(&a[0], &a[1]).is_gt().into())),
    Native::deep(">=", 2, |_, _, a| Ok(order(&a[0], &a[1]).is_ge().into())),
];

pub const TABLE: &[Native] = &[
    Native::flat("_negate", 0, |_, v, _| number::negate(v)),
    Native::flat("_plus", 0, |_, v, _| {
        if v.is_number() {
            Ok(v.clone())
        } else {
            fail(format!("cannot plus: {}", described(v)))
        }
    }),
    Native::flat("not", 0, |_, v, _| Ok((!v.is_true()).into())),
    Native::flat("type", 0, |_, v, _| Ok(Val::text(v.kind()))),
    Native::flat("length", 0, |_, v, _| length(v)),
    Native::flat("abs", 0, |_, v, _| {
        magnitude(v).map_or_else(|| refuses("abs", v), Ok)
    }),
    Native::flat("utf8bytelength", 0, |_, v, _| {
        v.as_text()
            .map_or_else(|| refuses("utf8bytelength", v), |t| Ok(Val::count(t.len())))
    }),
    Native::deep("tojson", 0, |_, v, _| Ok(Val::text(to_json(v)))),
    Native::deep("tostring", 0, |_, v, _| {
        Ok(if v.as_text().is_some() {
            v.clone()
        } else {
            Val::text(to_json(v))
        })
    }),
    Native::flat("tonumber", 0, |_, v, _| match v {
        Val::Text(text) if lexer::is_number(text) => {
            Ok(lexer::number(text.trim_start_matches('+')))
        }
        Val::Text(_) => fails_on("tonumber", v, "invalid number"),
        v if v.is_number() => Ok(v.clone()),
        v => refuses("tonumber", v),
    }),
    Native::flat("toboolean", 0, |_, v, _| match v {
        Val::Bool(_) => Ok(v.clone()),
        Val::Text(text) => match &**text {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => fails_on("toboolean", v, "invalid boolean"),
        },
        v => refuses("toboolean", v),
    }),
    Native::deep("fromjson", 0, |budget, v, _| {
        let Some(text) = v.as_text() else {
            return refuses("fromjson", v);
        };
        budget.bytes(text.len() * 4)?;
        from_json(v, text)
    }),
    Native::flat("setpath", 2, |budget, v, a| {
        paths::set(v.clone(), &a[0], a[1].clone(), budget)
    }),
    Native::flat("delpaths", 1, |budget, v, a| {
        paths::delete(v.clone(), &a[0], budget)
    }),
    Native::flat("keys", 0, |_, v, _| match v {
        Val::List(list) => Ok(Val::list((0..list.items.len()).map(Val::count).collect())),
        Val::Map(map) => Ok(Val::list(
            map.items.keys().cloned().map(Val::Text).collect(),
        )),
        v => refuses("keys", v),
    }),
    Native::flat("has", 1, |_, v, a| match (v, &a[0]) {
        (Val::Null, _) => Ok(false.into()),
        (Val::List(list), key) if key.is_number() => {
            let at = number::as_int(key).and_then(|at| usize::try_from(at).ok());
            Ok(at.is_some_and(|at| at < list.items.len()).into())
        }
        (Val::Map(map), Val::Text(key)) => Ok(map.items.contains_key(key).into()),
        (v, key) => refuses_with("has", v, key),
    }),
    Native::deep("contains", 1, |budget, v, a| {
        contains(budget, v, &a[0]).map(Val::from)
    }),
    Native::deep("inside", 1, |budget, v, a| {
        contains(budget, &a[0], v).map(Val::from)
    }),
    Native::flat("error", 0, |_, v, _| Err(Fault::Raised(v.clone()))),
    Native::flat("error", 1, |_, _, a| Err(Fault::Raised(a[0].clone()))),
    Native::flat("halt", 0, |_, _, _| ended("halt error: null")),
    Native::flat("halt_error", 0, |_, v, _| halt(v)),
    Native::flat("halt_error", 1, |_, v, a| {
        if a[0].is_number() {
            halt(v)
        } else {
            refuses("halt_error", &a[0])
        }
    }),
    Native::flat("to_entries", 0, |_, v, _| entries(v)),
    Native::flat("from_entries", 0, |_, v, _| from_entries(v)),
];

fn halt(value: &Val) -> Out {
    ended(&format!("halt {}", Fault::Raised(value.clone()).message()))
}

fn length(value: &Val) -> Out {
    Ok(match value {
        Val::Null => Val::Int(0),
        Val::Text(text) => Val::count(text.chars().count()),
        Val::List(list) => Val::count(list.items.len()),
        Val::Map(map) => Val::count(map.items.len()),
        value => return magnitude(value).map_or_else(|| refuses("length", value), Ok),
    })
}

fn magnitude(value: &Val) -> Option<Val> {
    match value {
        Val::Int(n) if *n >= 0 => Some(value.clone()),
        Val::Big(n) if n.sign() == Sign::Plus => Some(value.clone()),
        Val::Int(n) => Some(
            n.checked_neg()
                .map_or_else(|| number::big(-BigInt::from(*n)), Val::Int),
        ),
        Val::Big(n) => Some(number::big(-(**n).clone())),
        Val::Float(f) => Some(Val::Float(f.abs())),
        _ => None,
    }
}

fn from_json(value: &Val, text: &str) -> Out {
    let mut reader = serde_json::Deserializer::from_str(text);
    match Value::deserialize(&mut reader) {
        Ok(parsed) if reader.end().is_ok() => Ok(Val::from(&parsed)),
        // The message does not mention text after a value.
        Ok(_) => refuses("fromjson", value),
        Err(e) if e.is_eof() && text.trim().is_empty() => fails_on("fromjson", value, "EOF"),
        Err(e) if e.is_eof() => fails_on("fromjson", value, "unexpected EOF"),
        Err(e) => fails_on(
            "fromjson",
            value,
            &json_read::fault(text).unwrap_or_else(|| e.to_string()),
        ),
    }
}

fn contains(budget: &mut super::Budget, value: &Val, part: &Val) -> Result<bool, Fault> {
    budget.steps(1)?;
    match (value, part) {
        (Val::Map(value), Val::Map(part)) => {
            for (key, part) in &part.items {
                match value.items.get(key) {
                    Some(value) if holds(budget, value, part)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Val::List(value), Val::List(part)) => {
            'parts: for part in &part.items {
                for value in &value.items {
                    if holds(budget, value, part)? {
                        continue 'parts;
                    }
                }
                return Ok(false);
            }
            Ok(true)
        }
        (Val::Text(value), Val::Text(part)) => Ok(value.contains(&**part)),
        _ if value.kind() == part.kind() && value.depth() == 0 && order(value, part).is_eq() => {
            Ok(true)
        }
        _ if value.is_number() && part.is_number() => Ok(false),
        _ => refuses_with("contains", value, part).map(|_| false),
    }
}

/// Inside containers, values that cannot be compared are not contained.
fn holds(budget: &mut super::Budget, value: &Val, part: &Val) -> Result<bool, Fault> {
    match contains(budget, value, part) {
        Err(Fault::Message(_)) => Ok(false),
        other => other,
    }
}

fn entries(value: &Val) -> Out {
    let entry = |key: Val, value: &Val| Val::fields([("key", key), ("value", value.clone())]);
    match value {
        Val::List(list) => Ok(Val::list(
            list.items
                .iter()
                .enumerate()
                .map(|(at, value)| entry(Val::count(at), value))
                .collect(),
        )),
        Val::Map(map) => Ok(Val::list(
            map.items
                .iter()
                .map(|(key, value)| entry(Val::Text(key.clone()), value))
                .collect(),
        )),
        value => refuses("keys", value),
    }
}

/// A map from entries: the key is the first of `key`, `Key`, `name` and `Name` that is truthy.
fn from_entries(value: &Val) -> Out {
    let Some(entries) = value.values() else {
        return fail(format!("cannot iterate over: {}", described(value)));
    };
    let mut map = Map::new();
    for entry in &entries {
        let field = |name: &str| paths::index(entry, &Val::text(name));
        let mut key = Val::Null;
        for name in ["key", "Key", "name", "Name"] {
            key = field(name)?;
            if key.is_true() {
                break;
            }
        }
        let value = match entry.as_map().is_some_and(|map| map.contains_key("value")) {
            true => field("value")?,
            false => field("Value")?,
        };
        let Val::Text(key) = key else {
            return fail(format!(
                "expected a string for object key but got: {}",
                described(&key)
            ));
        };
        map.insert(Arc::clone(&key), value);
    }
    Ok(Val::map(map))
}
