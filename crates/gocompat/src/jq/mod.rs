//! jq, as implemented by gojq: the whole language, without files, clocks and environment.
//!
//! Main type: [`Program`]. Programs are untrusted: they run on a machine that does not recurse
//! ([`machine`]), and every run has limits on its steps, allocated bytes and saved state
//! ([`Limits`]). Features that do not exist here are refused by name.

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

/// Longest program that is accepted.
const MAX_LENGTH: usize = 8192;

/// Why a program is invalid, or why it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JqError {
    text: String,
    stopped: bool,
}

impl JqError {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stopped: false,
        }
    }

    /// Whether the program was stopped at one of its limits.
    pub fn is_limit(&self) -> bool {
        self.stopped
    }
}

impl fmt::Display for JqError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for JqError {}

/// A program that can be run.
#[derive(Clone, Debug)]
pub struct Program(node::Node);

impl Program {
    pub fn parse(text: &str) -> Result<Self, JqError> {
        if text.len() > MAX_LENGTH {
            return Err(JqError::new(format!(
                "an expression may have {MAX_LENGTH} bytes"
            )));
        }
        parser::parse(text).map(Self)
    }

    /// The results for an input. An error that ended them comes last.
    pub fn run(&self, input: &Value, limits: Limits) -> Results<'_> {
        Results {
            machine: Some(machine::Machine::new(&self.0, input.into(), limits)),
            left: limits.steps,
        }
    }
}

/// The results of a program, one after the other.
pub struct Results<'p> {
    machine: Option<machine::Machine<'p>>,
    left: u64,
}

impl Results<'_> {
    /// The unused steps of the run.
    pub fn steps_left(&self) -> u64 {
        self.left
    }
}

impl Iterator for Results<'_> {
    type Item = Result<Value, JqError>;

    fn next(&mut self) -> Option<Self::Item> {
        let machine = self.machine.as_mut()?;
        let result = machine.next_result();
        self.left = machine.budget.steps_left();
        match result {
            Ok(Some(value)) => Some(Ok((&value).into())),
            Ok(None) => {
                self.machine = None;
                None
            }
            Err(fault) => {
                self.machine = None;
                Some(Err(JqError {
                    text: fault.message(),
                    stopped: matches!(fault, fault::Fault::Ended(_)),
                }))
            }
        }
    }
}
