//! Helm's `--set` lines: `a.b[0].c=1,d={x,y}` stored into a tree of values.
//!
//! Main function: [`apply`]; a [`Form`] for each of Helm's five options. As in Helm, integers given
//! to `--set` stay integers, and numbers in JSON become floats. It must not know where the values
//! come from: the content of files is read through a callback.

mod json_value;
mod keys;
mod scanner;

use keys::{Parser, Stop};
use serde_json::{Map, Value};

/// Highest list index, as in Helm.
const MAX_INDEX: i64 = 65_536;
/// Most dots in a name, as in Helm.
const MAX_NESTED_NAME: usize = 30;

/// Returns the content of a file by its name, or an error.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The option that the line was given to.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// `--set`: true, false, null and integers are not text.
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

/// Limits for one line; Helm has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nesting of lists and maps.
    pub depth: usize,
    /// Elements added to lists, including empty ones.
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

/// Why a line is invalid, with Helm's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StrvalsError(pub String);

/// Stores the line's values into `into`. After an error some of them may have been stored.
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
