//! Reads values of YAML as Go's typed decoding does: a field that wants a text takes any scalar.
//!
//! Main functions: [`document`], [`text`] and [`field`].

use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

/// Limits of one entry of the configuration.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 64,
    nodes: 100_000,
    aliases: 10_000,
    copied_bytes: 4 << 20,
    documents: 1,
};

/// Why a value is not what a field wants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypeError(pub String);

pub(crate) type Typed<T> = Result<T, TypeError>;

/// The first document of a text.
pub(crate) fn document(text: &str) -> Typed<Json> {
    yaml::parse_document(text, &LIMITS, Duplicates::LastWins)
        .map_err(|error| TypeError(error.to_string()))
}

fn wrong<T>(value: &Json, wanted: &str) -> Typed<T> {
    let found = tiphys_gocompat::json::kind(value);
    Err(TypeError(format!(
        "cannot unmarshal {found} into a value of type {wanted}"
    )))
}

/// A member of a map; its name is compared without regard to case if it has no exact one.
pub(crate) fn field<'m>(map: &'m Map<String, Json>, name: &str) -> Option<&'m Json> {
    map.get(name).or_else(|| {
        map.iter()
            .find_map(|(own, value)| own.eq_ignore_ascii_case(name).then_some(value))
    })
}

/// A text. Other scalars are written as texts, nothing is empty.
pub(crate) fn text(value: &Json) -> Typed<String> {
    match value {
        Json::Null => Ok(String::new()),
        Json::String(text) => Ok(text.clone()),
        Json::Bool(b) => Ok(b.to_string()),
        Json::Number(number) => Ok(match number.as_f64() {
            Some(f) if number.is_f64() => yaml::shortest_float(f),
            _ => number.to_string(),
        }),
        other => wrong(other, "string"),
    }
}

/// A member as a text; empty if there is none.
pub(crate) fn text_field(map: &Map<String, Json>, name: &str) -> Typed<String> {
    field(map, name).map_or(Ok(String::new()), text)
}

/// A list of texts; `None` for nothing.
pub(crate) fn texts(value: &Json) -> Typed<Option<Vec<String>>> {
    match value {
        Json::Null => Ok(None),
        Json::Array(items) => items.iter().map(text).collect::<Typed<_>>().map(Some),
        other => wrong(other, "[]string"),
    }
}

/// A map of texts; `None` for nothing.
pub(crate) fn text_map(value: &Json) -> Typed<Option<BTreeMap<String, String>>> {
    match value {
        Json::Null => Ok(None),
        Json::Object(members) => members
            .iter()
            .map(|(key, value)| Ok((key.clone(), text(value)?)))
            .collect::<Typed<_>>()
            .map(Some),
        other => wrong(other, "map[string]string"),
    }
}

/// The members of a map; none for nothing.
pub(crate) fn map(value: &Json) -> Typed<Map<String, Json>> {
    match value {
        Json::Null => Ok(Map::new()),
        Json::Object(members) => Ok(members.clone()),
        other => wrong(other, "struct"),
    }
}

/// The items of a list; none for nothing.
pub(crate) fn list(value: &Json) -> Typed<Vec<Json>> {
    match value {
        Json::Null => Ok(Vec::new()),
        Json::Array(items) => Ok(items.clone()),
        other => wrong(other, "slice"),
    }
}

pub(crate) fn boolean(value: &Json) -> Typed<bool> {
    match value {
        Json::Null => Ok(false),
        Json::Bool(b) => Ok(*b),
        other => wrong(other, "bool"),
    }
}

pub(crate) fn integer(value: &Json) -> Typed<i64> {
    match value {
        Json::Null => Ok(0),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Ok(number),
            None => wrong(value, "int"),
        },
        other => wrong(other, "int"),
    }
}
