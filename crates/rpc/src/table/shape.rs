//! What messages look like in JSON, found by reading them from nothing. Main function: [`of`].

use super::inside::looks_inside;
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor, value::StrDeserializer,
    },
};
use std::fmt;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Boolean,
    Int32,
    Int64,
    Number,
    Text,
    /// Whatever it may be: nothing says.
    Any,
    List(Box<Shape>),
    /// By names.
    Map(Box<Shape>),
    Message {
        name: &'static str,
        fields: &'static [&'static str],
    },
}

/// Finds the type of a message's part: the names of the fields that lead there, which may be those
/// of the items of lists and maps.
pub type Find = fn(&[&str]) -> Shape;

/// The messages of a call.
#[derive(Clone, Copy)]
pub struct Shapes {
    pub request: Find,
    pub reply: Find,
}

impl Shapes {
    pub(super) fn of<Q: DeserializeOwned, R: DeserializeOwned>() -> Self {
        Self {
            request: of::<Q>,
            reply: of::<R>,
        }
    }
}

/// The type of a part of `T`; of `T` itself, if the way is empty.
pub fn of<T: DeserializeOwned>(way: &[&str]) -> Shape {
    found(T::deserialize(Walk(way)))
}

fn found<T>(read: Result<T, Found>) -> Shape {
    read.err().map_or(Shape::Any, |found| found.0)
}

/// The type, as the error of reading it.
#[derive(Debug)]
struct Found(Shape);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Found {}

impl serde::de::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(Shape::Any)
    }
}

/// Has no value: it goes the way that is left, and answers the next question for a value with its
/// type.
#[derive(Clone, Copy)]
struct Walk<'a>(&'a [&'a str]);

impl Walk<'_> {
    /// The type of a list or a map, or what is found further on the way in an item.
    fn around(self, item: Shape, whole: fn(Box<Shape>) -> Shape) -> Found {
        Found(match self.0 {
            [] => whole(Box::new(item)),
            _ => item,
        })
    }
}

macro_rules! scalars {
    ($($method:ident $shape:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
            Err(Found(Shape::$shape))
        }
    )*};
}

impl<'de> Deserializer<'de> for Walk<'_> {
    type Error = Found;

    scalars! {
        deserialize_bool Boolean deserialize_str Text deserialize_string Text
        deserialize_char Text deserialize_bytes Text deserialize_byte_buf Text
        deserialize_i8 Int32 deserialize_i16 Int32 deserialize_i32 Int32 deserialize_i64 Int64
        deserialize_u8 Int32 deserialize_u16 Int32 deserialize_u32 Int64 deserialize_u64 Int64
        deserialize_f32 Number deserialize_f64 Number deserialize_any Any deserialize_unit Any
        deserialize_identifier Text deserialize_ignored_any Any
    }

    looks_inside!(Found);

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Found> {
        match self.0.split_first() {
            None => Err(Found(Shape::Message { name, fields })),
            Some((field, rest)) => visitor.visit_map(Field(field, Walk(rest))),
        }
    }
}

impl<'de> SeqAccess<'de> for Walk<'_> {
    type Error = Found;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Found> {
        let item = found(seed.deserialize(*self));
        Err(self.around(item, Shape::List))
    }
}

impl<'de> MapAccess<'de> for Walk<'_> {
    type Error = Found;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Found> {
        seed.deserialize(StrDeserializer::new("")).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Found> {
        let item = found(seed.deserialize(*self));
        Err(self.around(item, Shape::Map))
    }
}

/// A message of which there is only one field.
struct Field<'a>(&'a str, Walk<'a>);

impl<'de> MapAccess<'de> for Field<'_> {
    type Error = Found;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Found> {
        seed.deserialize(StrDeserializer::new(self.0)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Found> {
        Err(Found(found(seed.deserialize(self.1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Outer {
        is_on: Option<bool>,
        parts: Vec<Inner>,
        by_name: BTreeMap<String, Vec<Inner>>,
        anything: serde_json::Value,
    }

    #[derive(Default, Deserialize, Serialize)]
    #[serde(default)]
    struct Inner {
        size: i64,
        next: Option<Box<Inner>>,
    }

    #[test]
    fn parts_of_messages_have_types() {
        let inner = || Shape::Message {
            name: "Inner",
            fields: &["size", "next"],
        };
        let list = |of: Shape| Shape::List(Box::new(of));
        let cases: [(&[&str], Shape); 9] = [
            (
                &[],
                Shape::Message {
                    name: "Outer",
                    fields: &["isOn", "parts", "byName", "anything"],
                },
            ),
            (&["isOn"], Shape::Boolean),
            (&["parts"], list(inner())),
            (&["parts", "size"], Shape::Int64),
            (&["parts", "next"], inner()),
            (&["parts", "next", "next", "size"], Shape::Int64),
            (&["byName"], Shape::Map(Box::new(list(inner())))),
            (&["byName", "size"], Shape::Int64),
            (&["anything"], Shape::Any),
        ];
        for (way, shape) in cases {
            assert_eq!(of::<Outer>(way), shape, "{way:?}");
        }
    }
}
