//! The grammar: names, dots, indices and values, stored into the tree while parsing.
//!
//! Main type: [`Parser`].

use super::scanner::Scanner;
use super::{Form, Limits, MAX_INDEX, MAX_NESTED_NAME, json_value};
use crate::text::{is_space, quote, quote_rune};
use serde_json::{Map, Value};
use std::num::IntErrorKind;

/// Why parsing stops.
pub(super) enum Stop {
    /// The end of the line, which is not an error.
    End,
    Failed(String),
}

type Step<T> = Result<T, Stop>;

fn fail<T>(message: impl Into<String>) -> Step<T> {
    Err(Stop::Failed(message.into()))
}

pub(super) struct Parser<'a> {
    form: Form<'a>,
    line: Scanner<'a>,
    limits: Limits,
}

impl<'a> Parser<'a> {
    pub fn new(form: Form<'a>, line: &'a str, limits: Limits) -> Self {
        Self {
            form,
            line: Scanner::new(line, !matches!(form, Form::Literal)),
            limits,
        }
    }

    /// One name and its value.
    pub fn key(&mut self, data: &mut Map<String, Value>, dots: usize) -> Step<()> {
        let stops: &[char] = if matches!(self.form, Form::Literal) {
            &['=', '[', '.']
        } else {
            &['=', '[', '.', ',']
        };
        let (name, stop) = self.line.until(stops);
        match stop {
            None if name.is_empty() => Err(Stop::End),
            None => fail(format!("key {} has no value", quote(&name))),
            Some('[') => self.indexed(data, &name, dots),
            Some('=') => self.assign(data, &name),
            Some('.') => self.nested(data, &name, dots + 1),
            Some(_) => fail(format!(
                "key {} has no value (cannot end with ,)",
                quote(&name)
            )),
        }
    }

    fn indexed(&mut self, data: &mut Map<String, Value>, name: &str, dots: usize) -> Step<()> {
        let index = self.index()?;
        let existed = data.get_mut(name);
        let mut list = existed.map_or(Ok(Vec::new()), |value| {
            take_list(value).ok_or_else(|| not_a(value, "[]interface {}"))
        })?;
        let outcome = self.item(&mut list, index, dots);
        set(data, name, Value::Array(list));
        outcome
    }

    fn nested(&mut self, data: &mut Map<String, Value>, name: &str, dots: usize) -> Step<()> {
        if dots > MAX_NESTED_NAME {
            return fail(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_NESTED_NAME}"
            ));
        }
        let mut fresh = Map::new();
        let inner = match data.get_mut(name) {
            None => &mut fresh,
            Some(Value::Object(map)) => map,
            Some(other) => return Err(not_a(other, "map[string]interface {}")),
        };
        let outcome = self.deeper(|parser| parser.key(inner, dots));
        if outcome.is_ok() && inner.is_empty() {
            return fail(format!("key map {} has no value", quote(name)));
        }
        if !fresh.is_empty() {
            set(data, name, Value::Object(fresh));
        }
        outcome
    }

    fn assign(&mut self, data: &mut Map<String, Value>, name: &str) -> Step<()> {
        match self.form {
            Form::Literal => set(data, name, Value::String(self.line.until(&[]).0)),
            Form::Json => {
                let value = self.json()?;
                set(data, name, value);
            }
            _ => match self.line.peek() {
                None => {
                    set(data, name, Value::String(String::new()));
                    return Err(Stop::End);
                }
                Some('{') => {
                    let list = self.list()?;
                    set(data, name, list);
                }
                Some(_) => {
                    let value = self.scalar(&[',']).0?;
                    set(data, name, value);
                }
            },
        }
        Ok(())
    }

    /// The text between the brackets, after the opening one.
    fn index(&mut self) -> Step<i64> {
        let (text, Some(_)) = self.line.until(&[']']) else {
            return Err(Stop::End);
        };
        text.parse().or_else(|e: std::num::ParseIntError| {
            let why = match e.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            fail(format!(
                "error parsing index: strconv.Atoi: parsing {}: {why}",
                quote(&text)
            ))
        })
    }

    /// What follows an index.
    fn item(&mut self, list: &mut Vec<Value>, index: i64, dots: usize) -> Step<()> {
        let Ok(at) = usize::try_from(index) else {
            return fail(format!("negative {index} index not allowed"));
        };
        let (text, stop) = self.line.until(&['[', '.', '=']);
        if !text.is_empty() {
            let runes: Vec<String> = text.chars().map(quote_rune).collect();
            return fail(format!(
                "unexpected data at end of array index: [{}]",
                runes.join(" ")
            ));
        }
        match stop {
            None => Err(Stop::End),
            Some('=') => {
                let value = self.item_value()?;
                self.put(list, index, value)
            }
            Some('[') => {
                let next = self.index()?;
                let mut inner = match list.get_mut(at) {
                    None | Some(Value::Null) => Vec::new(),
                    Some(value) => {
                        take_list(value).ok_or_else(|| not_a(value, "[]interface {}"))?
                    }
                };
                let outcome = self.deeper(|parser| parser.item(&mut inner, next, dots));
                if outcome.is_ok() {
                    return self.put(list, index, Value::Array(inner));
                }
                if let (Some(place), false) = (list.get_mut(at), inner.is_empty()) {
                    *place = Value::Array(inner);
                }
                outcome
            }
            Some(_) => {
                let mut inner = match list.get_mut(at) {
                    Some(Value::Object(map)) => std::mem::take(map),
                    _ => Map::new(),
                };
                let outcome = self.deeper(|parser| parser.key(&mut inner, dots));
                if outcome.is_ok() {
                    return self.put(list, index, Value::Object(inner));
                }
                if let Some(place) = list.get_mut(at) {
                    *place = Value::Object(inner);
                }
                outcome
            }
        }
    }

    fn item_value(&mut self) -> Step<Value> {
        match (self.form, self.line.peek()) {
            (Form::Literal, _) => Ok(Value::String(self.line.until(&[]).0)),
            (Form::Json, _) => self.json(),
            (_, None) => Ok(Value::String(String::new())),
            (_, Some('{')) => self.list(),
            _ => self.scalar(&[',']).0,
        }
    }

    /// Sets an element of a list, extending it as needed.
    fn put(&mut self, list: &mut Vec<Value>, index: i64, value: Value) -> Step<()> {
        let at = usize::try_from(index).expect("negative ones are refused before");
        if index > MAX_INDEX {
            return fail(format!(
                "index of {index} is greater than maximum supported index of {MAX_INDEX}"
            ));
        }
        let more = (at + 1).saturating_sub(list.len());
        let Some(left) = self.limits.slots.checked_sub(more) else {
            return fail("the lists are too long");
        };
        self.limits.slots = left;
        list.resize(list.len() + more, Value::Null);
        list[at] = value;
        Ok(())
    }

    /// `{a,b}`
    fn list(&mut self) -> Step<Value> {
        self.line.next();
        let mut list = Vec::new();
        loop {
            let (value, stop) = self.scalar(&[',', '}']);
            if stop.is_none() {
                return fail("list must terminate with '}'");
            }
            list.push(value?);
            if stop == Some('}') {
                if self.line.peek() == Some(',') {
                    self.line.next();
                }
                return Ok(Value::Array(list));
            }
        }
    }

    fn scalar(&mut self, stops: &[char]) -> (Step<Value>, Option<char>) {
        let (text, stop) = self.line.until(stops);
        let value = match self.form {
            Form::Set => Ok(typed(text)),
            Form::File(_) if stop.is_none() && stops.len() > 1 => Ok(Value::Null), // an open list fails, its last file is not asked for
            Form::File(read) => read(&text).map(Value::String).map_err(Stop::Failed),
            _ => Ok(Value::String(text)),
        };
        (value, stop)
    }

    /// A JSON value and the comma after it; an empty value is null.
    fn json(&mut self) -> Step<Value> {
        if self.blank() {
            return Ok(Value::Null);
        }
        let (value, taken) = json_value::first(self.line.rest()).map_err(Stop::Failed)?;
        self.line.skip(taken);
        self.blank();
        Ok(value)
    }

    /// Skips spaces, and a comma after them. False if something else follows.
    fn blank(&mut self) -> bool {
        loop {
            match self.line.peek() {
                None => return true,
                Some(',') => {
                    self.line.next();
                    return true;
                }
                Some(c) if is_space(c) => {
                    self.line.next();
                }
                Some(_) => return false,
            }
        }
    }

    fn deeper(&mut self, step: impl FnOnce(&mut Self) -> Step<()>) -> Step<()> {
        let Some(depth) = self.limits.depth.checked_sub(1) else {
            return fail("lists and maps are nested too deep");
        };
        self.limits.depth = depth;
        let outcome = step(self);
        self.limits.depth += 1;
        outcome
    }
}

/// An empty name is ignored.
fn set(data: &mut Map<String, Value>, name: &str, value: Value) {
    if !name.is_empty() {
        data.insert(name.to_owned(), value);
    }
}

fn take_list(value: &mut Value) -> Option<Vec<Value>> {
    value.as_array_mut().map(std::mem::take)
}

fn not_a(value: &Value, wanted: &str) -> Stop {
    let is = match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    Stop::Failed(format!(
        "unable to parse key: interface conversion: interface {{}} is {is}, not {wanted}"
    ))
}

/// The type that `--set` gives a text. With a leading zero it stays text.
fn typed(text: String) -> Value {
    for (word, value) in [
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("null", Value::Null),
        ("0", Value::from(0)),
    ] {
        if text.eq_ignore_ascii_case(word) {
            return value;
        }
    }
    match text.parse::<i64>() {
        Ok(number) if !text.starts_with('0') => Value::from(number),
        _ => Value::String(text),
    }
}
