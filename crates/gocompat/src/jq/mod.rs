//! jq, as gojq has it: the whole language, without files, clocks and environment.
//!
//! Main type: [`Program`]. A program is untrusted: it runs on a machine of its own that does not recurse ([`machine`]), and every run has
//! limits on its steps, the bytes it makes and what it keeps ([`Limits`]). What does not exist here is refused by name.

mod budget;
mod builtins;
mod choices;
mod eval;
mod fault;
mod lexer;
mod machine;
mod node;
mod number;
mod parser;
mod paths;
mod patterns;
mod prelude;
mod resume;
mod terms;
mod text;
mod value;

pub use budget::Limits;
use serde_json::Value;
use std::fmt;

/// Longest program that is read.
const MAX_LENGTH: usize = 8192;

/// Why a program cannot be read, or why it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JqError(String);

impl JqError {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for JqError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JqError {}

/// A program that can be run.
#[derive(Clone, Debug)]
pub struct Program(node::Node);

impl Program {
    pub fn parse(text: &str) -> Result<Self, JqError> {
        if text.len() > MAX_LENGTH {
            return Err(JqError::new(format!("an expression may have {MAX_LENGTH} bytes")));
        }
        parser::parse(text).map(Self)
    }

    /// The results for an input. The error that ended them comes last.
    pub fn run(&self, input: &Value, limits: Limits) -> Results<'_> {
        Results { machine: Some(machine::Machine::new(&self.0, input.into(), limits)) }
    }
}

/// What a program gives, one after the other.
pub struct Results<'p> {
    machine: Option<machine::Machine<'p>>,
}

impl Iterator for Results<'_> {
    type Item = Result<Value, JqError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.machine.as_mut()?.next_result() {
            Ok(Some(value)) => Some(Ok((&value).into())),
            Ok(None) => {
                self.machine = None;
                None
            }
            Err(fault) => {
                self.machine = None;
                Some(Err(JqError::new(fault.message())))
            }
        }
    }
}
