//! Functions of lists.

use super::super::access::{fetch, length};
use super::super::eval::Machine;
use super::super::operators::equal;
use super::super::predicates::sorted;
use super::super::value::{IntKind, ListKind, Value};
use super::{Builtin, Out, arg, fails, kind};

/// Deepest nested list.
const MAX_DEPTH: usize = 1000;

pub(super) fn call(function: Builtin, args: &[Value], machine: &mut Machine<'_>) -> Out {
    let list = arg(args, 0);
    match function {
        Builtin::Len => len(list),
        Builtin::First => Ok(fetch(list, &Value::int(0)).unwrap_or_default()),
        Builtin::Last => Ok(fetch(list, &Value::int(-1)).unwrap_or_default()),
        Builtin::Take => take(list, arg(args, 1)),
        Builtin::Reverse => {
            let mut items = items(list, "reverse")?;
            machine.elements(items.len())?;
            items.reverse();
            Ok(Value::list(items))
        }
        Builtin::Uniq => {
            let mut unique: Vec<Value> = Vec::new();
            for item in items(list, "uniq")? {
                let each = 1 + item.weight() / 1024;
                machine.steps((unique.len() as u64).saturating_mul(each))?;
                if !unique.iter().any(|one| equal(&item, one)) {
                    unique.push(item);
                }
            }
            Ok(Value::list(unique))
        }
        Builtin::Concat => {
            let mut all = Vec::new();
            for list in args {
                let items = items(list, "concat")?;
                machine.elements(items.len())?;
                all.extend(items);
            }
            Ok(Value::appended(all))
        }
        Builtin::Flatten => {
            let mut flat = Vec::new();
            machine.steps(list.weight() / 64)?;
            flatten(items(list, "flatten")?, 0, &mut flat)?;
            machine.elements(flat.len())?;
            Ok(Value::list(flat))
        }
        _ => sort(args, machine),
    }
}

fn len(value: &Value) -> Out {
    let length = match value {
        Value::Str(text) => text.to_str().chars().count(),
        other => length(other)?,
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn items(value: &Value, what: &str) -> Out<Vec<Value>> {
    match value {
        Value::List(list) => Ok(list.items.clone()),
        Value::Bytes(bytes) => Ok(bytes
            .as_bytes()
            .iter()
            .map(|byte| Value::Int(IntKind::Uint8, i64::from(*byte)))
            .collect()),
        other => fails(format!("cannot {what} {}", kind(other))),
    }
}

fn take(list: &Value, count: &Value) -> Out {
    let length = match list {
        Value::List(_) | Value::Bytes(_) => length(list)?,
        other => return fails(format!("cannot take from {}", kind(other))),
    };
    let count = match count {
        Value::Int(IntKind::Int | IntKind::Int64, i) => *i,
        Value::Duration(i) => *i,
        Value::Month(i) | Value::Weekday(i) => i64::from(*i),
        other => return fails(format!("cannot take {} elements", kind(other))),
    };
    let Ok(count) = usize::try_from(count).map(|count| count.min(length)) else {
        return fails("reflect.Value.Slice: slice index out of bounds");
    };
    Ok(match list {
        Value::List(list) => Value::list_of(list.kind, list.items[..count].to_vec()),
        Value::Bytes(bytes) => Value::Bytes(bytes.as_bytes()[..count].into()),
        _ => Value::Nil,
    })
}

fn flatten(items: Vec<Value>, depth: usize, flat: &mut Vec<Value>) -> Out<()> {
    if depth > MAX_DEPTH {
        return fails("recursion depth exceeded");
    }
    for item in items {
        match &item {
            Value::List(_) | Value::Bytes(_) => {
                flatten(self::items(&item, "flatten")?, depth + 1, flat)?;
            }
            _ => flat.push(item),
        }
    }
    Ok(())
}

fn sort(args: &[Value], machine: &mut Machine<'_>) -> Out {
    let (kind, items) = match arg(args, 0) {
        Value::List(list) if !matches!(list.kind, ListKind::Pairs | ListKind::Pair) => {
            (ListKind::Any, list.items.clone())
        }
        _ => (ListKind::Absent, Vec::new()),
    };
    let descending = match args.get(1) {
        None => false,
        Some(Value::Str(order)) => match &*order.to_str() {
            "asc" => false,
            "desc" => true,
            other => return fails(format!("invalid order {other}, expected asc or desc")),
        },
        Some(other) => {
            return fails(format!(
                "sort order argument must be a string (got {})",
                other.go_type()
            ));
        }
    };
    machine.elements(items.len())?;
    let keyed = items
        .iter()
        .map(|item| (item.clone(), item.clone()))
        .collect();
    Ok(Value::list_of(kind, sorted(keyed, descending)?))
}
