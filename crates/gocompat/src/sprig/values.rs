//! Functions of values of any type: defaults, types and JSON.
//!
//! Main value: [`TABLE`].

use super::args::{Out, deep_equal, empty, kind, string};
use super::{json, json_read};
use crate::template::{Call, Function, Type, Value};

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];
const NAMED: &[Type] = &[Type::String, Type::Any];

pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "default",
        Function::variadic(TWO, |call| {
            Ok(call.take(usize::from(call.len() > 1 && !empty(call.arg(1)))))
        }),
    ),
    (
        "empty",
        Function::new(ONE, |call| Ok(Value::Bool(empty(call.arg(0))))),
    ),
    (
        "coalesce",
        Function::variadic(ONE, |call| {
            Ok(call
                .rest(0)
                .find(|v| !empty(v))
                .cloned()
                .unwrap_or_default())
        }),
    ),
    (
        "all",
        Function::variadic(ONE, |call| Ok(Value::Bool(!call.rest(0).any(empty)))),
    ),
    (
        "any",
        Function::variadic(ONE, |call| Ok(Value::Bool(!call.rest(0).all(empty)))),
    ),
    (
        "ternary",
        Function::new(&[Type::Any, Type::Any, Type::Bool], |call| {
            Ok(call.take(usize::from(!call.boolean(2)?)))
        }),
    ),
    (
        "typeOf",
        Function::new(ONE, |call| Ok(type_of(call.arg(0)).into())),
    ),
    (
        "typeIs",
        Function::new(NAMED, |call| {
            Ok(Value::Bool(type_of(call.arg(1)) == call.text(0)?))
        }),
    ),
    ("typeIsLike", Function::new(NAMED, type_is_like)),
    (
        "kindOf",
        Function::new(ONE, |call| Ok(kind(call.arg(0)).into())),
    ),
    (
        "kindIs",
        Function::new(NAMED, |call| {
            Ok(Value::Bool(kind(call.arg(1)) == call.text(0)?))
        }),
    ),
    (
        "deepEqual",
        Function::new(TWO, |call| {
            deep_equal(call.arg(0), call.arg(1), call.budget()).map(Value::Bool)
        }),
    ),
    (
        "fromJson",
        Function::new(&[Type::String], |call| Ok(read(call).unwrap_or_default())),
    ),
    ("mustFromJson", Function::new(&[Type::String], read)),
    (
        "toJson",
        Function::new(ONE, |call| swallowed(call, json::COMPACT)),
    ),
    (
        "mustToJson",
        Function::new(ONE, |call| written(call, json::COMPACT)),
    ),
    (
        "toPrettyJson",
        Function::new(ONE, |call| swallowed(call, json::PRETTY)),
    ),
    (
        "mustToPrettyJson",
        Function::new(ONE, |call| written(call, json::PRETTY)),
    ),
    (
        "toRawJson",
        Function::new(ONE, |call| written(call, json::RAW)),
    ),
    (
        "mustToRawJson",
        Function::new(ONE, |call| written(call, json::RAW)),
    ),
];

/// `%T`
fn type_of(value: &Value) -> String {
    match value {
        Value::Nil => "<nil>".to_owned(),
        other => other.go_type().to_string(),
    }
}

fn type_is_like(call: &mut Call<'_>) -> Out {
    let (found, wanted) = (type_of(call.arg(1)), call.text(0)?);
    Ok(Value::Bool(
        found == wanted || found.strip_prefix('*') == Some(&*wanted),
    ))
}

fn read(call: &mut Call<'_>) -> Out {
    json_read::read(call.string(0)?.as_bytes(), call.budget())
}

fn written(call: &Call<'_>, style: json::Style) -> Out {
    string(
        call.budget(),
        json::write(call.arg(0), style, call.budget())?,
    )
}

/// A value that cannot be written becomes an empty text; exceeding the budget stays an error.
fn swallowed(call: &Call<'_>, style: json::Style) -> Out {
    match written(call, style) {
        Err(e) if e.kind() != crate::template::ErrorKind::Limit => Ok("".into()),
        other => other,
    }
}
