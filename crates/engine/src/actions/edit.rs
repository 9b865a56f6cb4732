//! Reading and changing fields by path. Main type: [`Edit`].

use super::ActionError;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;

/// An object being edited.
pub struct Edit(Value);

impl Edit {
    pub fn new(object: &Object) -> Self {
        Self(Value::Object(object.0.clone()))
    }

    pub fn done(self) -> Object {
        Object::from_value(self.0).unwrap_or_default()
    }

    pub fn get(&self, path: &[&str]) -> &Value {
        at(&self.0, path)
    }

    /// Sets a field; missing parents are created as maps.
    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        let mut place = &mut self.0;
        for field in path {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[field];
        }
        *place = value.into();
    }

    pub fn remove(&mut self, path: &[&str]) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let parent = parents
            .iter()
            .try_fold(&mut self.0, |value, field| value.get_mut(field));
        if let Some(Value::Object(fields)) = parent {
            fields.remove(*last);
        }
    }

    pub fn annotate(&mut self, key: &str, value: impl Into<Value>) {
        self.set(&["metadata", "annotations", key], value);
    }

    pub fn label(&mut self, key: &str, value: &str) {
        self.set(&["metadata", "labels", key], value);
    }

    /// Resumes what is suspended; otherwise changes nothing.
    pub fn resume(&mut self, path: &[&str]) {
        if is_true(self.get(path)) {
            self.set(path, false);
        }
    }
}

/// The value at a path, null if it is missing.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, field| {
        value.get(field).unwrap_or(&Value::Null)
    })
}

pub fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "annotations", key]).as_str()
}

pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "labels", key]).as_str()
}

pub fn length(value: &Value) -> u64 {
    value.as_array().map_or(0, |items| items.len() as u64)
}

/// A parameter as a number; a whole number becomes an integer. As in Argo CD's Lua, a text without
/// a point is a decimal or hexadecimal integer: it has no exponent, and it does not overflow.
pub fn number(text: Option<&str>) -> Result<Value, ActionError> {
    let text = text.unwrap_or_default();
    let refused = || ActionError::Refused(format!("invalid number: {text}"));
    let digits = text.trim_matches([' ', '\n', '\t']);
    if !digits.contains('.') {
        let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
        let whole = match hexadecimal {
            // A sign would stand before the prefix.
            Some(digits) if digits.starts_with(['+', '-']) => return Err(refused()),
            Some(digits) => i64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        return whole.map(Value::from).map_err(|_| refused());
    }
    let number = digits.parse::<f64>().ok().filter(|n| n.is_finite());
    match number.ok_or_else(refused)? {
        n if n.fract() == 0.0 && n.abs() < 9e15 => Ok((n as i64).into()),
        n => Ok(n.into()),
    }
}
