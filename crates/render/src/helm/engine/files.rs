//! `.Files`: the files of a chart other than its templates.
//!
//! Main type: [`Files`].

use super::formats::{charge, yaml_of};
use crate::helm::chart::File;
use base64::{Engine, engine::general_purpose::STANDARD};
use std::rc::Rc;
use tiphys_gocompat::glob::Glob;
use tiphys_gocompat::template::{
    BYTES, Call, Error, Function, Map, Named, Object, Str, Type, Value,
};

static FILES: Named = Named {
    name: "engine.files",
    underlying: Some(Type::Map(&BYTES)),
};

const NAME: &[Type] = &[Type::String];

static METHODS: &[(&str, Function)] = &[
    (
        "Get",
        Function::new(NAME, |call| {
            Ok(Value::String(content(call)?.unwrap_or_default()))
        }),
    ),
    (
        "GetBytes",
        Function::new(NAME, |call| {
            Ok(Value::Bytes(content(call)?.unwrap_or_default()))
        }),
    ),
    ("Glob", Function::new(NAME, glob)),
    ("Lines", Function::new(NAME, lines)),
    (
        "AsConfig",
        Function::new(&[], |call| as_map(call, Value::String)),
    ),
    (
        "AsSecrets",
        Function::new(&[], |call| {
            as_map(call, |data| STANDARD.encode(data).into())
        }),
    ),
];

/// `engine.files`: contents by name.
pub struct Files(Map);

impl Files {
    /// Shares the contents with the chart instead of copying them.
    pub fn value(files: &[File]) -> Value {
        let entries = files.iter().map(|f| {
            (
                Str::from(f.name.as_str()),
                Value::Bytes(Str::from(f.data.clone())),
            )
        });
        Value::Object(Rc::new(Self(Map::of(Type::Map(&BYTES), entries))))
    }

    fn of(call: &Call<'_>) -> Map {
        match call.receiver().underlying().into_owned() {
            Value::Map(map) => map,
            _ => Map::new(),
        }
    }
}

impl Object for Files {
    fn go_type(&self) -> Type {
        Type::Named(&FILES)
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::Map(self.0.clone()))
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

fn bytes(value: Value) -> Str {
    match value {
        Value::Bytes(data) => data,
        _ => Str::default(),
    }
}

fn content(call: &Call<'_>) -> Result<Option<Str>, Error> {
    Ok(Files::of(call).get(call.string(0)?).map(bytes))
}

/// The files whose names match. An invalid pattern matches everything.
fn glob(call: &mut Call<'_>) -> Result<Value, Error> {
    let pattern = call.text(0)?.into_owned();
    let glob = Glob::new(&pattern, &['/'])
        .or_else(|_| Glob::new("**", &[]))
        .ok();
    let files = Files::of(call);
    let mut found = Vec::new();
    for (name, data) in files.entries() {
        call.budget()
            .steps((pattern.len() as u64 + 1).saturating_mul(name.len() as u64 + 1) / 16)?;
        if glob
            .as_ref()
            .is_none_or(|glob| glob.matches(&name.to_str()))
        {
            found.push((name, data));
        }
    }
    charge(call.budget(), found.len())?;
    Ok(Value::Object(Rc::new(Files(Map::of(
        Type::Map(&BYTES),
        found,
    )))))
}

fn lines(call: &mut Call<'_>) -> Result<Value, Error> {
    let Some(data) = content(call)?.filter(|data| !data.is_empty()) else {
        return Ok(Value::strings::<Str>([]));
    };
    let text = data.as_bytes();
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    charge(call.budget(), lines.len())?;
    call.budget().memory(text.len())?;
    Ok(Value::strings(lines))
}

/// The contents as YAML, keyed by the last part of their names.
fn as_map(call: &mut Call<'_>, shown: fn(Str) -> Value) -> Result<Value, Error> {
    let mut entries = Vec::new();
    for (name, data) in Files::of(call).entries() {
        let data = bytes(data);
        call.budget().memory(2 * data.len())?;
        let name = name
            .as_bytes()
            .rsplit(|b| *b == b'/')
            .next()
            .map(Str::from)
            .unwrap_or_default();
        entries.push((name, shown(data)));
    }
    yaml_of(
        &Value::Map(Map::of(Type::Map(&Type::String), entries)),
        call.budget(),
    )
}
