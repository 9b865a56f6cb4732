//! The functions that may stand in an expression. All of them end by themselves.

use super::{
    eval::{Eval, Item, Items, at, error, is_true},
    parser::Expr,
};
use regex::RegexBuilder;
use serde_json::Value;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    Select,
    Recurse,
    Empty,
    First,
    Last,
    GetPath,
    OfType(&'static str),
    NotNull,
    Iterables,
    Scalars,
    Not,
    Has,
    Test,
    StartsWith,
    EndsWith,
    Contains,
    Inside,
    Length,
    Type,
    ToString,
    Keys,
    Downcase,
    Upcase,
    Any,
    All,
    In,
}

/// Longest pattern that `test` takes, as compiled bytes.
const MAX_REGEX: usize = 1 << 18;

impl Builtin {
    /// The function of this name with so many arguments.
    pub fn find(name: &str, arguments: usize) -> Option<Self> {
        Some(match (name, arguments) {
            ("select", 1) => Self::Select,
            ("recurse", 0) => Self::Recurse,
            ("empty", 0) => Self::Empty,
            ("first", 0 | 1) => Self::First,
            ("last", 0 | 1) => Self::Last,
            ("getpath", 1) => Self::GetPath,
            ("values", 0) => Self::NotNull,
            ("nulls", 0) => Self::OfType("null"),
            ("booleans", 0) => Self::OfType("boolean"),
            ("numbers", 0) => Self::OfType("number"),
            ("strings", 0) => Self::OfType("string"),
            ("arrays", 0) => Self::OfType("array"),
            ("objects", 0) => Self::OfType("object"),
            ("iterables", 0) => Self::Iterables,
            ("scalars", 0) => Self::Scalars,
            ("not", 0) => Self::Not,
            ("has", 1) => Self::Has,
            ("test", 1 | 2) => Self::Test,
            ("startswith", 1) => Self::StartsWith,
            ("endswith", 1) => Self::EndsWith,
            ("contains", 1) => Self::Contains,
            ("inside", 1) => Self::Inside,
            ("length", 0) => Self::Length,
            ("type", 0) => Self::Type,
            ("tostring", 0) => Self::ToString,
            ("keys", 0) => Self::Keys,
            ("ascii_downcase", 0) => Self::Downcase,
            ("ascii_upcase", 0) => Self::Upcase,
            ("any", 0..=2) => Self::Any,
            ("all", 0..=2) => Self::All,
            ("IN", 1) => Self::In,
            _ => return None,
        })
    }
}

pub fn call<'v>(eval: &mut Eval, builtin: Builtin, arguments: &[Expr], input: &Item<'v>) -> Items<'v> {
    let keep = |keep: bool| Ok(if keep { vec![input.clone()] } else { Vec::new() });
    match builtin {
        Builtin::Select => {
            let times = eval.run(&arguments[0], input)?.iter().filter(|i| is_true(&i.value)).count();
            Ok(vec![input.clone(); times])
        }
        Builtin::Recurse => eval.run(&Expr::Descend, input),
        Builtin::Empty => Ok(Vec::new()),
        Builtin::First | Builtin::Last => {
            let mut all = match arguments.first() {
                Some(of) => eval.run(of, input)?,
                None => eval.iterate(input)?,
            };
            let item = if all.is_empty() { None } else { Some(all.swap_remove(if builtin == Builtin::First { 0 } else { all.len() - 1 })) };
            Ok(item.into_iter().collect())
        }
        Builtin::GetPath => get_path(eval, &arguments[0], input),
        Builtin::OfType(name) => keep(type_of(&input.value) == name),
        Builtin::NotNull => keep(!input.value.is_null()),
        Builtin::Iterables => keep(matches!(type_of(&input.value), "array" | "object")),
        Builtin::Scalars => keep(!matches!(type_of(&input.value), "array" | "object")),
        Builtin::Any | Builtin::All => quantify(eval, builtin == Builtin::Any, arguments, input),
        _ => value_function(eval, builtin, arguments, input),
    }
}

fn get_path<'v>(eval: &mut Eval, argument: &Expr, input: &Item<'v>) -> Items<'v> {
    let mut all = Vec::new();
    for path in eval.run(argument, input)? {
        let Value::Array(steps) = &*path.value else { return error("getpath wants a list") };
        let mut item = input.clone();
        for step in steps {
            item = at(&item, step)?;
        }
        all.push(item);
    }
    Ok(all)
}

/// `any`, `any(condition)` and `any(values; condition)`, and the same for `all`.
fn quantify<'v>(eval: &mut Eval, any: bool, arguments: &[Expr], input: &Item<'v>) -> Items<'v> {
    let items = match arguments {
        [values, _] => eval.run(values, input)?,
        _ => eval.iterate(input)?,
    };
    let mut result = !any;
    for item in &items {
        let holds = match arguments.last() {
            Some(condition) => eval.holds(condition, item)?,
            None => is_true(&item.value),
        };
        if holds == any {
            result = any;
            break;
        }
    }
    Ok(vec![Item::made(result)])
}

/// Functions of the input and of every value of their first argument.
fn value_function<'v>(eval: &mut Eval, builtin: Builtin, arguments: &[Expr], input: &Item<'v>) -> Items<'v> {
    let value = &*input.value;
    let argument = match arguments.first() {
        Some(argument) => eval.run(argument, input)?,
        None => vec![Item::made(Value::Null)],
    };
    if builtin == Builtin::In {
        return Ok(vec![Item::made(argument.iter().any(|a| order(&a.value, value) == Ordering::Equal))]);
    }
    let flags = match arguments.get(1) {
        Some(flags) => eval.run(flags, input)?.first().and_then(|f| f.value.as_str().map(str::to_owned)).unwrap_or_default(),
        None => String::new(),
    };
    let mut results = Vec::with_capacity(argument.len());
    for argument in &argument {
        let argument = &*argument.value;
        let result: Value = match (builtin, value, argument) {
            (Builtin::Not, ..) => (!is_true(value)).into(),
            (Builtin::Type, ..) => type_of(value).into(),
            (Builtin::ToString, Value::String(text), _) => text.as_str().into(),
            (Builtin::ToString, ..) => value.to_string().into(),
            (Builtin::Has, Value::Object(map), Value::String(key)) => map.contains_key(key).into(),
            (Builtin::Has, Value::Array(list), Value::Number(n)) => n.as_u64().is_some_and(|n| (n as usize) < list.len()).into(),
            (Builtin::Test, Value::String(text), Value::String(pattern)) => matches(text, pattern, &flags)?.into(),
            (Builtin::StartsWith, Value::String(text), Value::String(part)) => text.starts_with(part.as_str()).into(),
            (Builtin::EndsWith, Value::String(text), Value::String(part)) => text.ends_with(part.as_str()).into(),
            (Builtin::Contains, ..) if type_of(value) == type_of(argument) => contains(value, argument).into(),
            (Builtin::Inside, ..) if type_of(value) == type_of(argument) => contains(argument, value).into(),
            (Builtin::Length, Value::Null, _) => 0.into(),
            (Builtin::Length, Value::String(text), _) => text.chars().count().into(),
            (Builtin::Length, Value::Array(list), _) => list.len().into(),
            (Builtin::Length, Value::Object(map), _) => map.len().into(),
            (Builtin::Keys, Value::Object(map), _) => map.keys().cloned().collect::<Vec<_>>().into(),
            (Builtin::Keys, Value::Array(list), _) => (0..list.len()).collect::<Vec<_>>().into(),
            (Builtin::Downcase, Value::String(text), _) => text.to_ascii_lowercase().into(),
            (Builtin::Upcase, Value::String(text), _) => text.to_ascii_uppercase().into(),
            _ => return error(format!("{builtin:?} does not work on {}", type_of(value))),
        };
        results.push(Item::made(result));
    }
    Ok(results)
}

fn matches(text: &str, pattern: &str, flags: &str) -> Result<bool, super::eval::Fault> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_REGEX).case_insensitive(flags.contains('i')).ignore_whitespace(flags.contains('x'));
    match builder.dot_matches_new_line(flags.contains('s')).build() {
        Ok(regex) => Ok(regex.is_match(text)),
        Err(_) => error(format!("{pattern:?} is not a regular expression")),
    }
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part.iter().all(|(k, p)| value.get(k).is_some_and(|v| contains(v, p))),
        (Value::Array(value), Value::Array(part)) => part.iter().all(|p| value.iter().any(|v| contains(v, p))),
        (Value::String(value), Value::String(part)) => value.contains(part.as_str()),
        _ => order(value, part) == Ordering::Equal,
    }
}

pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// jq's order: null, false, true, numbers, texts, lists, maps. Maps are compared by their keys first.
pub fn order(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Null => 0,
            Value::Bool(false) => 1,
            Value::Bool(true) => 2,
            Value::Number(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        }
    }
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x.as_f64().unwrap_or(f64::NAN).partial_cmp(&y.as_f64().unwrap_or(f64::NAN)).unwrap_or(Ordering::Equal)
        }
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Array(x), Value::Array(y)) => {
            x.iter().zip(y).map(|(x, y)| order(x, y)).find(|o| o.is_ne()).unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        (Value::Object(x), Value::Object(y)) => x
            .keys()
            .cmp(y.keys())
            .then_with(|| x.values().zip(y.values()).map(|(x, y)| order(x, y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)),
        _ => rank(a).cmp(&rank(b)),
    }
}
