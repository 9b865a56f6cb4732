//! Functions of strings. Main function: [`call`]. Positions count characters.

use super::eval::{Evaluated, failed};
use super::time;
use super::value::{Key, Value};
use crate::go_regex::compile_pattern;
use crate::gofmt;

/// Calls a string function; None for other functions.
pub fn call(function: &str, args: &[Value]) -> Option<Evaluated> {
    let [Value::String(text), rest @ ..] = args else {
        return None;
    };
    Some(match (function, rest) {
        ("contains", [Value::String(other)]) => Ok(Value::Bool(text.contains(&**other))),
        ("startsWith", [Value::String(other)]) => Ok(Value::Bool(text.starts_with(&**other))),
        ("endsWith", [Value::String(other)]) => Ok(Value::Bool(text.ends_with(&**other))),
        ("matches", [Value::String(pattern)]) => match compile_pattern(pattern) {
            Some(regex) => Ok(Value::Bool(regex.is_match(text))),
            None => failed(crate::go_regex::error(pattern).unwrap_or_default()),
        },
        ("find" | "findAll", [Value::String(pattern), limit @ ..]) => {
            find(function, text, pattern, limit)
        }
        ("charAt", [Value::Int(at)]) => char_at(text, *at),
        ("indexOf" | "lastIndexOf", [Value::String(other), from @ ..]) => {
            position(function, text, other, from)
        }
        ("lowerAscii", []) => Ok(text.to_ascii_lowercase().into()),
        ("upperAscii", []) => Ok(text.to_ascii_uppercase().into()),
        ("trim", []) => Ok(text.trim().into()),
        ("strings.quote", []) => Ok(quote(text).into()),
        ("replace", [Value::String(old), Value::String(new)]) => {
            Ok(text.replace(&**old, new).into())
        }
        ("replace", [Value::String(old), Value::String(new), Value::Int(n)]) => {
            Ok(match usize::try_from(*n) {
                Ok(n) => text.replacen(&**old, new, n).into(),
                Err(_) => text.replace(&**old, new).into(),
            })
        }
        ("split", [Value::String(by)]) => Ok(split(text, by, -1)),
        ("split", [Value::String(by), Value::Int(n)]) => Ok(split(text, by, *n)),
        ("substring", [Value::Int(from), to @ ..]) => substring(text, *from, to),
        ("format", [Value::List(list)]) => format(text, &list.items),
        _ => return None,
    })
}

fn find(function: &str, text: &str, pattern: &str, limit: &[Value]) -> Evaluated {
    let Some(regex) = compile_pattern(pattern) else {
        return failed(format!(
            "Illegal regex: {}",
            crate::go_regex::error(pattern).unwrap_or_default()
        ));
    };
    if function == "find" {
        return Ok(regex.find(text).map_or("", |m| m.as_str()).into());
    }
    let limit = match limit {
        [Value::Int(n)] => usize::try_from(*n).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    Ok(Value::strings(
        regex.find_iter(text).take(limit).map(|m| m.as_str()),
    ))
}

fn char_at(text: &str, at: i64) -> Evaluated {
    let length = text.chars().count() as i64;
    if at < 0 || at > length {
        return failed(format!("index out of range: {at}"));
    }
    Ok(text
        .chars()
        .nth(at as usize)
        .map(String::from)
        .unwrap_or_default()
        .into())
}

fn position(function: &str, text: &str, other: &str, from: &[Value]) -> Evaluated {
    let chars: Vec<char> = text.chars().collect();
    let wanted: Vec<char> = other.chars().collect();
    let last = function == "lastIndexOf";
    let from = match from {
        [Value::Int(n)] if *n < 0 || *n > chars.len() as i64 => {
            return failed(format!("index out of range: {n}"));
        }
        [Value::Int(n)] => Some(*n as usize),
        _ => None,
    };
    if wanted.is_empty() {
        return Ok(Value::Int(
            from.unwrap_or(if last { chars.len() } else { 0 }) as i64,
        ));
    }
    if wanted.len() > chars.len() {
        return Ok(Value::Int(-1));
    }
    let end = chars.len() - wanted.len();
    let fits = |i: &usize| chars[*i..*i + wanted.len()] == wanted[..];
    let found = match (last, from) {
        (false, from) => (from.unwrap_or(0)..=end).find(fits),
        (true, from) => (0..=from.unwrap_or(end).min(end)).rev().find(fits),
    };
    Ok(Value::Int(found.map_or(-1, |i| i as i64)))
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn split(text: &str, by: &str, n: i64) -> Value {
    if n == 0 {
        return Value::list(Vec::new());
    }
    let limit = usize::try_from(n).unwrap_or(usize::MAX);
    if by.is_empty() {
        let chars: Vec<String> = text.chars().map(String::from).collect();
        if chars.len() <= limit {
            return Value::strings(chars);
        }
        let (head, tail) = chars.split_at(limit - 1);
        return Value::strings(head.iter().cloned().chain([tail.concat()]));
    }
    Value::strings(text.splitn(limit, by))
}

fn substring(text: &str, from: i64, to: &[Value]) -> Evaluated {
    let length = text.chars().count() as i64;
    let to = match to {
        [Value::Int(n)] => *n,
        _ => length,
    };
    if from < 0 || from > length {
        return failed(format!("index out of range: {from}"));
    }
    if to < 0 || to > length {
        return failed(format!("index out of range: {to}"));
    }
    if from > to {
        return failed(format!("invalid substring range. start: {from}, end: {to}"));
    }
    Ok(text
        .chars()
        .skip(from as usize)
        .take((to - from) as usize)
        .collect::<String>()
        .into())
}

/// `"%d of %s".format([1, "x"])`
fn format(pattern: &str, args: &[Value]) -> Evaluated {
    let mut out = String::new();
    let mut args = args.iter();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.peek() == Some(&'.') {
            chars.next();
            let mut digits = String::new();
            while let Some(d) = chars.next_if(char::is_ascii_digit) {
                digits.push(d);
            }
            precision = digits.parse::<usize>().ok().filter(|p| *p <= 100);
        }
        let Some(verb) = chars.next() else {
            return failed("could not parse formatting clause: unexpected end of string");
        };
        let Some(arg) = args.next() else {
            return failed("index 0 out of range");
        };
        match one(verb, precision, arg) {
            Ok(text) => out.push_str(&text),
            Err(text) => return failed(text),
        }
    }
    Ok(out.into())
}

fn one(verb: char, precision: Option<usize>, arg: &Value) -> Result<String, String> {
    let wrong = |clause: &str, allowed: &str| {
        Err(format!(
            "error during formatting: {clause} clause can only be used on {allowed}, was given {}",
            arg.type_name()
        ))
    };
    let number = |v: &Value| match v {
        Value::Double(f) => Some(*f),
        Value::Int(n) => Some(*n as f64),
        Value::Uint(n) => Some(*n as f64),
        _ => None,
    };
    match (verb, arg) {
        ('s', _) => shown(arg),
        ('d', Value::Int(_) | Value::Uint(_)) => Ok(arg.text().unwrap_or_default()),
        ('d', Value::Double(f)) if !f.is_finite() => Ok(gofmt::float(*f)),
        ('d', _) => wrong("decimal", "integers"),
        ('f', _) => match number(arg) {
            Some(f) => Ok(format!("{f:.*}", precision.unwrap_or(6))),
            None => wrong("fixed-point", "doubles"),
        },
        ('e', _) => match number(arg) {
            Some(f) => Ok(scientific(f, precision.unwrap_or(6))),
            None => wrong("scientific", "doubles"),
        },
        ('b', Value::Int(n)) => Ok(if *n < 0 {
            format!("-{:b}", n.unsigned_abs())
        } else {
            format!("{n:b}")
        }),
        ('b', Value::Uint(n)) => Ok(format!("{n:b}")),
        ('b', Value::Bool(b)) => Ok(u8::from(*b).to_string()),
        ('b', _) => wrong(
            "only integers and bools can be formatted as binary; binary",
            "integers and bools",
        ),
        ('o', Value::Int(n)) => Ok(if *n < 0 {
            format!("-{:o}", n.unsigned_abs())
        } else {
            format!("{n:o}")
        }),
        ('o', Value::Uint(n)) => Ok(format!("{n:o}")),
        ('o', _) => wrong("octal", "integers"),
        ('x' | 'X', _) => {
            let text = match arg {
                Value::Int(n) if *n < 0 => format!("-{:x}", n.unsigned_abs()),
                Value::Int(n) => format!("{n:x}"),
                Value::Uint(n) => format!("{n:x}"),
                Value::String(s) => s.bytes().map(|b| format!("{b:02x}")).collect(),
                Value::Bytes(b) => b.iter().map(|b| format!("{b:02x}")).collect(),
                _ => return wrong("hex", "integers, bytes, and strings"),
            };
            Ok(if verb == 'X' {
                text.to_uppercase()
            } else {
                text
            })
        }
        (other, _) => Err(format!(
            "could not parse formatting clause: unrecognized formatting clause \"{other}\""
        )),
    }
}

fn scientific(f: f64, precision: usize) -> String {
    let text = format!("{f:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, number) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |n| ('-', n));
    format!("{digits}e{sign}{number:0>2}")
}

/// `%s`
fn shown(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".into(),
        Value::List(list) => {
            let parts: Result<Vec<String>, String> = list.items.iter().map(shown).collect();
            format!("[{}]", parts?.join(", "))
        }
        Value::Map(map) => {
            let mut parts = Vec::new();
            for (key, value) in map.iter() {
                let key = match key {
                    Key::String(s) => s.to_string(),
                    other => other.value().text().unwrap_or_default(),
                };
                parts.push(format!("{key}: {}", shown(value)?));
            }
            format!("{{{}}}", parts.join(", "))
        }
        Value::Duration(n) => time::seconds(*n),
        Value::Double(f) => gofmt::float(*f),
        other => other.text().ok_or_else(|| format!("error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}", other.type_name()))?,
    })
}
