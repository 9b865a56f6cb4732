//! The builtin functions of text/template.
//!
//! Main value: [`TABLE`].

use super::error::Error;
use super::format::{sprint, sprintf, sprintln};
use super::function::{Body, Call, Function};
use super::types::Type;
use super::value::{Str, Value};

mod compare;
mod escape;
mod index;

/// Name and function.
pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "and",
        Function {
            params: &[Type::Reflect, Type::Reflect],
            variadic: true,
            body: Body::And,
        },
    ),
    (
        "or",
        Function {
            params: &[Type::Reflect, Type::Reflect],
            variadic: true,
            body: Body::Or,
        },
    ),
    (
        "call",
        Function {
            params: &[Type::Reflect, Type::Reflect],
            variadic: true,
            body: Body::Invoke,
        },
    ),
    (
        "not",
        Function::new(&[Type::Reflect], |call| {
            Ok(Value::Bool(!call.arg(0).truth()))
        }),
    ),
    ("html", Function::variadic(&[Type::Any], escape::html)),
    ("js", Function::variadic(&[Type::Any], escape::js)),
    (
        "urlquery",
        Function::variadic(&[Type::Any], escape::url_query),
    ),
    (
        "index",
        Function::variadic(&[Type::Reflect, Type::Reflect], index::index),
    ),
    (
        "slice",
        Function::variadic(&[Type::Reflect, Type::Reflect], index::slice),
    ),
    ("len", Function::new(&[Type::Reflect], index::len)),
    (
        "print",
        Function::variadic(&[Type::Any], |call| text(call, sprint(call.rest(0))?)),
    ),
    (
        "println",
        Function::variadic(&[Type::Any], |call| text(call, sprintln(call.rest(0))?)),
    ),
    (
        "printf",
        Function::variadic(&[Type::String, Type::Any], printf),
    ),
    (
        "eq",
        Function::variadic(&[Type::Reflect, Type::Reflect], |call| {
            compare::equal_any(call).map(Value::Bool)
        }),
    ),
    (
        "ne",
        Function::new(&[Type::Reflect, Type::Reflect], |call| {
            compare::equal_any(call).map(|b| Value::Bool(!b))
        }),
    ),
    (
        "lt",
        Function::new(&[Type::Reflect, Type::Reflect], |call| {
            compare::less(call).map(Value::Bool)
        }),
    ),
    (
        "le",
        Function::new(&[Type::Reflect, Type::Reflect], |call| {
            compare::less_or_equal(call).map(Value::Bool)
        }),
    ),
    (
        "gt",
        Function::new(&[Type::Reflect, Type::Reflect], |call| {
            compare::less_or_equal(call).map(|b| Value::Bool(!b))
        }),
    ),
    (
        "ge",
        Function::new(&[Type::Reflect, Type::Reflect], |call| {
            compare::less(call).map(|b| Value::Bool(!b))
        }),
    ),
];

fn printf(call: &mut Call<'_>) -> Result<Value, Error> {
    let format = call.string(0)?.clone();
    let args: Vec<Value> = call.rest(1).cloned().collect();
    text(call, sprintf(format.as_bytes(), &args)?)
}

fn text(call: &Call<'_>, bytes: Vec<u8>) -> Result<Value, Error> {
    call.budget().memory(bytes.len())?;
    Ok(Value::String(Str::from(bytes)))
}
