//! Compares the recorded answers, one JSON line per case, with ours.
//!
//! Main function: [`differs`].

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value as Json, json};
use tiphys_gocompat::expr::{Clock, ExprError, Limits, MapKind, Phase, Program, Value};

/// The environment of all cases, of the first line.
pub fn environment(first: &Json) -> Value {
    Value::from_data(&first["env"])
}

fn run(code: &str, env: &Value) -> Result<Value, ExprError> {
    let clock = Clock {
        now: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
    };
    Program::compile(code)?.run(env, &clock, Limits::default())
}

/// What differs, if something does.
pub fn differs(case: &Json, env: &Value) -> Option<String> {
    let code = case["code"].as_str().unwrap_or_default();
    let ours = run(code, env);
    let shown = match &ours {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}: {error}", error.phase()),
    };
    let same = match (&case["error"], &ours) {
        (Json::Null, Ok(value)) => {
            case["type"] == type_of(value)
                && is_same(&case["value"], &form(value), case["order"] == "any")
        }
        (error, Err(ours)) => {
            let phase = match ours.phase() {
                Phase::Compile => "compile",
                Phase::Run => "run",
            };
            error["phase"] == phase
        }
        _ => false,
    };
    (!same).then(|| {
        let theirs = if case["error"].is_null() {
            format!("{} {}", case["type"], case["value"])
        } else {
            case["error"].to_string()
        };
        format!("{}: {code}\n  theirs {theirs}\n  ours {shown}", case["id"])
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        other => other.go_type(),
    }
}

/// The value as the cases write it.
fn form(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(b) => json!(b),
        Value::Int(_, i) => json!(i),
        Value::Float(f) if f.is_finite() => json!(f),
        Value::Float(f) if f.is_nan() => json!({"$float": "NaN"}),
        Value::Float(f) => json!({"$float": if *f > 0.0 { "+Inf" } else { "-Inf" }}),
        Value::Str(s) => json!(s.to_str()),
        Value::Bytes(b) => json!({"$bytes": STANDARD.encode(b)}),
        Value::List(list) => list.items.iter().map(form).collect(),
        Value::Map(map) => {
            let texts = map
                .entries
                .keys()
                .all(|key| matches!(key.value(), Value::Str(_)));
            if map.kind == MapKind::Text || texts {
                let members = map.entries.iter();
                return members
                    .map(|(key, item)| (key.value().as_text().expect("a text"), form(item)))
                    .collect::<serde_json::Map<_, _>>()
                    .into();
            }
            let pairs: Vec<Json> = map
                .entries
                .iter()
                .map(|(key, item)| json!([form(&key.value()), form(item)]))
                .collect();
            json!({ "$map": pairs })
        }
        Value::Time(at) => json!({"$time": at.to_rfc3339()}),
        Value::Duration(nanos) => json!({"$duration": nanos}),
        Value::Month(i) | Value::Weekday(i) => json!(i),
        Value::Location(zone) => json!({"$location": zone.iana_name()}),
        Value::Func(_) | Value::Struct(_) => json!("func"),
    }
}

/// Integers and floats are different; lists are compared as multisets where the order is free.
fn is_same(a: &Json, b: &Json, any_order: bool) -> bool {
    match (a, b) {
        (Json::Number(x), Json::Number(y)) => {
            x.is_f64() == y.is_f64() && x.as_f64() == y.as_f64() && x.as_i64() == y.as_i64()
        }
        (Json::Array(x), Json::Array(y)) if any_order => {
            let sorted = |list: &[Json]| {
                let mut texts: Vec<String> = list.iter().map(Json::to_string).collect();
                texts.sort();
                texts
            };
            sorted(x) == sorted(y)
        }
        (Json::Array(x), Json::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(x, y, false))
        }
        // Pairs of a map without texts as keys have no order.
        (Json::Object(x), Json::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(k, v)| y.get(k).is_some_and(|w| is_same(v, w, k == "$map")))
        }
        _ => a == b,
    }
}
