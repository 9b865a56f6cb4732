//! JSON to Lua and back. An absent value and null are both nil in Lua.

use crate::{Returned, meter::Meter, number as numbers};
use mlua::{Error, Lua, Table, Value as Lv};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;

/// Maximum nesting of tables.
const DEPTH: usize = 200;
/// Bytes of an error that get no more words for the tables around it.
const LONG_MESSAGE: usize = 1024;

pub fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<Lv> {
    Ok(match value {
        Value::Null => Lv::Nil,
        Value::Bool(b) => Lv::Boolean(*b),
        Value::Number(n) => Lv::Number(n.as_f64().unwrap_or_default()),
        Value::String(s) => Lv::String(lua.create_string(s)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for item in items.iter().filter(|i| !i.is_null()) {
                table.raw_push(to_lua(lua, item)?)?;
            }
            Lv::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, field) in fields {
                table.raw_set(key.as_str(), to_lua(lua, field)?)?;
            }
            Lv::Table(table)
        }
    })
}

/// Converts a script's return value.
pub fn returned(value: Lv, meter: &Meter) -> mlua::Result<Returned> {
    Ok(match value {
        Lv::Nil => Returned::Nil,
        Lv::Table(table) => Returned::Table(
            Reader {
                meter,
                seen: HashSet::new(),
                depth: 0,
            }
            .table(&table)
            .map_err(as_told)?,
        ),
        other => Returned::Other(type_name(&other)),
    })
}

/// Lua's name for a value's type.
pub fn type_name(value: &Lv) -> &'static str {
    match value {
        Lv::Nil => "nil",
        Lv::Boolean(_) => "boolean",
        Lv::Integer(_) | Lv::Number(_) => "number",
        Lv::String(_) => "string",
        Lv::Table(_) => "table",
        Lv::Function(_) => "function",
        Lv::Thread(_) => "thread",
        _ => "userdata",
    }
}

struct Reader<'a> {
    meter: &'a Meter,
    /// Tables already visited; a repeated one is refused, because it could contain itself.
    seen: HashSet<usize>,
    depth: usize,
}

impl Reader<'_> {
    fn table(&mut self, table: &Table) -> mlua::Result<Value> {
        if self.depth == DEPTH || !self.seen.insert(table.to_pointer() as usize) {
            return Err(Error::runtime(
                "cannot encode recursively nested tables to JSON",
            ));
        }
        self.depth += 1;
        let (mut fields, mut items) = (Map::new(), Vec::new());
        for pair in table.pairs::<Lv, Lv>() {
            let (key, value) = pair?;
            self.meter.charge(1).map_err(Error::external)?;
            match key {
                Lv::String(key) => drop(fields.insert(key.to_string_lossy(), self.value(value)?)),
                Lv::Integer(key) => items.push((key as f64, self.value(value)?)),
                Lv::Number(key) => items.push((key, self.value(value)?)),
                _ => return Err(mixed()),
            }
        }
        self.depth -= 1;
        match (fields.is_empty(), items.is_empty()) {
            (false, false) => Err(mixed()),
            (false, true) => Ok(Value::Object(fields)),
            (true, _) => list(items),
        }
    }

    fn value(&mut self, value: Lv) -> mlua::Result<Value> {
        self.plain(value).map_err(as_told)
    }

    fn plain(&mut self, value: Lv) -> mlua::Result<Value> {
        Ok(match value {
            Lv::Nil => Value::Null,
            Lv::Boolean(b) => b.into(),
            Lv::Integer(n) => n.into(),
            Lv::Number(n) => number(n)?,
            Lv::String(s) => {
                self.meter
                    .charge(s.as_bytes().len() as u64 / 64)
                    .map_err(Error::external)?;
                s.to_string_lossy().into()
            }
            Lv::Table(t) => self.table(&t)?,
            other => {
                return Err(Error::runtime(format!(
                    "cannot encode {} to JSON",
                    type_name(&other)
                )));
            }
        })
    }
}

/// Go's encoder adds these words for each table around the value that it refuses; ours stops when
/// the message is long enough to be of no use.
fn as_told(error: Error) -> Error {
    match error {
        Error::RuntimeError(text) if text.len() < LONG_MESSAGE => Error::RuntimeError(format!(
            "json: error calling MarshalJSON for type json.jsonValue: {text}"
        )),
        other => other,
    }
}

fn mixed() -> Error {
    Error::runtime("cannot encode mixed or invalid key types")
}

fn list(mut items: Vec<(f64, Value)>) -> mlua::Result<Value> {
    items.sort_by(|a, b| a.0.total_cmp(&b.0));
    if items
        .iter()
        .zip(1u32..)
        .any(|((key, _), expected)| *key != f64::from(expected))
    {
        return Err(Error::runtime("cannot encode sparse array"));
    }
    Ok(items.into_iter().map(|(_, item)| item).collect())
}

/// Whole numbers become JSON integers if they fit.
fn number(n: f64) -> mlua::Result<Value> {
    if n.fract() == 0.0 && n.abs() < 9.2e18 {
        return Ok((n as i64).into());
    }
    Number::from_f64(n)
        .map(Value::Number)
        .ok_or_else(|| Error::runtime(format!("json: unsupported value: {}", numbers::text(n))))
}
