//! `.Values`, `.Template` and the dot: maps of Helm's own type `common.Values`, which has methods.
//!
//! Main type: [`Table`].

use super::formats::yaml_of;
use std::rc::Rc;
use tiphys_gocompat::template::{Call, Error, Function, MAP, Map, Named, Object, Type, Value};

static VALUES: Named = Named {
    name: "common.Values",
    underlying: Some(MAP),
};

static METHODS: &[(&str, Function)] = &[
    (
        "AsMap",
        Function::new(&[], |call| Ok(Value::Map(held(call)))),
    ),
    ("YAML", Function::new(&[], yaml)),
    (
        "Table",
        Function::new(&[Type::String], |call| {
            table(&held(call), &call.text(0)?).map(Table::value)
        }),
    ),
    (
        "Encode",
        Function::new(&[Type::Any], |_| {
            Err(Error::function("there is nothing to write to"))
        }),
    ),
    (
        "PathValue",
        Function::new(&[Type::String], |call| {
            path_value(&held(call), &call.text(0)?)
        }),
    ),
];

/// `common.Values`
pub struct Table(Map);

impl Table {
    pub fn value(map: Map) -> Value {
        Value::Object(Rc::new(Self(map)))
    }
}

impl Object for Table {
    fn go_type(&self) -> Type {
        Type::Named(&VALUES)
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::Map(self.0.clone()))
    }

    fn over(&self, content: Value) -> Option<Value> {
        match content {
            Value::Map(map) => Some(Self::value(map)),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        METHODS
            .iter()
            .find_map(|(own, function)| (*own == name).then_some(function))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn held(call: &Call<'_>) -> Map {
    match call.receiver().underlying().into_owned() {
        Value::Map(map) => map,
        _ => Map::new(),
    }
}

fn yaml(call: &mut Call<'_>) -> Result<Value, Error> {
    match yaml_of(&Value::Map(held(call)), call.budget())? {
        Value::String(text) => Ok(format!("{}\n", text.to_str()).into()),
        other => Ok(other),
    }
}

fn table(map: &Map, path: &str) -> Result<Map, Error> {
    path.split('.').try_fold(map.clone(), |map, name| {
        match map
            .get(name)
            .as_ref()
            .map(|value| value.underlying().into_owned())
        {
            Some(Value::Map(inner)) => Ok(inner),
            _ => Err(Error::function(format!(
                "{} is not a table",
                tiphys_gocompat::text::quote(name)
            ))),
        }
    })
}

fn path_value(map: &Map, path: &str) -> Result<Value, Error> {
    if path.is_empty() {
        return Err(Error::function("YAML path cannot be empty"));
    }
    let (tables, name) = path
        .rsplit_once('.')
        .map_or((None, path), |(tables, name)| (Some(tables), name));
    let inner = tables
        .map_or_else(|| Ok(map.clone()), |tables| table(map, tables))
        .ok();
    match inner.and_then(|inner| inner.get(name)) {
        Some(value) if !matches!(value, Value::Map(_)) => Ok(value),
        _ => Err(Error::function(format!(
            "{} is not a value",
            tiphys_gocompat::text::quote(name)
        ))),
    }
}
