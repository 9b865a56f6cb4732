//! Values as documents, for formats that are written without going through JSON.
//!
//! Main function: [`to_document`].

use super::args::{DEPTH, fails};
use super::json_value::text;
use crate::document::{Document, Field};
use crate::template::{Budget, Error, JsonForm, Object, Value, is_exported};

/// What go-yaml v3 and BurntSushi/toml see of a value. What it makes is charged, since a value may
/// hold another many times.
pub fn to_document(value: &Value, budget: &Budget) -> Result<Document, Error> {
    convert(value, budget, 0)
}

fn convert(value: &Value, budget: &Budget, depth: usize) -> Result<Document, Error> {
    if depth > DEPTH {
        return fails("values nest too deeply to be written");
    }
    budget.memory(size_of::<Document>())?;
    Ok(match value {
        Value::Nil => Document::Nil,
        Value::Bool(b) => Document::Bool(*b),
        Value::Int(_, int) => Document::Int(*int),
        Value::Uint(_, uint) => Document::Uint(*uint),
        Value::Float(float) => Document::Float(*float),
        Value::Complex(..) => return fails("unsupported type: complex128"),
        Value::String(string) => Document::Text(text(string, budget)?),
        Value::Bytes(bytes) => {
            budget.memory(bytes.len().saturating_mul(size_of::<Document>()))?;
            let number = |byte: &u8| Document::Uint((*byte).into());
            Document::List(bytes.as_bytes().iter().map(number).collect())
        }
        Value::List(list) if list.is_nil() => Document::NilList,
        Value::Map(map) if map.is_nil() => Document::NilMap,
        Value::List(list) => Document::List(
            list.items()
                .iter()
                .map(|item| convert(item, budget, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Value::Map(map) => Document::Map(
            map.entries()
                .into_iter()
                .map(|(key, value)| Ok((text(&key, budget)?, convert(&value, budget, depth + 1)?)))
                .collect::<Result<_, Error>>()?,
        ),
        Value::Object(object) => return structure(object.as_ref(), budget, depth),
    })
}

fn structure(object: &dyn Object, budget: &Budget, depth: usize) -> Result<Document, Error> {
    if let Some(inner) = object.underlying() {
        return convert(&inner, budget, depth + 1);
    }
    match object.json() {
        JsonForm::Text(text) => Ok(Document::Text(text)),
        JsonForm::Time(text) => Ok(Document::Time(text)),
        // The names in JSON are those of other tags.
        JsonForm::Fields(_) => {
            let exported = object.fields().into_iter().enumerate();
            let fields = exported.filter(|(_, (name, _))| is_exported(name)).map(
                |(index, (name, value))| {
                    let value = convert(&value, budget, depth + 1)?;
                    Ok(Field { name, index, value })
                },
            );
            Ok(Document::Struct(fields.collect::<Result<_, Error>>()?))
        }
    }
}
