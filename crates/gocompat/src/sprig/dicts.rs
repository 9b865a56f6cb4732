//! Functions of dicts, which are shared and changed in place.
//!
//! Main value: [`TABLE`].

use super::args::{DEPTH, Out, charge_items, empty, fails, kind, list, text_of};
use crate::template::{Call, Error, Function, List, MAP, Map, Type, Value};

const ANY: &[Type] = &[Type::Any];
const KEYED: &[Type] = &[MAP, Type::String];

pub(super) const TABLE: &[(&str, Function)] = &[
    ("dict", Function::variadic(ANY, dict)),
    (
        "get",
        Function::new(KEYED, |call| {
            Ok(call
                .map(0)?
                .get(call.string(1)?)
                .unwrap_or_else(|| "".into()))
        }),
    ),
    ("set", Function::new(&[MAP, Type::String, Type::Any], set)),
    ("unset", Function::new(KEYED, unset)),
    (
        "hasKey",
        Function::new(KEYED, |call| {
            Ok(Value::Bool(call.map(0)?.contains(call.string(1)?)))
        }),
    ),
    ("pluck", Function::variadic(&[Type::String, MAP], pluck)),
    ("keys", Function::variadic(&[MAP], keys)),
    (
        "values",
        Function::new(&[MAP], |call| {
            list(
                call.budget(),
                call.map(0)?.entries().into_iter().map(|(_, v)| v).collect(),
            )
        }),
    ),
    (
        "pick",
        Function::variadic(KEYED, |call| filtered(call, true)),
    ),
    (
        "omit",
        Function::variadic(KEYED, |call| filtered(call, false)),
    ),
    (
        "merge",
        Function::variadic(&[MAP, MAP], |call| merge_all(call, false)),
    ),
    (
        "mustMerge",
        Function::variadic(&[MAP, MAP], |call| merge_all(call, false)),
    ),
    (
        "mergeOverwrite",
        Function::variadic(&[MAP, MAP], |call| merge_all(call, true)),
    ),
    (
        "mustMergeOverwrite",
        Function::variadic(&[MAP, MAP], |call| merge_all(call, true)),
    ),
    ("deepCopy", Function::new(ANY, deep_copy)),
    ("mustDeepCopy", Function::new(ANY, deep_copy)),
    ("dig", Function::variadic(ANY, dig)),
];

fn dict(call: &mut Call<'_>) -> Out {
    charge_items(call.budget(), call.len())?;
    let map = Map::new();
    for index in (0..call.len()).step_by(2) {
        let key = text_of(call.arg(index))?.into_owned();
        call.budget().memory(key.len())?;
        let value = if index + 1 < call.len() {
            call.arg(index + 1).clone()
        } else {
            "".into()
        };
        map.insert(key, value)?;
    }
    Ok(map.into())
}

fn set(call: &mut Call<'_>) -> Out {
    call.budget()
        .memory(call.string(1)?.len() + size_of::<Value>())?;
    let (key, value) = (call.string(1)?.clone(), call.arg(2).clone());
    call.map(0)?.insert(key, value)?;
    Ok(call.take(0))
}

fn unset(call: &mut Call<'_>) -> Out {
    call.map(0)?.remove(call.string(1)?);
    Ok(call.take(0))
}

fn pluck(call: &mut Call<'_>) -> Out {
    let mut found = Vec::new();
    for index in 1..call.len() {
        found.extend(call.map(index)?.get(call.string(0)?));
    }
    list(call.budget(), found)
}

/// Go's order is random; ours is sorted.
fn keys(call: &mut Call<'_>) -> Out {
    let mut all = Vec::new();
    for index in 0..call.len() {
        all.extend(call.map(index)?.keys());
    }
    charge_items(call.budget(), all.len())?;
    Ok(Value::strings(all))
}

/// The entries whose keys are in the arguments, or are not.
fn filtered(call: &mut Call<'_>, wanted: bool) -> Out {
    let mut names = (1..call.len())
        .map(|index| call.string(index).cloned())
        .collect::<Result<Vec<_>, Error>>()?;
    names.sort();
    let source = call.map(0)?;
    charge_items(call.budget(), source.len())?;
    let kept = source
        .entries()
        .into_iter()
        .filter(|(key, _)| names.binary_search(key).is_ok() == wanted);
    Ok(Map::of(MAP, kept).into())
}

fn merge_all(call: &mut Call<'_>, overwrite: bool) -> Out {
    let Value::Map(mut into) = call.take(0) else {
        return Ok(Value::Nil);
    };
    for index in 1..call.len() {
        let from = call.map(index)?;
        if into.is_nil() && !from.is_nil() {
            into = Map::of(into.go_type(), []);
        }
        merge(&into, from, overwrite, call, 0)?;
    }
    Ok(into.into())
}

/// Merges one map into another. Nested maps are merged; existing values stay, unless they are empty
/// or overwriting is requested.
fn merge(
    into: &Map,
    from: &Map,
    overwrite: bool,
    call: &Call<'_>,
    depth: usize,
) -> Result<(), Error> {
    if depth > DEPTH {
        return fails("values nest too deeply to be merged");
    }
    if into.same(from) {
        return Ok(());
    }
    for (key, new) in from.entries() {
        call.budget().memory(key.len() + size_of::<Value>())?;
        let old = into.get(&key);
        if matches!(new, Value::Nil) {
            if overwrite {
                into.insert(key, new)?;
            }
            continue;
        }
        let below = old.as_ref().map(Value::underlying);
        if let (Value::Map(from), Some(Value::Map(below))) =
            (new.underlying().as_ref(), below.as_deref())
        {
            if !below.is_nil() || from.is_nil() {
                merge(below, from, overwrite, call, depth + 1)?;
            }
            if !below.is_empty() {
                continue;
            }
        }
        let vacant = old.as_ref().is_none_or(vacant);
        if overwrite || vacant {
            into.insert(key, new)?;
        }
    }
    Ok(())
}

/// Values that merging treats as empty: structs never are.
fn vacant(value: &Value) -> bool {
    kind(value) != "struct" && kind(value) != "ptr" && empty(value)
}

fn deep_copy(call: &mut Call<'_>) -> Out {
    match call.arg(0) {
        Value::Nil => fails("reflect: call of reflect.Value.Type on zero Value"),
        value => copy(value, call, 0),
    }
}

fn copy(value: &Value, call: &Call<'_>, depth: usize) -> Out {
    if depth > DEPTH {
        return fails("values nest too deeply to be copied");
    }
    match value {
        Value::List(list) if list.is_nil() => Ok(value.clone()),
        Value::List(list) => {
            charge_items(call.budget(), list.len())?;
            let items = list
                .items()
                .iter()
                .map(|item| copy(item, call, depth + 1))
                .collect::<Result<_, Error>>()?;
            Ok(Value::List(List::of(list.go_type(), items)))
        }
        Value::Map(map) if map.is_nil() => Ok(value.clone()),
        Value::Map(map) => {
            charge_items(call.budget(), map.len() * 2)?;
            let copied = Map::of(map.go_type(), []);
            for (key, value) in map.entries() {
                copied.insert(key, copy(&value, call, depth + 1)?)?;
            }
            Ok(copied.into())
        }
        Value::Object(object) => match object.underlying() {
            Some(content) => Ok(object
                .over(copy(&content, call, depth + 1)?)
                .unwrap_or_else(|| value.clone())),
            None => Ok(object.exported().unwrap_or_else(|| value.clone())),
        },
        other => Ok(other.clone()),
    }
}

/// `dig KEY… DEFAULT DICT`
fn dig(call: &mut Call<'_>) -> Out {
    let count = call.len();
    if count < 3 {
        return fails("dig needs at least three arguments");
    }
    let mut dict = as_map(call.arg(count - 1))?;
    let keys: Vec<&Value> = call.rest(0).take(count - 2).collect();
    for key in &keys {
        if !matches!(key, Value::String(_)) {
            return fails(conversion(key, "string"));
        }
    }
    for (index, key) in keys.iter().enumerate() {
        let Value::String(key) = key else { break };
        let Some(step) = dict.get(key) else { break };
        if index + 1 == keys.len() {
            return Ok(step);
        }
        dict = as_map(&step)?;
    }
    Ok(call.arg(count - 2).clone())
}

fn as_map(value: &Value) -> Result<Map, Error> {
    match value {
        Value::Map(map) if map.go_type() == MAP => Ok(map.clone()),
        other => fails(conversion(other, "map[string]interface {}")),
    }
}

/// The panic message of a failed type assertion.
fn conversion(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Nil => "nil".to_owned(),
        other => other.go_type().to_string(),
    };
    format!("interface conversion: interface {{}} is {found}, not {wanted}")
}
