//! Helm's `--set` lines: `a.b[0].c=1,d={x,y}` written into a tree of values.
//!
//! Main function: [`apply`]; a [`Form`] for each of Helm's five options. Whole numbers given to
//! `--set` stay integers, the numbers in JSON become floats, as in Helm. It must not know where the
//! values come from: the content of files is asked for through a function.

mod json_value;
mod keys;
mod scanner;

use keys::{Parser, Stop};
use serde_json::{Map, Value};

/// Highest list index, as in Helm.
const MAX_INDEX: i64 = 65_536;
/// Most dots in a name, as in Helm.
const MAX_NESTED_NAME: usize = 30;

/// Content of a file by its name, or why there is none.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The option that the line was given to.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// `--set`: true, false, null and whole numbers are not text.
    Set,
    /// `--set-string`
    Text,
    /// `--set-literal`: everything after the first `=` is the value.
    Literal,
    /// `--set-json`: values are JSON.
    Json,
    /// `--set-file`: values are the content of files.
    File(ReadFile<'a>),
}

/// What one line may cost; Helm has no such limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lists and maps inside each other.
    pub depth: usize,
    /// Places added to lists, empty ones included.
    pub slots: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 400,
            slots: 1 << 20,
        }
    }
}

/// Why a line cannot be used, worded as Helm does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StrvalsError(pub String);

/// Writes what the line says into `into`. After an error a part of the line may be there.
pub fn apply(
    form: Form<'_>,
    line: &str,
    into: &mut Map<String, Value>,
    limits: &Limits,
) -> Result<(), StrvalsError> {
    let mut parser = Parser::new(form, line, *limits);
    loop {
        match parser.key(into, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Failed(message)) => return Err(StrvalsError(message)),
        }
    }
}
