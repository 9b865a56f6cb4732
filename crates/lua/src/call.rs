//! A call from a script into a library function: its arguments, and what it returns.
//!
//! Main types: [`Args`] and [`Fault`].

use crate::{Limit, convert::type_name, meter::Meter, number};
use mlua::{Error, Lua, MultiValue, Value};

/// The return values of a library function.
pub type Answer = Vec<Value>;

/// The error of a library function.
pub enum Fault {
    /// Raised as a Lua error in the script.
    Script(String),
    Limit(Limit),
    /// An error of the virtual machine, such as out of memory.
    Machine(Error),
}

impl Fault {
    pub fn text(message: String) -> Self {
        Self::Script(message)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Machine(error)
    }
}

impl From<Limit> for Fault {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// The arguments of a call, counted from 1.
pub struct Args<'a> {
    pub lua: &'a Lua,
    pub meter: &'a Meter,
    pub(crate) name: &'static str,
    pub(crate) values: &'a MultiValue,
}

impl<'a> Args<'a> {
    pub fn get(&self, n: usize) -> &'a Value {
        self.values.get(n - 1).unwrap_or(&Value::Nil)
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_none(&self, n: usize) -> bool {
        self.get(n).is_nil()
    }

    pub fn charge(&self, steps: u64) -> Result<(), Fault> {
        Ok(self.meter.charge(steps)?)
    }

    /// A string argument; numbers are converted.
    pub fn bytes(&self, n: usize) -> Result<Vec<u8>, Fault> {
        match self.get(n) {
            Value::String(text) => {
                let text = text.as_bytes().to_vec();
                self.charge(text.len() as u64 / 64)?;
                Ok(text)
            }
            Value::Number(n) => Ok(number::text(*n).into_bytes()),
            Value::Integer(n) => Ok(n.to_string().into_bytes()),
            other => Err(self.wrong(n, "string", other)),
        }
    }

    /// A number argument. A text is none, other than in Lua itself.
    pub fn number(&self, n: usize) -> Result<f64, Fault> {
        match self.get(n) {
            Value::Number(number) => Ok(*number),
            Value::Integer(number) => Ok(*number as f64),
            other => Err(self.wrong(n, "number", other)),
        }
    }

    pub fn integer_or(&self, n: usize, default: i64) -> Result<i64, Fault> {
        if self.is_none(n) {
            Ok(default)
        } else {
            Ok(self.number(n)? as i64)
        }
    }

    pub fn text(&self, bytes: &[u8]) -> Result<Answer, Fault> {
        self.charge(bytes.len() as u64 / 16)?;
        Ok(vec![Value::String(self.lua.create_string(bytes)?)])
    }

    pub fn wrong(&self, n: usize, expected: &str, got: &Value) -> Fault {
        Fault::text(format!(
            "bad argument #{n} to {} ({expected} expected, got {})",
            self.name,
            type_name(got)
        ))
    }
}
