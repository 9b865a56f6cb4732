//! The operators on values.
//!
//! Main functions: [`equal`], [`compare`] and [`arithmetic`].

use super::error::ExprError;
use super::node::Op;
use super::value::{ListKind, Value};
use crate::power::pow;
use std::cmp::Ordering;

type Out<T = Value> = Result<T, ExprError>;

fn undefined<T>(op: Op, a: &Value, b: &Value) -> Out<T> {
    Err(ExprError::run(format!(
        "invalid operation: {} {} {}",
        a.go_type(),
        op.text(),
        b.go_type()
    )))
}

/// `==`: numbers by their value whatever their type, lists by their elements.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(_, x), Value::Int(_, y)) => x == y,
        (Value::Int(..) | Value::Float(_), Value::Int(..) | Value::Float(_)) => {
            a.number() == b.number()
        }
        (Value::List(x), Value::List(y)) if x.kind.is_any() || y.kind.is_any() => {
            let pairs = |kind| matches!(kind, ListKind::Pairs | ListKind::Pair);
            !pairs(x.kind)
                && !pairs(y.kind)
                && x.items.len() == y.items.len()
                && x.items.iter().zip(&y.items).all(|(x, y)| equal(x, y))
        }
        (Value::List(list), Value::Bytes(bytes)) | (Value::Bytes(bytes), Value::List(list))
            if list.kind.is_any() =>
        {
            list.items.len() == bytes.len()
                && list
                    .items
                    .iter()
                    .zip(bytes.as_bytes())
                    .all(|(x, y)| x.number() == Some(f64::from(*y)))
        }
        (Value::Time(x), Value::Time(y)) => x.at == y.at,
        _ => (a.is_nil() && b.is_nil()) || deep_equal(a, b),
    }
}

/// Whether both have the same type and content.
fn deep_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Int(k, x), Value::Int(l, y)) => k == l && x == y,
        (Value::Float(x), Value::Float(y)) => x == y,
        (Value::Str(x), Value::Str(y)) | (Value::Bytes(x), Value::Bytes(y)) => x == y,
        (Value::List(x), Value::List(y)) => {
            x.kind == y.kind
                && x.items.len() == y.items.len()
                && x.items.iter().zip(&y.items).all(|(x, y)| deep_equal(x, y))
        }
        (Value::Map(x), Value::Map(y)) => {
            x.kind == y.kind
                && x.entries.len() == y.entries.len()
                && x.entries
                    .iter()
                    .zip(&y.entries)
                    .all(|((k, x), (l, y))| k == l && deep_equal(x, y))
        }
        (Value::Time(x), Value::Time(y)) => x.at == y.at && x.offset() == y.offset(),
        (Value::Duration(x), Value::Duration(y)) => x == y,
        (Value::Month(x), Value::Month(y)) | (Value::Weekday(x), Value::Weekday(y)) => x == y,
        (Value::Location(x), Value::Location(y)) => x == y,
        _ => false,
    }
}

/// `<`, `>`, `<=`, `>=`
pub(super) fn compare(op: Op, a: &Value, b: &Value) -> Out<bool> {
    let order = match (a, b) {
        (Value::Int(_, x), Value::Int(_, y)) => Some(x.cmp(y)),
        (Value::Int(..) | Value::Float(_), Value::Int(..) | Value::Float(_)) => {
            a.number().partial_cmp(&b.number())
        }
        (Value::Str(x), Value::Str(y)) => Some(x.cmp(y)),
        (Value::Time(x), Value::Time(y)) => Some(x.at.cmp(&y.at)),
        (Value::Duration(x), Value::Duration(y)) => Some(x.cmp(y)),
        _ => return undefined(op, a, b),
    };
    Ok(match (op, order) {
        (_, None) => false,
        (Op::Less, Some(order)) => order == Ordering::Less,
        (Op::Greater, Some(order)) => order == Ordering::Greater,
        (Op::LessEqual, Some(order)) => order != Ordering::Greater,
        (_, Some(order)) => order != Ordering::Less,
    })
}

/// `+ - * / % **`
pub(super) fn arithmetic(op: Op, a: &Value, b: &Value) -> Out {
    if op == Op::Power {
        return Ok(Value::Float(pow(float(a)?, float(b)?)));
    }
    match (a, b) {
        (Value::Int(_, x), Value::Int(_, y)) => integers(op, *x, *y),
        (Value::Int(..) | Value::Float(_), Value::Int(..) | Value::Float(_)) => {
            match (a.number(), b.number()) {
                (Some(x), Some(y)) => floats(op, x, y).map_or_else(|| undefined(op, a, b), Ok),
                _ => undefined(op, a, b),
            }
        }
        (Value::Str(x), Value::Str(y)) if op == Op::Add => {
            Ok(Value::Str([x.as_bytes(), y.as_bytes()].concat().into()))
        }
        _ => times(op, a, b),
    }
}

fn integers(op: Op, x: i64, y: i64) -> Out {
    Ok(Value::int(match op {
        Op::Add => x.wrapping_add(y),
        Op::Subtract => x.wrapping_sub(y),
        Op::Multiply => x.wrapping_mul(y),
        Op::Divide => return Ok(Value::Float(x as f64 / y as f64)),
        _ if y == 0 => {
            return Err(ExprError::run("runtime error: integer divide by zero"));
        }
        _ => x.wrapping_rem(y),
    }))
}

fn floats(op: Op, x: f64, y: f64) -> Option<Value> {
    Some(Value::Float(match op {
        Op::Add => x + y,
        Op::Subtract => x - y,
        Op::Multiply => x * y,
        Op::Divide => x / y,
        _ => return None,
    }))
}

fn times(op: Op, a: &Value, b: &Value) -> Out {
    Ok(match (op, a, b) {
        (Op::Add, Value::Time(at), Value::Duration(by))
        | (Op::Add, Value::Duration(by), Value::Time(at)) => Value::Time(at.after(*by)),
        (Op::Subtract, Value::Time(at), Value::Duration(by)) => {
            Value::Time(at.after(by.wrapping_neg()))
        }
        (Op::Subtract, Value::Time(x), Value::Time(y)) => Value::Duration(x.since(y)),
        (Op::Add, Value::Duration(x), Value::Duration(y)) => Value::Duration(x.wrapping_add(*y)),
        (Op::Subtract, Value::Duration(x), Value::Duration(y)) => {
            Value::Duration(x.wrapping_sub(*y))
        }
        (
            Op::Multiply,
            Value::Duration(x) | Value::Int(_, x),
            Value::Duration(y) | Value::Int(_, y),
        ) => Value::Duration(x.wrapping_mul(*y)),
        // Multiplied with a float, a duration is a number.
        (Op::Multiply, Value::Duration(x), Value::Float(y))
        | (Op::Multiply, Value::Float(y), Value::Duration(x)) => Value::Float(*x as f64 * y),
        _ => return undefined(op, a, b),
    })
}

fn float(value: &Value) -> Out<f64> {
    value.number().map_or_else(
        || {
            Err(ExprError::run(format!(
                "invalid operation: float({})",
                value.go_type()
            )))
        },
        Ok,
    )
}

/// `-x`
pub(super) fn negated(value: &Value) -> Out {
    match value {
        Value::Int(super::value::IntKind::Uint8, i) => Ok(Value::Int(
            super::value::IntKind::Uint8,
            i.wrapping_neg() & 0xff,
        )),
        Value::Int(kind, i) => Ok(Value::Int(*kind, i.wrapping_neg())),
        Value::Float(f) => Ok(Value::Float(-f)),
        other => Err(ExprError::run(format!(
            "invalid operation: - {}",
            other.go_type()
        ))),
    }
}
