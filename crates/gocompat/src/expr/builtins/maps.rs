//! Functions of maps. Where Go's order is random, it is that of the keys.

use super::super::access;
use super::super::eval::Machine;
use super::super::value::{ListKind, Map, MapKind, Value};
use super::{Builtin, Out, arg, fails, kind};
use std::rc::Rc;

pub(super) fn call(function: Builtin, args: &[Value], machine: &mut Machine<'_>) -> Out {
    let value = arg(args, 0);
    match function {
        Builtin::Get => access::get(value, arg(args, 1)),
        Builtin::Keys => {
            let map = map(value, "get keys from")?;
            machine.elements(map.entries.len())?;
            Ok(Value::list(map.entries.keys().map(|k| k.value()).collect()))
        }
        Builtin::Values => {
            let map = map(value, "get values from")?;
            machine.elements(map.entries.len())?;
            Ok(Value::list(map.entries.values().cloned().collect()))
        }
        Builtin::ToPairs => {
            let Value::Map(map) = value else {
                return fails(format!("cannot transform {} to pairs", kind(value)));
            };
            machine.elements(map.entries.len())?;
            let pair = |(key, value): (&super::super::value::Key, &Value)| {
                Value::list_of(ListKind::Pair, vec![key.value(), value.clone()])
            };
            Ok(Value::list_of(
                ListKind::Pairs,
                map.entries.iter().map(pair).collect(),
            ))
        }
        _ => from_pairs(value),
    }
}

fn map<'v>(value: &'v Value, what: &str) -> Out<&'v Map> {
    match value {
        Value::Map(map) => Ok(map),
        other => fails(format!("cannot {what} {}", kind(other))),
    }
}

fn from_pairs(value: &Value) -> Out {
    let items = match value {
        Value::List(list) => &list.items,
        Value::Bytes(bytes) if bytes.is_empty() => &Vec::new(),
        other => return fails(format!("cannot transform {} from pairs", kind(other))),
    };
    let mut entries = std::collections::BTreeMap::new();
    for pair in items {
        let Value::List(list) = pair else {
            let shown = super::super::print::shown(pair);
            return fails(format!("invalid pair {shown}"));
        };
        let [key, value] = list.items.as_slice() else {
            return fails("invalid pair length");
        };
        entries.insert(key.key()?, value.clone());
    }
    Ok(Value::Map(Rc::new(Map::new(MapKind::Any, entries))))
}
