//! Functions of texts.

use super::super::error::ExprError;
use super::super::eval::Machine;
use super::super::print;
use super::super::value::{ListKind, Value};
use super::{Builtin, Out, arg, fails};
use crate::sprig::{lower, read_json, upper};
use crate::template::{Budget, Limits, Str};
use base64::{Engine, engine::general_purpose::STANDARD};

/// Largest number of repetitions.
const MAX_REPEATED: i64 = 1_000_000;

pub(super) fn call(function: Builtin, args: &[Value], machine: &mut Machine<'_>) -> Out {
    let value = value(function, args, machine)?;
    match &value {
        Value::Str(text) => machine.bytes(text.len())?,
        Value::List(list) => machine.elements(list.items.len())?,
        _ => {}
    }
    Ok(value)
}

fn value(function: Builtin, args: &[Value], machine: &mut Machine<'_>) -> Out {
    let text = |index: usize| arg(args, index).as_text();
    Ok(match function {
        Builtin::Type => type_name(arg(args, 0)).into(),
        Builtin::String => {
            machine.room_to_print(arg(args, 0))?;
            Value::Str(print::bytes(arg(args, 0)).into())
        }
        Builtin::Trim => match args {
            [_] => text(0)?.trim().into(),
            _ => {
                let cut = text(1)?;
                text(0)?.trim_matches(|c| cut.contains(c)).into()
            }
        },
        Builtin::TrimPrefix | Builtin::TrimSuffix => {
            let (whole, part) = (text(0)?, affix(args)?);
            let rest = if function == Builtin::TrimPrefix {
                whole.strip_prefix(part.as_str())
            } else {
                whole.strip_suffix(part.as_str())
            };
            rest.unwrap_or(&whole).into()
        }
        Builtin::Upper => text(0)?.chars().map(upper).collect::<String>().into(),
        Builtin::Lower => text(0)?.chars().map(lower).collect::<String>().into(),
        Builtin::Split | Builtin::SplitAfter => {
            let count = args.get(2).map_or(Ok(-1), Value::to_int)?;
            let after = function == Builtin::SplitAfter;
            let (whole, by) = (text(0)?, text(1)?);
            let most = usize::try_from(count).unwrap_or(usize::MAX);
            machine.room_for((whole.matches(by.as_str()).count() + 1).min(most))?;
            Value::strings(split(&whole, &by, count, after))
        }
        Builtin::Replace => {
            let count = args.get(3).map_or(Ok(-1), Value::to_int)?;
            let (whole, old, new) = (text(0)?, text(1)?, text(2)?);
            machine.bytes(whole.len().saturating_mul(new.len() + 1))?;
            match usize::try_from(count) {
                Ok(count) => whole.replacen(&old, &new, count).into(),
                Err(_) => whole.replace(&old, &new).into(),
            }
        }
        Builtin::Repeat => repeat(&text(0)?, arg(args, 1).to_int()?, machine)?,
        Builtin::Join => join(args, machine)?,
        Builtin::IndexOf => position(text(0)?.find(&text(1)?)),
        Builtin::LastIndexOf => position(text(0)?.rfind(&text(1)?)),
        Builtin::HasPrefix => text(0)?.starts_with(&text(1)?).into(),
        Builtin::HasSuffix => text(0)?.ends_with(&text(1)?).into(),
        Builtin::ToJson => {
            machine.room_to_print(arg(args, 0))?;
            print::to_json(arg(args, 0))?.into()
        }
        Builtin::FromJson => {
            let budget = Budget::new(Limits {
                steps: 4_000_000,
                output: 0,
                memory: 24 << 20,
            });
            let read = read_json(arg(args, 0).as_str()?.as_bytes(), &budget);
            let read = read.map_err(|error| ExprError::run(error.to_string()))?;
            super::super::from_template(&read)
        }
        Builtin::ToBase64 => STANDARD.encode(arg(args, 0).as_str()?).into(),
        Builtin::FromBase64 => from_base64(arg(args, 0).as_str()?)?,
        other => return fails(format!("unknown builtin {}", other.name())),
    })
}

fn position(found: Option<usize>) -> Value {
    Value::int(found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Int(super::super::value::IntKind::Uint8, _) => "uint",
        Value::Int(..) => "int",
        Value::Float(_) => "float",
        Value::List(_) | Value::Bytes(_) => "array",
        Value::Map(_) => "map",
        Value::Location(_) => "unknown",
        other => other.go_type(),
    }
}

/// The prefix or suffix to trim; a blank by default.
fn affix(args: &[Value]) -> Out<String> {
    args.get(1).map_or(Ok(" ".into()), Value::as_text)
}

/// `strings.SplitN` and `strings.SplitAfterN`
fn split(text: &str, by: &str, count: i64, after: bool) -> Vec<String> {
    if count == 0 {
        return Vec::new();
    }
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    if by.is_empty() {
        let mut parts: Vec<String> = text.chars().map(String::from).collect();
        if parts.len() > most {
            let rest = parts.split_off(most - 1).concat();
            parts.push(rest);
        }
        return parts;
    }
    let parts: Vec<&str> = text.splitn(most, by).collect();
    let last = parts.len() - 1;
    let separated = |(index, part): (usize, &&str)| {
        let tail = if after && index < last { by } else { "" };
        format!("{part}{tail}")
    };
    parts.iter().enumerate().map(separated).collect()
}

fn repeat(text: &str, count: i64, machine: &mut Machine<'_>) -> Out {
    if count < 0 {
        return fails(format!(
            "invalid argument for repeat (expected positive integer, got {count})"
        ));
    }
    let count = usize::try_from(count.min(MAX_REPEATED + 1)).unwrap_or(0);
    if count > MAX_REPEATED as usize {
        return fails("memory budget exceeded");
    }
    machine.elements(text.len().saturating_mul(count))?;
    Ok(text.repeat(count).into())
}

fn join(args: &[Value], machine: &Machine<'_>) -> Out {
    let glue = args
        .get(1)
        .map_or(Ok(Str::default()), |glue| glue.as_str().cloned())?;
    let Value::List(list) = arg(args, 0) else {
        return fails(format!(
            "invalid argument for join (type {})",
            arg(args, 0).go_type()
        ));
    };
    if !list.kind.is_any() && list.kind != ListKind::Strings {
        let found = arg(args, 0).go_type();
        return fails(format!("invalid argument for join (type {found})"));
    }
    let parts: Vec<&[u8]> = list
        .items
        .iter()
        .map(|item| item.as_str().map(Str::as_bytes))
        .collect::<Out<_>>()?;
    let between = glue.len().saturating_mul(parts.len());
    machine.room(
        parts
            .iter()
            .map(|part| part.len())
            .fold(between, usize::saturating_add),
    )?;
    Ok(Value::Str(parts.join(glue.as_bytes()).into()))
}

/// Line breaks are ignored, as in Go.
fn from_base64(text: &Str) -> Out {
    let bytes: Vec<u8> = text
        .as_bytes()
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    STANDARD.decode(&bytes).map_or_else(
        |error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _)
                | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                _ => bytes.len(),
            };
            fails(format!("illegal base64 data at input byte {at}"))
        },
        |decoded| Ok(Value::Str(decoded.into())),
    )
}
