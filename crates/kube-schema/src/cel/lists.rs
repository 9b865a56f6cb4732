//! Functions of lists and sets. Main function: [`call`].

use super::eval::{EvalError, Evaluated, failed};
use super::value::Value;
use std::cmp::Ordering;

/// Calls a list function; None for other functions.
pub fn call(function: &str, args: &[Value]) -> Option<Evaluated> {
    if function == "lists.range" {
        let [Value::Int(n)] = args else {
            return Some(failed("no such overload"));
        };
        return Some(Ok(Value::list((0..*n).map(Value::Int).collect())));
    }
    let [Value::List(list), rest @ ..] = args else {
        return None;
    };
    let items = &list.items;
    let position = |wanted: Option<usize>| Value::Int(wanted.map_or(-1, |i| i as i64));
    Some(match (function, rest) {
        ("isSorted", []) => Ok(Value::Bool(
            items
                .windows(2)
                .all(|w| w[0].compare(&w[1]) != Some(Ordering::Greater)),
        )),
        ("sum", []) => sum(items),
        ("max" | "min", []) => extreme(function, items),
        ("indexOf", [wanted]) => Ok(position(items.iter().position(|v| v.equals(wanted)))),
        ("lastIndexOf", [wanted]) => Ok(position(items.iter().rposition(|v| v.equals(wanted)))),
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(items, *from, *to),
        ("flatten", []) => flat(items, 1),
        ("flatten", [Value::Int(depth)]) if *depth < 0 => failed("level must be non-negative"),
        ("flatten", [Value::Int(depth)]) => flat(items, *depth),
        ("sort", []) => sorted(items, items),
        ("@sortByAssociatedKeys", [Value::List(keys)]) => sorted(items, &keys.items),
        ("reverse", []) => Ok(Value::list(items.iter().rev().cloned().collect())),
        ("distinct", []) => {
            let mut kept: Vec<Value> = Vec::new();
            for item in items {
                if !kept.iter().any(|k| k.equals(item)) {
                    kept.push(item.clone());
                }
            }
            Ok(Value::list(kept))
        }
        ("first", []) => Ok(Value::Optional(items.first().cloned().map(Box::new))),
        ("last", []) => Ok(Value::Optional(items.last().cloned().map(Box::new))),
        ("join", rest) => join(items, rest),
        ("sets.contains", [Value::List(other)]) => Ok(Value::Bool(has_all(items, &other.items))),
        ("sets.equivalent", [Value::List(other)]) => Ok(Value::Bool(
            has_all(items, &other.items) && has_all(&other.items, items),
        )),
        ("sets.intersects", [Value::List(other)]) => Ok(Value::Bool(
            items
                .iter()
                .any(|a| other.items.iter().any(|b| a.equals(b))),
        )),
        _ => return None,
    })
}

fn has_all(items: &[Value], wanted: &[Value]) -> bool {
    wanted.iter().all(|w| items.iter().any(|i| i.equals(w)))
}

fn sum(items: &[Value]) -> Evaluated {
    let Some(first) = items.first() else {
        return Ok(Value::Int(0));
    };
    items[1..].iter().try_fold(first.clone(), |sum, item| {
        super::library::call("_+_", false, &[sum, item.clone()])
    })
}

fn extreme(function: &str, items: &[Value]) -> Evaluated {
    let Some(first) = items.first() else {
        return failed(format!("{function} called on empty list"));
    };
    let wanted = if function == "max" {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    Ok(items
        .iter()
        .fold(first, |best, item| {
            if item.compare(best) == Some(wanted) {
                item
            } else {
                best
            }
        })
        .clone())
}

fn slice(items: &[Value], from: i64, to: i64) -> Evaluated {
    let n = items.len() as i64;
    if from < 0 || to < 0 {
        return failed(format!(
            "cannot slice({from}, {to}), negative indexes not supported"
        ));
    }
    if from > to {
        return failed(format!(
            "cannot slice({from}, {to}), start index must be less than or equal to end index"
        ));
    }
    if n < to {
        return failed(format!("cannot slice({from}, {to}), list is length {n}"));
    }
    Ok(Value::list(items[from as usize..to as usize].to_vec()))
}

/// More elements than any object has. Lists that share their elements can have exponentially many,
/// which the cost of the call does not count.
const MOST_FLAT: usize = 4_000_000;

fn flat(items: &[Value], depth: i64) -> Evaluated {
    let (mut out, mut left) = (Vec::new(), MOST_FLAT);
    flatten(items, depth, &mut left, &mut out)?;
    Ok(Value::list(out))
}

fn flatten(
    items: &[Value],
    depth: i64,
    left: &mut usize,
    out: &mut Vec<Value>,
) -> Result<(), EvalError> {
    for item in items {
        *left = left.checked_sub(1).ok_or(EvalError::Cost)?;
        match item {
            Value::List(inner) if depth > 0 => flatten(&inner.items, depth - 1, left, out)?,
            other => out.push(other.clone()),
        }
    }
    Ok(())
}

fn sorted(items: &[Value], keys: &[Value]) -> Evaluated {
    if items.len() != keys.len() {
        return failed(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list",
        );
    }
    if keys
        .windows(2)
        .any(|w| w[0].type_name() != w[1].type_name())
    {
        return failed("list elements must have the same type");
    }
    if keys.iter().any(|k| k.compare(k).is_none()) {
        return failed("list elements must be comparable");
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| keys[*a].compare(&keys[*b]).unwrap_or(Ordering::Equal));
    Ok(Value::list(
        order.into_iter().map(|i| items[i].clone()).collect(),
    ))
}

fn join(items: &[Value], rest: &[Value]) -> Evaluated {
    let separator = match rest {
        [] => "",
        [Value::String(s)] => s,
        _ => return failed("no such overload"),
    };
    let mut parts: Vec<&str> = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::String(s) => parts.push(s),
            _ => return failed("no such overload"),
        }
    }
    Ok(parts.join(separator).into())
}
