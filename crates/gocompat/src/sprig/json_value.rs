//! Converts values to a JSON document, for formats that are written via JSON, as in
//! sigs.k8s.io/yaml.
//!
//! Main function: [`to_json_value`].

use super::args::{DEPTH, fails};
use crate::template::{Budget, Error, JsonForm, Object, Str, Value};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value as Json};

/// The document that encoding/json would produce for a value. The result is charged, because a
/// value may contain another one many times.
pub fn to_json_value(value: &Value, budget: &Budget) -> Result<Json, Error> {
    convert(value, budget, 0)
}

fn convert(value: &Value, budget: &Budget, depth: usize) -> Result<Json, Error> {
    if depth > DEPTH {
        return fails("json: unsupported value: encountered a cycle via map[string]interface {}");
    }
    budget.memory(size_of::<Json>())?;
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Int(_, i) => Json::Number((*i).into()),
        Value::Uint(_, u) => Json::Number((*u).into()),
        Value::Float(f) => match Number::from_f64(*f) {
            Some(number) => Json::Number(number),
            None if f.is_nan() => return fails("json: unsupported value: NaN"),
            None => {
                return fails(format!(
                    "json: unsupported value: {}Inf",
                    if *f > 0.0 { '+' } else { '-' }
                ));
            }
        },
        Value::Complex(..) => return fails("json: unsupported type: complex128"),
        Value::String(s) => Json::String(text(s, budget)?),
        Value::Bytes(b) => {
            budget.memory(2 * b.len())?;
            Json::String(STANDARD.encode(b))
        }
        Value::List(list) if list.is_nil() => Json::Null,
        Value::Map(map) if map.is_nil() => Json::Null,
        Value::List(list) => Json::Array(
            list.items()
                .iter()
                .map(|item| convert(item, budget, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Value::Map(map) => {
            let mut members = Map::new();
            for (key, value) in map.entries() {
                members.insert(text(&key, budget)?, convert(&value, budget, depth + 1)?);
            }
            Json::Object(members)
        }
        Value::Object(object) => return object_value(object.as_ref(), budget, depth),
    })
}

fn object_value(object: &dyn Object, budget: &Budget, depth: usize) -> Result<Json, Error> {
    if let Some(inner) = object.underlying() {
        return convert(&inner, budget, depth + 1);
    }
    match object.json() {
        JsonForm::Text(text) | JsonForm::Time(text) => Ok(Json::String(text)),
        JsonForm::Fields(fields) => {
            let members = fields
                .into_iter()
                .map(|(name, value)| Ok((name.to_owned(), convert(&value, budget, depth + 1)?)));
            Ok(Json::Object(members.collect::<Result<_, Error>>()?))
        }
    }
}

/// Every byte that is not UTF-8 is replaced on its own.
pub(super) fn text(bytes: &Str, budget: &Budget) -> Result<String, Error> {
    budget.memory(bytes.len())?;
    if let Ok(text) = std::str::from_utf8(bytes.as_bytes()) {
        return Ok(text.to_owned());
    }
    let chunks = bytes.as_bytes().utf8_chunks();
    Ok(chunks
        .map(|chunk| chunk.valid().to_owned() + &"\u{fffd}".repeat(chunk.invalid().len()))
        .collect())
}
