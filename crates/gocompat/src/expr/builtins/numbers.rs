//! Functions of numbers, and of lists of them.

use super::super::error::ExprError;
use super::super::node::Op;
use super::super::operators::compare;
use super::super::value::{IntKind, ListKind, Value, truncated};
use super::{Builtin, Out, arg, fails};
use crate::sprig::parse_float;

/// Deepest nested list.
const MAX_DEPTH: usize = 1000;

pub(super) fn call(function: Builtin, args: &[Value]) -> Out {
    let value = arg(args, 0);
    match function {
        Builtin::Abs => match value {
            Value::Int(kind, i) => Ok(Value::Int(*kind, i.wrapping_abs())),
            Value::Float(f) => Ok(Value::Float(if *f < 0.0 { -f } else { *f })),
            other => invalid(function, other),
        },
        Builtin::Ceil => rounded(function, value, f64::ceil),
        Builtin::Floor => rounded(function, value, f64::floor),
        Builtin::Round => rounded(function, value, f64::round),
        Builtin::Int => to_int(value),
        Builtin::Float => to_float(value),
        Builtin::Max => Ok(extreme(function, Op::Less, args, 0)?.unwrap_or_default()),
        Builtin::Min => Ok(extreme(function, Op::Greater, args, 0)?.unwrap_or_default()),
        Builtin::Mean => {
            let mut numbers = Vec::new();
            flat(function, args, 0, &mut numbers)?;
            if numbers.is_empty() {
                return Ok(Value::Float(0.0));
            }
            let sum: f64 = numbers.iter().sum();
            Ok(Value::Float(sum / numbers.len() as f64))
        }
        Builtin::Median => {
            let mut numbers = Vec::new();
            flat(function, args, 0, &mut numbers)?;
            numbers.sort_by(f64::total_cmp);
            let half = numbers.len() / 2;
            Ok(Value::Float(match numbers.len() {
                0 => 0.0,
                length if length % 2 == 1 => numbers[half],
                _ => f64::midpoint(numbers[half - 1], numbers[half]),
            }))
        }
        Builtin::BitNot => Ok(Value::int(!integer(function, value)?)),
        _ => bits(function, integer(function, value)?, arg(args, 1)),
    }
}

fn invalid<T>(function: Builtin, value: &Value) -> Out<T> {
    fails(format!(
        "invalid argument for {} (type {})",
        function.name(),
        value.go_type()
    ))
}

fn rounded(function: Builtin, value: &Value, round: fn(f64) -> f64) -> Out {
    match value.number() {
        Some(f) => Ok(Value::Float(round(f))),
        None => invalid(function, value),
    }
}

fn to_int(value: &Value) -> Out {
    let refused = |what: &str| fails(format!("invalid operation: int({what})"));
    Ok(Value::int(match value {
        Value::Int(_, i) | Value::Duration(i) => *i,
        Value::Month(i) | Value::Weekday(i) => i64::from(*i),
        Value::Float(f) => truncated(*f),
        Value::Str(text) => {
            let text = text.to_str();
            let signs = text
                .bytes()
                .take_while(|b| matches!(b, b'+' | b'-'))
                .count();
            match text.parse() {
                Ok(number) if signs <= 1 => number,
                _ => return refused(&text),
            }
        }
        other => return refused(other.go_type()),
    }))
}

fn to_float(value: &Value) -> Out {
    let refused = |what: &str| fails(format!("invalid operation: float({what})"));
    match value {
        Value::Str(text) => {
            let text = text.to_str();
            parse_float(&text).map_or_else(|| refused(&text), |number| Ok(Value::Float(number)))
        }
        other => match other.number() {
            Some(number) => Ok(Value::Float(number)),
            None => refused(other.go_type()),
        },
    }
}

fn too_deep<T>() -> Out<T> {
    fails("recursion depth exceeded")
}

/// The largest or smallest number; `None` of empty lists.
fn extreme(function: Builtin, worse: Op, args: &[Value], depth: usize) -> Out<Option<Value>> {
    if depth > MAX_DEPTH {
        return too_deep();
    }
    let mut best: Option<Value> = None;
    for arg in args {
        let found = match arg {
            Value::List(list) if list.kind.is_any() || list.kind == ListKind::Ints => {
                list_extreme(function, worse, &list.items, depth)?
            }
            Value::List(list) => {
                let mut found = None;
                for item in &list.items {
                    let one = extreme(function, worse, std::slice::from_ref(item), depth + 1)?;
                    match one {
                        Some(one) if one.number().is_some() => found = better(found, one, worse)?,
                        other => return invalid(function, &other.unwrap_or_default()),
                    }
                }
                found
            }
            Value::Bytes(bytes) => {
                let items: Vec<Value> = bytes
                    .as_bytes()
                    .iter()
                    .map(|byte| Value::Int(IntKind::Uint8, i64::from(*byte)))
                    .collect();
                list_extreme(function, worse, &items, depth)?
            }
            number if number.number().is_some() => Some(number.clone()),
            other if args.len() == 1 => return Ok(Some(other.clone())),
            other => return invalid(function, other),
        };
        if let Some(found) = found {
            best = better(best, found, worse)?;
        }
    }
    Ok(best)
}

fn list_extreme(function: Builtin, worse: Op, items: &[Value], depth: usize) -> Out<Option<Value>> {
    let mut best = None;
    for item in items {
        let found = match item {
            Value::List(_) | Value::Bytes(_) => {
                extreme(function, worse, std::slice::from_ref(item), depth + 1)?
            }
            number if number.number().is_some() => Some(number.clone()),
            other => return invalid(function, other),
        };
        if let Some(found) = found {
            best = better(best, found, worse)?;
        }
    }
    Ok(best)
}

fn better(best: Option<Value>, found: Value, worse: Op) -> Out<Option<Value>> {
    Ok(Some(match best {
        Some(best) if !compare(worse, &best, &found)? => best,
        _ => found,
    }))
}

/// All numbers, those in lists included.
fn flat(function: Builtin, args: &[Value], depth: usize, out: &mut Vec<f64>) -> Out<()> {
    if depth > MAX_DEPTH {
        return too_deep();
    }
    for arg in args {
        match arg {
            Value::List(list) => flat(function, &list.items, depth + 1, out)?,
            Value::Bytes(bytes) => out.extend(bytes.as_bytes().iter().map(|b| f64::from(*b))),
            Value::Duration(i) => out.push(*i as f64),
            Value::Month(i) | Value::Weekday(i) => out.push(f64::from(*i)),
            other => match other.number() {
                Some(number) => out.push(number),
                None => return invalid(function, other),
            },
        }
    }
    Ok(())
}

fn integer(function: Builtin, value: &Value) -> Out<i64> {
    match value {
        Value::Int(_, i) => Ok(*i),
        other => Err(ExprError::run(format!(
            "cannot use {} as argument (type int) to call {}",
            other.go_type(),
            function.name()
        ))),
    }
}

fn bits(function: Builtin, x: i64, second: &Value) -> Out {
    let y = integer(function, second)?;
    let shifts = matches!(
        function,
        Builtin::BitShl | Builtin::BitShr | Builtin::BitUshr
    );
    if shifts && y < 0 {
        return fails(format!(
            "invalid operation: negative shift count {y} (type int)"
        ));
    }
    let by = u32::try_from(y).unwrap_or(u32::MAX);
    Ok(Value::int(match function {
        Builtin::BitAnd => x & y,
        Builtin::BitOr => x | y,
        Builtin::BitXor => x ^ y,
        Builtin::BitNand => x & !y,
        Builtin::BitShl => x.checked_shl(by).unwrap_or(0),
        Builtin::BitShr => x.checked_shr(by).unwrap_or(if x < 0 { -1 } else { 0 }),
        _ => x.cast_unsigned().checked_shr(by).unwrap_or(0).cast_signed(),
    }))
}
