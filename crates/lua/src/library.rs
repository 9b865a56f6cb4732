//! The functions available to scripts that are written in Rust; the others are in prelude.lua.
//!
//! Main function: [`environment`]. Everything here finishes in time proportional to the steps it is
//! charged for.

use crate::{
    Limit,
    call::{Answer, Args, Fault},
    chunk,
    convert::type_name,
    format,
    meter::Meter,
    number, os, strings,
};
use mlua::{Error, Function, Lua, MultiValue, Table, Value};
use std::rc::Rc;

/// Maximum nesting of coroutines.
const COROUTINES: u32 = 100;

/// A call costs more steps than a Lua instruction, and an error more than a call.
const CALL: u64 = 25;
const ERROR: u64 = 250;

type Body = fn(&Args<'_>) -> Result<Answer, Fault>;

const FUNCTIONS: [(&str, Body); 18] = [
    ("byte", strings::byte),
    ("char", strings::char),
    ("concat", concat),
    ("date", os::date),
    ("find", strings::find),
    ("format", |args| args.text(&format::format(args)?)),
    ("gsub", strings::gsub),
    ("len", |args| {
        Ok(vec![Value::Number(args.bytes(1)?.len() as f64)])
    }),
    ("lower", strings::lower),
    ("match", strings::first_match),
    ("match_at", strings::match_at),
    ("number_text", |args| args.text(&args.bytes(1)?)),
    ("rep", strings::rep),
    ("reverse", |args| {
        args.text(&args.bytes(1)?.iter().rev().copied().collect::<Vec<_>>())
    }),
    ("sub", strings::sub),
    ("time", os::time),
    ("tonumber", to_number),
    ("upper", strings::upper),
];

/// Returns the function that creates the globals of a run.
pub fn environment(lua: &Lua, meter: &Rc<Meter>) -> mlua::Result<Function> {
    let raw = lua.create_table()?;
    for (name, body) in FUNCTIONS {
        let meter = meter.clone();
        let function = lua.create_function(move |lua, values: MultiValue| {
            let args = Args {
                lua,
                meter: &meter,
                name,
                values: &values,
            };
            answer(args.charge(CALL).and_then(|()| body(&args)), lua)
        })?;
        raw.raw_set(name, function)?;
    }
    raw.raw_set("load", lua.create_function(load)?)?;
    raw.raw_set("joined", joined(lua, meter.clone())?)?;
    raw.raw_set("caught", caught(lua, meter.clone())?)?;
    let prelude = lua
        .load(include_str!("prelude.lua"))
        .set_name("=[G]")
        .into_function()?;
    prelude.call((raw, COROUTINES))
}

/// Converts a result to true and values, or false and a message; limits are errors that cannot be
/// caught.
fn answer(result: Result<Answer, Fault>, lua: &Lua) -> mlua::Result<MultiValue> {
    match result {
        Ok(values) => Ok(std::iter::once(Value::Boolean(true))
            .chain(values)
            .collect()),
        Err(Fault::Script(message)) => Ok([
            Value::Boolean(false),
            Value::String(lua.create_string(message)?),
        ]
        .into_iter()
        .collect()),
        Err(Fault::Limit(limit)) => Err(Error::external(limit)),
        Err(Fault::Machine(error)) => Err(error),
    }
}

/// `loadstring(text, name)` with the given globals: the function, or nil and the parse error.
fn load(
    lua: &Lua,
    (globals, text, name): (Table, Value, Option<mlua::LuaString>),
) -> mlua::Result<(bool, Value, Value)> {
    let Value::String(text) = text else {
        let message = format!(
            "bad argument #1 to loadstring (string expected, got {})",
            type_name(&text)
        );
        return Ok((
            false,
            Value::String(lua.create_string(message)?),
            Value::Nil,
        ));
    };
    let name = name.map_or_else(|| "<string>".to_owned(), |n| n.to_string_lossy());
    match chunk::compile(lua, &text.as_bytes(), &name, Some(globals)) {
        Ok(function) => Ok((true, Value::Function(function), Value::Nil)),
        Err(error) => Ok((
            true,
            Value::Nil,
            Value::String(lua.create_string(chunk::message(&error))?),
        )),
    }
}

/// Joins the pieces collected by the prelude into one string.
fn joined(lua: &Lua, meter: Rc<Meter>) -> mlua::Result<Function> {
    lua.create_function(move |lua, pieces: Table| {
        let mut out = Vec::new();
        for piece in pieces.sequence_values::<mlua::LuaString>() {
            let piece = piece?;
            meter
                .charge(1 + piece.as_bytes().len() as u64 / 16)
                .map_err(Error::external)?;
            out.extend_from_slice(&piece.as_bytes());
        }
        lua.create_string(out)
    })
}

/// Handles an error for `pcall` and similar functions: returns whether it is a limit, which cannot
/// be caught, and the value for the script. It never raises an error itself: mlua walks the whole
/// stack for each, and there may be thousands of calls to unwind.
fn caught(lua: &Lua, meter: Rc<Meter>) -> mlua::Result<Function> {
    lua.create_function(move |lua, error: Value| {
        if meter.charge(ERROR).is_err() {
            return Ok((true, error));
        }
        let out_of_memory = match &error {
            Value::Error(error) => matches!(**error, Error::MemoryError(_)),
            Value::String(text) => text.as_bytes() == b"not enough memory",
            _ => false,
        };
        if out_of_memory {
            meter.reach(Limit::Memory);
            return Ok((true, error));
        }
        match &error {
            Value::Error(error) => Ok((
                false,
                Value::String(lua.create_string(chunk::message(error))?),
            )),
            _ => Ok((false, error)),
        }
    })
}

/// `tonumber`: a number is returned as it is, whatever the base.
fn to_number(args: &Args<'_>) -> Result<Answer, Fault> {
    if args.len() == 0 {
        let message = "bad argument #1 to tonumber (value expected)";
        return Err(Fault::text(message.to_owned()));
    }
    let base = if args.is_none(2) {
        None
    } else {
        Some(args.integer_or(2, 10)?)
    };
    Ok(vec![match args.get(1) {
        number @ (Value::Number(_) | Value::Integer(_)) => number.clone(),
        Value::String(text) => match number::parse(&text.as_bytes(), base) {
            Some(n) => Value::Number(n),
            None => Value::Nil,
        },
        _ => Value::Nil,
    }])
}

/// `table.concat`.
fn concat(args: &Args<'_>) -> Result<Answer, Fault> {
    let Value::Table(table) = args.get(1) else {
        return Err(args.wrong(1, "table", args.get(1)));
    };
    let separator = if args.is_none(2) {
        Vec::new()
    } else {
        args.bytes(2)?
    };
    let length = i64::try_from(table.raw_len()).unwrap_or(i64::MAX);
    let (from, to) = (
        args.integer_or(3, 1)?.max(1),
        args.integer_or(4, length)?.min(length),
    );
    let mut out = Vec::new();
    for i in from..=to {
        let value: Value = table.raw_get(i)?;
        let text = match &value {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Number(n) => number::text(*n).into_bytes(),
            Value::Integer(n) => n.to_string().into_bytes(),
            other => {
                return Err(Fault::text(format!(
                    "invalid value ({}) at index {i} in table for concat",
                    type_name(other)
                )));
            }
        };
        args.charge(1 + (text.len() + separator.len()) as u64 / 16)?;
        if out.len() > args.meter.memory() {
            return Err(args.meter.reach(Limit::Memory).into());
        }
        if i > from {
            out.extend_from_slice(&separator);
        }
        out.extend_from_slice(&text);
    }
    args.text(&out)
}
