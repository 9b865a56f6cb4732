//! Go values as printers see them that look at the values themselves, not at their JSON: go-yaml v3
//! and BurntSushi/toml.
//!
//! Main type: [`Document`]. JSON has neither times nor the order and the names of a struct's
//! fields, and writes bytes as text.

use serde_json::Value;

/// A Go value without pointers and interfaces.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Nil,
    /// A slice that was never made; YAML prints it as an empty one, TOML leaves it out.
    NilList,
    /// The same of a map.
    NilMap,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
    /// A `time.Time` as RFC 3339 writes it.
    Time(String),
    List(Vec<Document>),
    /// A map in any order; each printer sorts it in its own way.
    Map(Vec<(String, Document)>),
    /// The exported fields of a struct, in its order.
    Struct(Vec<Field>),
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// As Go names it.
    pub name: &'static str,
    /// Where the struct has it, counted with the fields that are not exported.
    pub index: usize,
    pub value: Document,
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(int), _) => Self::Int(int),
                (None, Some(uint)) => Self::Uint(uint),
                (None, None) => Self::Float(n.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Map(
                members
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::from(value)))
                    .collect(),
            ),
        }
    }
}
