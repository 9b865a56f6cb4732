//! Helpers to fill in missing fields.

use super::Fields;
use serde_json::{Map, Value};

/// Absent or null.
pub fn is_unset(map: &Fields, field: &str) -> bool {
    map.get(field).is_none_or(Value::is_null)
}

/// Sets a field that is missing or null.
pub fn set(map: &mut Fields, field: &str, value: impl Into<Value>) {
    if is_unset(map, field) {
        map.insert(field.to_owned(), value.into());
    }
}

/// Sets a text field that is missing or empty.
pub fn set_text(map: &mut Fields, field: &str, value: &str) {
    if text(map, field).is_empty()
        && !map
            .get(field)
            .is_some_and(|v| !v.is_null() && !v.is_string())
    {
        map.insert(field.to_owned(), value.into());
    }
}

/// Sets a number field that is missing or zero.
pub fn set_number(map: &mut Fields, field: &str, value: i64) {
    if is_unset(map, field) || map.get(field).and_then(Value::as_i64) == Some(0) {
        map.insert(field.to_owned(), value.into());
    }
}

/// Sets a list field that is missing or empty.
pub fn set_list(map: &mut Fields, field: &str, value: Value) {
    if is_unset(map, field)
        || map
            .get(field)
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
    {
        map.insert(field.to_owned(), value);
    }
}

pub fn text<'a>(map: &'a Fields, field: &str) -> &'a str {
    map.get(field).and_then(Value::as_str).unwrap_or("")
}

/// The map in a field, created if it is missing. `None` if the field holds something else.
pub fn map<'a>(parent: &'a mut Fields, field: &str) -> Option<&'a mut Fields> {
    set(parent, field, Map::new());
    parent.get_mut(field)?.as_object_mut()
}

/// The map in a field, if there is one.
pub fn existing<'a>(parent: &'a mut Fields, field: &str) -> Option<&'a mut Fields> {
    parent.get_mut(field)?.as_object_mut()
}

/// The maps in a list.
pub fn items<'a>(parent: &'a mut Fields, field: &str) -> impl Iterator<Item = &'a mut Fields> {
    parent
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}
