//! Helm's functions that read and write YAML, JSON and TOML.
//!
//! Main value: [`TABLE`]. As in Helm, a value that cannot be encoded becomes an empty text, and a
//! text that cannot be parsed becomes a map or list with the error in it, unless the function's
//! name begins with `must`. Exceeding the budget is always an error.

use serde_json::Value as Json;
use tiphys_gocompat::sprig;
use tiphys_gocompat::template::{
    Budget, Call, Error, ErrorKind, Function, LIST, List, MAP, Map, Str, Type, Value,
};
use tiphys_gocompat::toml;
use tiphys_gocompat::yaml::{self, Duplicates};

const ONE: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::String];

pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "toYaml",
        Function::new(ONE, |call| swallowed(yaml_of(call.arg(0), call.budget()))),
    ),
    (
        "toYamlPretty",
        Function::new(ONE, |call| swallowed(pretty(call.arg(0), call.budget()))),
    ),
    (
        "mustToYaml",
        Function::new(ONE, |call| yaml_of(call.arg(0), call.budget())),
    ),
    (
        "fromYaml",
        Function::new(TEXT, |call| as_map(read_yaml(call), Map::new())),
    ),
    (
        "fromYamlArray",
        Function::new(TEXT, |call| as_list(read_yaml(call), List::new(Vec::new()))),
    ),
    ("toToml", Function::new(ONE, to_toml)),
    (
        "mustToToml",
        Function::new(ONE, |call| {
            toml_of(call)?.map_err(|e| Error::function(e.to_string()))
        }),
    ),
    ("fromToml", Function::new(TEXT, from_toml)),
    (
        "fromJson",
        Function::new(TEXT, |call| as_map(read_json(call), Map::nil(MAP))),
    ),
    (
        "fromJsonArray",
        Function::new(TEXT, |call| as_list(read_json(call), List::nil(LIST))),
    ),
];

/// Charges the budget for a list or map with this many elements.
pub(super) fn charge(budget: &Budget, elements: usize) -> Result<(), Error> {
    budget.memory(elements.saturating_mul(size_of::<(Str, Value)>()))
}

/// A value that cannot be encoded becomes an empty text.
fn swallowed(written: Result<Value, Error>) -> Result<Value, Error> {
    match written {
        Err(e) if e.kind() != ErrorKind::Limit => Ok("".into()),
        other => other,
    }
}

/// YAML without the trailing newline.
pub(super) fn yaml_of(value: &Value, budget: &Budget) -> Result<Value, Error> {
    let marshal = |value: &Json| {
        yaml::marshal(value).map_err(|e| Error::function(format!("yaml: {}", e.go_text())))
    };
    emitted(marshal(&sprig::to_json_value(value, budget)?)?, budget)
}

fn pretty(value: &Value, budget: &Budget) -> Result<Value, Error> {
    emitted(
        yaml::to_string_v3(&sprig::to_document(value, budget)?),
        budget,
    )
}

fn emitted(mut text: String, budget: &Budget) -> Result<Value, Error> {
    budget.memory(text.len())?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text.into())
}

/// The parsed value and the prefix of the error if its type is wrong, or why it cannot be parsed.
type Read = Result<Result<(Value, &'static str), String>, Error>;

/// The prefix of sigs.k8s.io/yaml when the YAML is valid but has the wrong type.
const DECODING: &str = "error unmarshaling JSON: while decoding JSON: ";

fn read_yaml(call: &Call<'_>) -> Read {
    let text = call.string(0)?;
    call.budget().memory(text.len())?;
    call.budget().steps(text.len() as u64)?;
    let limits = yaml::Limits::default();
    match yaml::parse_document(text.as_bytes(), &limits, Duplicates::LastWins) {
        Ok(json) => Ok(Ok((charged(&json, call.budget())?, DECODING))),
        Err(e) => Ok(Err(e.json_text())),
    }
}

/// A short text with aliases can expand to a large value.
fn charged(json: &Json, budget: &Budget) -> Result<Value, Error> {
    charge(budget, nodes(json))?;
    Ok(Value::from_json(json))
}

fn nodes(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Json::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        Json::String(text) => 1 + text.len() / size_of::<(Str, Value)>(),
        _ => 1,
    }
}

fn read_json(call: &Call<'_>) -> Read {
    let text = call.string(0)?;
    call.budget().steps(text.len() as u64)?;
    match sprig::read_json(text.as_bytes(), call.budget()) {
        Ok(value) => Ok(Ok((value, ""))),
        Err(e) if e.kind() == ErrorKind::Limit => Err(e),
        Err(e) => Ok(Err(e.to_string())),
    }
}

fn toml_of(call: &Call<'_>) -> Result<Result<Value, toml::TomlError>, Error> {
    let written = toml::to_string(&sprig::to_document(call.arg(0), call.budget())?);
    call.budget()
        .memory(written.as_ref().map_or(0, String::len))?;
    Ok(written.map(Value::from))
}

/// A value that cannot be encoded becomes the error text; an invalid value is an error even here.
fn to_toml(call: &mut Call<'_>) -> Result<Value, Error> {
    match toml_of(call)? {
        Err(e) if !matches!(call.arg(0), Value::Nil) => Ok(e.to_string().into()),
        other => other.map_err(|e| Error::function(e.to_string())),
    }
}

fn from_toml(call: &mut Call<'_>) -> Result<Value, Error> {
    let text = call.text(0)?;
    call.budget().memory(text.len())?;
    match toml::parse(&text) {
        Ok(table) => {
            let table = Json::Object(table);
            charge(call.budget(), nodes(&table))?;
            Ok(Value::from_data(&table))
        }
        Err(e) => Ok(Value::Map(Map::of(
            MAP,
            [(Str::from("Error"), e.to_string().into())],
        ))),
    }
}

/// A map; `null` is returned for null.
fn as_map(read: Read, null: Map) -> Result<Value, Error> {
    let why = match read? {
        Ok((map @ Value::Map(_), _)) => return Ok(map),
        Ok((Value::Nil, _)) => return Ok(Value::Map(null)),
        Ok((other, prefix)) => wrong(&other, prefix, "map[string]interface {}"),
        Err(why) => why,
    };
    Ok(Value::Map(Map::of(MAP, [(Str::from("Error"), why.into())])))
}

fn as_list(read: Read, null: List) -> Result<Value, Error> {
    let why = match read? {
        Ok((list @ Value::List(_), _)) => return Ok(list),
        Ok((Value::Nil, _)) => return Ok(Value::List(null)),
        Ok((other, prefix)) => wrong(&other, prefix, "[]interface {}"),
        Err(why) => why,
    };
    Ok(Value::List(List::new(vec![why.into()])))
}

fn wrong(value: &Value, prefix: &str, wanted: &str) -> String {
    let kind = match value {
        Value::Nil => "null",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "number",
    };
    format!("{prefix}json: cannot unmarshal {kind} into Go value of type {wanted}")
}
