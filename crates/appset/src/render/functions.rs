//! The functions of templates: sprig without those that read the environment, and Argo CD's own.
//! Main function: [`table`].

use super::literal;
use crate::names;
use std::sync::{Arc, LazyLock};
use tiphys_gocompat::sprig::{self, Sources};
use tiphys_gocompat::template::{Call, Error, Function, Functions, List, Map, Type, Value};
use tiphys_gocompat::yaml;

static TABLE: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(all()));
static NESTED: LazyLock<Arc<Functions>> = LazyLock::new(|| {
    let mut functions = all();
    functions.set_around(literal::AROUND);
    Arc::new(functions)
});

fn all() -> Functions {
    let mut functions = Functions::builtins();
    functions.extend(
        sprig::functions::<Sources>()
            .into_iter()
            .filter(|(name, _)| !matches!(*name, "env" | "expandenv" | "getHostByName")),
    );
    functions.extend(OWN.iter().copied());
    functions
}

const OWN: &[(&str, Function)] = &[
    (
        "normalize",
        Function::new(&[Type::String], |call| {
            Ok(names::normalize(&call.text(0)?).into())
        }),
    ),
    ("slugify", Function::variadic(&[Type::Any], slugify)),
    ("toYaml", Function::new(&[Type::Any], to_yaml)),
    ("fromYaml", Function::new(&[Type::String], from_yaml)),
    (
        "fromYamlArray",
        Function::new(&[Type::String], from_yaml_array),
    ),
];

/// The functions, for parsing and executing.
pub fn table() -> &'static Arc<Functions> {
    &TABLE
}

/// The same where parameters are protected, see [`literal`].
pub fn nested() -> &'static Arc<Functions> {
    &NESTED
}

/// `slugify [max [smart]] text`; the text is always last. A size of 0 or less is no limit for a
/// smart cut.
fn slugify(call: &mut Call<'_>) -> Result<Value, Error> {
    let count = call.len();
    if count == 0 {
        return Ok("".into());
    }
    let fails = || Error::function("slugify takes a size, a boolean and a text");
    let Value::String(text) = call.arg(count - 1) else {
        return Err(fails());
    };
    let smart = match call.arg(1) {
        Value::Bool(smart) if count > 2 => *smart,
        _ if count > 2 => return Err(fails()),
        _ => true,
    };
    let max = match call.arg(0) {
        Value::Int(_, max) if count > 1 => match usize::try_from(*max) {
            Ok(max) => max,
            Err(_) if smart && *max < 0 => 0,
            Err(_) => return Err(fails()),
        },
        _ if count > 1 => return Err(fails()),
        _ => names::LONGEST_SLUG,
    };
    Ok(names::slugify(&text.to_str(), max, smart).into())
}

fn to_yaml(call: &mut Call<'_>) -> Result<Value, Error> {
    let json = sprig::to_json_value(call.arg(0), call.budget())?;
    let text = yaml::marshal(&json).map_err(|e| Error::function(e.to_string()))?;
    call.budget().memory(text.len())?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).into())
}

fn from_yaml(call: &mut Call<'_>) -> Result<Value, Error> {
    match parse(call)? {
        serde_json::Value::Null => Ok(Value::Map(Map::new())),
        json @ serde_json::Value::Object(_) => Ok(Value::from_json(&json)),
        _ => Err(Error::function("the YAML is not a map")),
    }
}

fn from_yaml_array(call: &mut Call<'_>) -> Result<Value, Error> {
    match parse(call)? {
        serde_json::Value::Null => Ok(Value::List(List::new(Vec::new()))),
        json @ serde_json::Value::Array(_) => Ok(Value::from_json(&json)),
        _ => Err(Error::function("the YAML is not a list")),
    }
}

fn parse(call: &Call<'_>) -> Result<serde_json::Value, Error> {
    let text = call.text(0)?;
    call.budget().memory(text.len())?;
    let mut copied = 0;
    let parsed = crate::document(&text, &mut copied);
    call.budget().memory(copied)?;
    parsed.map_err(|e| Error::function(e.to_string()))
}
