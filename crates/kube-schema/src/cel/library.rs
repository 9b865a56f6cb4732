//! The implementation of functions, and their cost. Main functions: [`call`], [`cost_before`],
//! [`cost_after`].

use super::eval::{Evaluated, failed, index};
use super::value::{Key, Value, concatenated};
use super::{authz, kinds, lists, strings, time};
use std::cmp::Ordering;
use std::sync::Arc;

const NO_OVERLOAD: &str = "no such overload";

/// Strings cost a tenth of their length.
fn traversal(size: u64) -> u64 {
    size.div_ceil(10)
}

/// The cost charged before the call, which limits the work it can do. `left`: what may still be
/// charged; a cost above it is not computed exactly.
pub fn cost_before(function: &str, args: &[Value], left: u64) -> u64 {
    let size = |i: usize| args.get(i).map_or(0, Value::size);
    match function {
        "startsWith" | "endsWith" | "bytes" | "strings.quote" | "format" => traversal(size(0)),
        "@in" => size(1),
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
            traversal(smaller_size(&args[0], &args[1], left)).max(1)
        }
        "_+_" if matches!(args.first(), Some(Value::String(_) | Value::Bytes(_))) => {
            traversal(size(0) + size(1))
        }
        "_+_" if matches!(args.first(), Some(Value::List(_))) => 1 + traversal(size(0) + size(1)),
        "matches" | "find" | "findAll" => traversal(size(0) + 1) * size(1).div_ceil(4).max(1),
        "contains" | "indexOf" | "lastIndexOf"
            if matches!(args.first(), Some(Value::String(_))) =>
        {
            traversal(size(0)) * traversal(size(1)).max(1)
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "reverse" | "join" => {
            size(0).max(1)
        }
        "sort" | "distinct" | "@sortByAssociatedKeys" => size(0).saturating_mul(size(0)).max(1),
        "flatten" | "slice" | "split" | "replace" | "trim" | "lowerAscii" | "upperAscii"
        | "substring" | "charAt" => traversal(size(0)).max(1),
        "lists.range" => match args.first() {
            Some(Value::Int(n)) => u64::try_from(*n).unwrap_or(0).max(1),
            _ => 1,
        },
        "sets.contains" | "sets.intersects" => size(0).saturating_mul(size(1)).max(1),
        "sets.equivalent" => size(0).saturating_mul(size(1)).saturating_mul(2).max(1),
        "url" | "isURL" | "ip" | "isIP" | "cidr" | "isCIDR" | "quantity" | "isQuantity"
        | "semver" | "isSemver" | "validate" => {
            traversal(args.iter().map(Value::size).max().unwrap_or(1)).max(1)
        }
        "check" => authz::CHECK_COST,
        _ => 1,
    }
}

/// The deep size of the smaller of two values, or a size that costs more than is left. Lists that
/// share their elements can be exponentially larger than the expression that makes them, so the
/// larger value is not counted to its end.
fn smaller_size(a: &Value, b: &Value, left: u64) -> u64 {
    let too_much = left.saturating_add(1).saturating_mul(10);
    let mut most: u64 = 64;
    loop {
        most = too_much.min(most.saturating_mul(2));
        let size = deep_size(a, most).min(deep_size(b, most));
        if size < most || most == too_much {
            return size;
        }
    }
}

/// The size with that of all elements, at most `most`.
fn deep_size(value: &Value, most: u64) -> u64 {
    match value {
        Value::List(list) => sum_of_sizes(list.items.iter(), most),
        Value::Map(map) => sum_of_sizes(map.values(), most),
        other => other.size().min(most),
    }
}

fn sum_of_sizes<'v>(values: impl Iterator<Item = &'v Value>, most: u64) -> u64 {
    let mut sum = 0;
    for value in values {
        if sum >= most {
            return most;
        }
        sum += deep_size(value, most - sum);
    }
    sum.max(1)
}

pub fn cost_after(function: &str, _args: &[Value], result: &Value) -> u64 {
    match function {
        "replace" | "join" | "format" => traversal(result.size()),
        _ => 0,
    }
}

pub fn call(function: &str, method: bool, args: &[Value]) -> Evaluated {
    if let Some(result) = operator(function, args) {
        return result;
    }
    if let Some(result) = kinds::call(function, args) {
        return result;
    }
    if let Some(result) = lists::call(function, args) {
        return result;
    }
    if let Some(result) = strings::call(function, args) {
        return result;
    }
    if let Some(result) = optional(function, args) {
        return result;
    }
    if let Some(result) = authz::call(function, args) {
        return result;
    }
    match (function, args) {
        ("type", [a]) => Ok(Value::Type(a.type_name().into())),
        ("jsonpatch.escapeKey", [Value::String(key)]) => {
            Ok(key.replace('~', "~0").replace('/', "~1").into())
        }
        ("dyn", [a]) => Ok(a.clone()),
        (
            "bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint",
            [a],
        ) => convert(function, a),
        (_, [Value::Timestamp(t), rest @ ..]) if method => {
            let zone = match rest.first() {
                Some(Value::String(zone)) => Some(&**zone),
                _ => None,
            };
            match time::in_zone(*t, zone) {
                Some(time) => time::part(function, &time)
                    .map_or_else(|| failed(NO_OVERLOAD), |n| Ok(Value::Int(n))),
                None => failed(format!("unknown time zone {}", zone.unwrap_or(""))),
            }
        }
        (_, [Value::Duration(n)]) if method => {
            time::whole(function, *n).map_or_else(|| failed(NO_OVERLOAD), |n| Ok(Value::Int(n)))
        }
        _ => failed(NO_OVERLOAD),
    }
}

fn operator(function: &str, args: &[Value]) -> Option<Evaluated> {
    Some(match (function, args) {
        ("!_", [Value::Bool(b)]) => Ok(Value::Bool(!b)),
        ("-_", [Value::Int(n)]) => n
            .checked_neg()
            .map_or_else(|| failed("integer overflow"), |n| Ok(Value::Int(n))),
        ("-_", [Value::Double(f)]) => Ok(Value::Double(-f)),
        ("_==_", [a, b]) => Ok(Value::Bool(a.equals(b))),
        ("_!=_", [a, b]) => Ok(Value::Bool(!a.equals(b))),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => match a.compare(b) {
            Some(order) => Ok(Value::Bool(match function {
                "_<_" => order == Ordering::Less,
                "_<=_" => order != Ordering::Greater,
                "_>_" => order == Ordering::Greater,
                _ => order != Ordering::Less,
            })),
            None if matches!((a, b), (Value::Double(_), _) | (_, Value::Double(_))) => {
                failed("NaN values cannot be ordered")
            }
            None => failed(NO_OVERLOAD),
        },
        ("_[_]", [a, b]) => index(a, b, false),
        ("_[?_]", [a, b]) => index(a, b, true),
        ("@in", [a, Value::List(list)]) => Ok(Value::Bool(list.items.iter().any(|v| v.equals(a)))),
        ("@in", [a, Value::Map(map)]) => Ok(Value::Bool(
            Key::of(a).is_some_and(|k| map.contains_key(&k)),
        )),
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [a, b]) => arithmetic(function, a, b),
        ("size", [Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)]) => {
            Ok(Value::Int(args[0].size() as i64))
        }
        ("cel.@mapInsert", [Value::Map(map), key, value]) => match Key::of(key) {
            Some(key) if map.contains_key(&key) => failed(format!(
                "insert failed: key {} already exists",
                key.value().text().unwrap_or_default()
            )),
            Some(key) => {
                let mut map = map.clone();
                Arc::make_mut(&mut map).insert(key, value.clone());
                Ok(Value::Map(map))
            }
            None => failed(NO_OVERLOAD),
        },
        ("cel.@mapInsert", [Value::Map(map), Value::Map(more)]) => {
            if let Some(key) = more.keys().find(|k| map.contains_key(k)) {
                return Some(failed(format!(
                    "insert failed: key {} already exists",
                    key.value().text().unwrap_or_default()
                )));
            }
            let mut map = map.clone();
            Arc::make_mut(&mut map).extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
            Ok(Value::Map(map))
        }
        _ => return None,
    })
}

fn arithmetic(function: &str, a: &Value, b: &Value) -> Evaluated {
    let overflow = |what: &str| failed(format!("{what} overflow"));
    let zero = || {
        failed(if function == "_%_" {
            "modulus by zero"
        } else {
            "division by zero"
        })
    };
    match (function, a, b) {
        ("_/_" | "_%_", Value::Int(_), Value::Int(0))
        | ("_/_" | "_%_", Value::Uint(_), Value::Uint(0)) => zero(),
        (_, Value::Int(x), Value::Int(y)) => {
            let result = match function {
                "_+_" => x.checked_add(*y),
                "_-_" => x.checked_sub(*y),
                "_*_" => x.checked_mul(*y),
                "_/_" => x.checked_div(*y),
                _ => x.checked_rem(*y),
            };
            result.map_or_else(|| overflow("integer"), |n| Ok(Value::Int(n)))
        }
        (_, Value::Uint(x), Value::Uint(y)) => {
            let result = match function {
                "_+_" => x.checked_add(*y),
                "_-_" => x.checked_sub(*y),
                "_*_" => x.checked_mul(*y),
                "_/_" => x.checked_div(*y),
                _ => x.checked_rem(*y),
            };
            result.map_or_else(|| overflow("unsigned integer"), |n| Ok(Value::Uint(n)))
        }
        ("_+_", Value::Double(x), Value::Double(y)) => Ok(Value::Double(x + y)),
        ("_-_", Value::Double(x), Value::Double(y)) => Ok(Value::Double(x - y)),
        ("_*_", Value::Double(x), Value::Double(y)) => Ok(Value::Double(x * y)),
        ("_/_", Value::Double(x), Value::Double(y)) => Ok(Value::Double(x / y)),
        ("_+_", Value::String(x), Value::String(y)) => Ok(format!("{x}{y}").into()),
        ("_+_", Value::Bytes(x), Value::Bytes(y)) => Ok(Value::Bytes([&**x, &**y].concat().into())),
        ("_+_", Value::List(x), Value::List(y)) => Ok(Value::List(Arc::new(concatenated(x, y)))),
        ("_+_", Value::Duration(x), Value::Duration(y)) => x
            .checked_add(*y)
            .map_or_else(|| overflow("duration"), |n| Ok(Value::Duration(n))),
        ("_-_", Value::Duration(x), Value::Duration(y)) => x
            .checked_sub(*y)
            .map_or_else(|| overflow("duration"), |n| Ok(Value::Duration(n))),
        ("_+_", Value::Timestamp(t), Value::Duration(d))
        | ("_+_", Value::Duration(d), Value::Timestamp(t)) => shifted(*t, *d),
        ("_-_", Value::Timestamp(t), Value::Duration(d)) => shifted(*t, d.saturating_neg()),
        ("_-_", Value::Timestamp(x), Value::Timestamp(y)) => {
            let nanos = x.as_nanosecond() - y.as_nanosecond();
            i64::try_from(nanos).map_or_else(|_| overflow("timestamp"), |n| Ok(Value::Duration(n)))
        }
        _ => failed(NO_OVERLOAD),
    }
}

fn shifted(time: jiff::Timestamp, nanos: i64) -> Evaluated {
    match time.checked_add(jiff::SignedDuration::from_nanos(nanos)) {
        Ok(time) => Ok(Value::Timestamp(time)),
        Err(_) => failed("timestamp overflow"),
    }
}

fn optional(function: &str, args: &[Value]) -> Option<Evaluated> {
    Some(Ok(match (function, args) {
        ("optional.of", [a]) => Value::some(a.clone()),
        ("optional.none", []) => Value::Optional(None),
        ("optional.ofNonZeroValue", [a]) => {
            Value::Optional((!is_zero(a)).then(|| Box::new(a.clone())))
        }
        ("hasValue", [Value::Optional(inner)]) => Value::Bool(inner.is_some()),
        ("value", [Value::Optional(inner)]) => match inner {
            Some(inner) => (**inner).clone(),
            None => return Some(failed("optional.none() dereference")),
        },
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let there = list.items.iter().filter_map(|v| match v {
                Value::Optional(inner) => inner.as_deref().cloned(),
                other => Some(other.clone()),
            });
            Value::list(there.collect())
        }
        _ => return None,
    }))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Optional(None) => true,
        Value::Bool(b) => !b,
        Value::Int(n) | Value::Duration(n) => *n == 0,
        Value::Uint(n) => *n == 0,
        Value::Double(f) => *f == 0.0,
        Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        _ => false,
    }
}

fn convert(to: &str, value: &Value) -> Evaluated {
    let range = |what: &str| failed(format!("{what} overflow"));
    let unread = |to: &str| {
        failed(format!(
            "type conversion error from '{}' to '{to}'",
            value.type_name()
        ))
    };
    let no_overload = || failed(format!("{NO_OVERLOAD}: {to}({})", value.type_name()));
    match (to, value) {
        ("bool", Value::Bool(_))
        | ("bytes", Value::Bytes(_))
        | ("double", Value::Double(_))
        | ("duration", Value::Duration(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("timestamp", Value::Timestamp(_)) => Ok(value.clone()),
        ("string", _) => match (value.text(), value) {
            (Some(text), _) => Ok(text.into()),
            (None, Value::Bytes(_)) => failed("invalid UTF-8 in bytes, cannot convert to string"),
            _ => no_overload(),
        },
        ("bool", Value::String(s)) => match &**s {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
            _ => unread(to),
        },
        ("bytes", Value::String(s)) => Ok(Value::Bytes(s.as_bytes().into())),
        ("double", Value::Int(n)) => Ok(Value::Double(*n as f64)),
        ("double", Value::Uint(n)) => Ok(Value::Double(*n as f64)),
        ("double", Value::String(s)) => match s.parse() {
            Ok(f) => Ok(Value::Double(f)),
            Err(_) => unread(to),
        },
        ("int", Value::Uint(n)) => {
            i64::try_from(*n).map_or_else(|_| range("integer"), |n| Ok(Value::Int(n)))
        }
        ("int", Value::Double(f)) if f.abs() < 9.223_372_036_854_775e18 => {
            Ok(Value::Int(*f as i64))
        }
        ("int", Value::Double(_)) => range("integer"),
        ("int", Value::Duration(n)) => Ok(Value::Int(*n)),
        ("int", Value::Timestamp(t)) => Ok(Value::Int(t.as_second())),
        ("int", Value::String(s)) => match s.parse() {
            Ok(n) => Ok(Value::Int(n)),
            Err(_) => unread(to),
        },
        ("uint", Value::Int(n)) => {
            u64::try_from(*n).map_or_else(|_| range("unsigned integer"), |n| Ok(Value::Uint(n)))
        }
        ("uint", Value::Double(f)) if (0.0..1.844_674_407_370_955e19).contains(f) => {
            Ok(Value::Uint(*f as u64))
        }
        ("uint", Value::Double(_)) => range("unsigned integer"),
        ("uint", Value::String(s)) => match s.parse() {
            Ok(n) => Ok(Value::Uint(n)),
            Err(_) => unread(to),
        },
        ("duration", Value::Int(n)) => Ok(Value::Duration(*n)),
        ("duration", Value::String(s)) => match time::parse_duration(s) {
            Some(n) => Ok(Value::Duration(n)),
            None => unread("google.protobuf.Duration"),
        },
        ("timestamp", Value::Int(n)) => {
            time::from_seconds(*n).map_or_else(|| range("timestamp"), |t| Ok(Value::Timestamp(t)))
        }
        ("timestamp", Value::String(s)) => match time::parse_timestamp(s) {
            Some(t) => Ok(Value::Timestamp(t)),
            None => unread("google.protobuf.Timestamp"),
        },
        _ => no_overload(),
    }
}
