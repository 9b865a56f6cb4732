//! Members, elements and parts of values.
//!
//! Main functions: [`fetch`], [`slice`] and [`contains`].

use super::error::ExprError;
use super::methods;
use super::operators::equal;
use super::value::{IntKind, Key, List, Map, MapKind, Value};
use std::rc::Rc;

type Out<T = Value> = Result<T, ExprError>;

fn no_member<T>(of: &Value, property: &Value) -> Out<T> {
    Err(ExprError::run(format!(
        "cannot fetch {} from {}",
        super::print::shown(property),
        of.go_type()
    )))
}

/// `of.property`, `of[property]`
pub(super) fn fetch(of: &Value, property: &Value) -> Out {
    if let Value::Str(name) = property
        && let Some(method) = methods::bound(of, &name.to_str())
    {
        return Ok(method);
    }
    match of {
        Value::List(list) => {
            let index = position(property, list.items.len())?;
            Ok(list.items[index].clone())
        }
        Value::Str(text) | Value::Bytes(text) => {
            let index = position(property, text.len())?;
            Ok(Value::Int(
                IntKind::Uint8,
                i64::from(text.as_bytes()[index]),
            ))
        }
        Value::Map(map) => Ok(match lookup(map, property)? {
            Some(entry) => entry.clone(),
            // The zero value of the map's elements.
            None if map.kind == MapKind::Groups => Value::appended(Vec::new()),
            None => Value::Nil,
        }),
        Value::Struct(value) => match value.field(&property.as_text()?) {
            Some(field) => Ok(field.clone()),
            None => no_member(of, property),
        },
        _ => no_member(of, property),
    }
}

/// The index, counted from the end if it is negative.
fn position(index: &Value, length: usize) -> Out<usize> {
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let mut index = index.to_int()?;
    if index < 0 {
        index = index.saturating_add(size);
    }
    usize::try_from(index)
        .ok()
        .filter(|index| *index < length)
        .ok_or_else(|| {
            ExprError::run(format!(
                "index out of range: {index} (array length is {length})"
            ))
        })
}

/// The entry of a map; nil is the zero value of its keys.
pub(super) fn lookup<'m>(map: &'m Map, key: &Value) -> Out<Option<&'m Value>> {
    let key = match (map.kind, key) {
        (MapKind::Text, Value::Nil) => Key::Str("".into()),
        (MapKind::Text, Value::Str(text)) => Key::Str(text.clone()),
        (MapKind::Text, other) => return Err(not_assignable(other)),
        (_, key) => key.key()?,
    };
    Ok(map.entries.get(&key))
}

pub(super) fn not_assignable(key: &Value) -> ExprError {
    ExprError::run(format!(
        "reflect.Value.MapIndex: value of type {} is not assignable to type string",
        key.go_type()
    ))
}

/// `get(of, property)`, which gives nil where there is nothing.
pub(super) fn get(of: &Value, property: &Value) -> Out {
    if let Value::Str(name) = property
        && let Some(method) = methods::bound(of, &name.to_str())
    {
        return Ok(method);
    }
    match of {
        Value::List(list) => {
            property.to_int()?;
            Ok(position(property, list.items.len())
                .map_or(Value::Nil, |index| list.items[index].clone()))
        }
        Value::Str(text) | Value::Bytes(text) => {
            property.to_int()?;
            Ok(position(property, text.len()).map_or(Value::Nil, |index| {
                Value::Int(IntKind::Uint8, i64::from(text.as_bytes()[index]))
            }))
        }
        Value::Map(map) => Ok(lookup(map, property)?.cloned().unwrap_or_default()),
        Value::Struct(value) => Ok(value
            .field(&property.as_text()?)
            .cloned()
            .unwrap_or_default()),
        _ => Ok(Value::Nil),
    }
}

/// The number of elements; of bytes in a text.
pub(super) fn length(of: &Value) -> Out<usize> {
    match of {
        Value::List(list) => Ok(list.items.len()),
        Value::Str(text) | Value::Bytes(text) => Ok(text.len()),
        Value::Map(map) => Ok(map.entries.len()),
        other => Err(ExprError::run(format!(
            "invalid argument for len (type {})",
            other.go_type()
        ))),
    }
}

/// `of[from:to]`, with bounds beyond the ends moved to them.
pub(super) fn slice(of: &Value, from: &Value, to: &Value) -> Out {
    let (list, bytes): (Option<&Rc<List>>, Option<&[u8]>) = match of {
        Value::List(list) => (Some(list), None),
        Value::Str(text) | Value::Bytes(text) => (None, Some(text.as_bytes())),
        _ => {
            return Err(ExprError::run(format!(
                "cannot slice {}",
                super::print::shown(from)
            )));
        }
    };
    let length = list.map_or_else(|| bytes.map_or(0, <[u8]>::len), |list| list.items.len());
    let bound = |value: &Value| -> Out<usize> {
        let size = i64::try_from(length).unwrap_or(i64::MAX);
        let mut index = value.to_int()?;
        if index < 0 {
            index = index.saturating_add(size);
        }
        Ok(usize::try_from(index.clamp(0, size)).unwrap_or(0))
    };
    let (from, to) = (bound(from)?, bound(to)?);
    let from = from.min(to);
    Ok(match (of, list, bytes) {
        (_, Some(list), _) => Value::list_of(list.kind, list.items[from..to].to_vec()),
        (Value::Bytes(_), _, Some(bytes)) => Value::Bytes(bytes[from..to].into()),
        (_, _, bytes) => Value::Str(bytes.unwrap_or_default()[from..to].into()),
    })
}

/// `needle in haystack`
pub(super) fn contains(needle: &Value, haystack: &Value) -> Out<bool> {
    match haystack {
        Value::Nil => Ok(false),
        Value::List(list) => Ok(list.items.iter().any(|item| equal(item, needle))),
        Value::Bytes(bytes) => Ok(bytes
            .as_bytes()
            .iter()
            .any(|byte| equal(&Value::Int(IntKind::Uint8, i64::from(*byte)), needle))),
        Value::Map(map) => Ok(lookup(map, needle)?.is_some()),
        Value::Time(_) if matches!(needle, Value::Str(_)) => Ok(false),
        other => Err(ExprError::run(format!(
            "operator \"in\" not defined on {}",
            other.go_type()
        ))),
    }
}
