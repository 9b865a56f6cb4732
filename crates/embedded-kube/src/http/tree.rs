//! Parses JSON into a tree and records the key problems that a strict decoder reports. Main type:
//! [`Tree`].

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use tiphys_kube_schema::gotypes::{Struct, Type};
use tiphys_kube_schema::{gofmt, gotypes};

/// The fields of an operation of a JSON patch.
const OPERATION: [&str; 4] = ["from", "op", "path", "value"];

/// The maximum number of findings, as in Go's strict decoder.
const MOST_FINDINGS: usize = 100;

/// Type information about a value before it is decoded.
#[derive(Clone, Copy)]
pub enum Known {
    Nothing,
    /// Go reads it into this struct.
    Struct(&'static Struct),
    /// Go reads it into this type.
    Type(&'static Type),
    /// The operations of a JSON patch, or one of them.
    Operations,
    /// None of its keys is reported.
    Skipped,
}

impl Known {
    fn of_struct(self) -> Option<&'static Struct> {
        match self {
            Self::Struct(of) => Some(of),
            Self::Type(Type::Message(message)) => message.find(),
            _ => None,
        }
    }

    /// The type of the value under a key; none if there is no such field.
    fn field(self, key: &str) -> Option<Self> {
        match self {
            Self::Type(Type::Map(item)) => Some(Self::Type(item)),
            Self::Operations => OPERATION.contains(&key).then_some(Self::Nothing),
            Self::Nothing => Some(Self::Nothing),
            Self::Struct(_) if matches!(key, "apiVersion" | "kind") => Some(Self::Nothing),
            other => Some(Self::Type(&other.of_struct()?.field(key)?.ty)),
        }
    }

    fn element(self) -> Self {
        match self {
            Self::Type(Type::List(item)) => Self::Type(item),
            Self::Nothing | Self::Operations => self,
            _ => Self::Skipped,
        }
    }
}

/// Builds a tree and reports duplicate keys: in a map the last value wins, while a value of a Go
/// struct is decoded into again. Nulls inside maps are kept.
pub struct Tree<'a> {
    /// The path of the value as in messages: `spec.containers[0].name`.
    pub path: String,
    pub known: Known,
    pub findings: &'a mut Vec<String>,
}

impl Tree<'_> {
    fn at(&mut self, path: String, known: Known) -> Tree<'_> {
        Tree {
            path,
            known,
            findings: &mut *self.findings,
        }
    }

    fn note(&mut self, what: &str, path: &str) {
        let finding = format!("{what} field {}", gofmt::quoted(path));
        if self.findings.len() < MOST_FINDINGS && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn insert(&self, map: &mut Map<String, Value>, key: String, value: Value) {
        let field = self.known.of_struct().and_then(|of| of.field(&key));
        match (field, map.get_mut(&key)) {
            (Some(field), Some(old)) => gotypes::read_over(old, value, field),
            _ => drop(map.insert(key, value)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            let known = self.known.element();
            match seq.next_element_seed(self.at(path, known))? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            let known = self.known.field(&key);
            match known {
                // Only for operations is there no later decoder that reports it.
                None if matches!(self.known, Known::Operations) => self.note("unknown", &path),
                Some(_) if map.contains_key(&key) => self.note("duplicate", &path),
                _ => {}
            }
            let value = access.next_value_seed(self.at(path, known.unwrap_or(Known::Skipped)))?;
            self.insert(&mut map, key, value);
        }
        Ok(Value::Object(map))
    }
}
