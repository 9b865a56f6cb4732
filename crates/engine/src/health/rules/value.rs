//! The value of an expression: a borrowed part of the object, or a small owned value.
//!
//! Main type: [`Val`]. A missing field and null are the same here, and so are a null item of a list
//! and no item at all, because Argo CD's scripts do not see nulls either.

use serde_json::Value;
use std::{borrow::Cow, cmp::Ordering};
use tiphys_lua::number_text;

#[derive(Clone, Debug)]
pub enum Val<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    /// A map or a list of the object.
    Json(&'a Value),
    List(Vec<Val<'a>>),
}

impl<'a> From<&'a Value> for Val<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(n) => n.as_f64().map_or(Self::Null, Self::Number),
            Value::String(s) => Self::Text(Cow::Borrowed(s)),
            Value::Array(_) | Value::Object(_) => Self::Json(value),
        }
    }
}

impl<'a> Val<'a> {
    /// A field of a map; missing for all other values.
    pub fn field(&self, name: &str) -> Val<'a> {
        match self {
            Self::Json(value) => value.get(name).map_or(Self::Null, Self::from),
            _ => Self::Null,
        }
    }

    /// Neither missing nor false.
    pub fn holds(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    /// Missing, or a text, list or map without content.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::Json(Value::Array(list)) => list.iter().all(Value::is_null),
            Self::Json(Value::Object(map)) => map.values().all(Value::is_null),
            Self::List(list) => list.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Json(_) => false,
        }
    }

    /// The items of a list, or the values of a map in the order of their keys; without nulls.
    pub fn items(self) -> Items<'a> {
        match self {
            Self::Json(Value::Array(list)) => Items::Array(list.iter()),
            Self::Json(Value::Object(map)) => Items::Map(map.values()),
            Self::List(list) => Items::List(list.into_iter()),
            _ => Items::List(Vec::new().into_iter()),
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// As text for a message; a missing value is empty.
    pub fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Null => Cow::Borrowed(""),
            Self::Bool(b) => Cow::Borrowed(if b { "true" } else { "false" }),
            Self::Number(n) => Cow::Owned(number_text(n)),
            Self::Text(text) => text,
            Self::Json(value) => Cow::Owned(value.to_string()),
            Self::List(list) => Cow::Owned(
                list.into_iter()
                    .map(Val::into_text)
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        }
    }

    /// The order of two numbers or two texts; other values have none.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Values of different types are unequal, never an error.
impl PartialEq for Val<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Json(a), Self::Json(b)) => a == b,
            _ => false,
        }
    }
}

pub enum Items<'a> {
    Array(std::slice::Iter<'a, Value>),
    Map(serde_json::map::Values<'a>),
    List(std::vec::IntoIter<Val<'a>>),
}

impl<'a> Iterator for Items<'a> {
    type Item = Val<'a>;

    fn next(&mut self) -> Option<Val<'a>> {
        match self {
            Self::Array(items) => items.find(|item| !item.is_null()).map(Val::from),
            Self::Map(items) => items.find(|item| !item.is_null()).map(Val::from),
            Self::List(items) => items.next(),
        }
    }
}
