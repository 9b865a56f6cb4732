//! The part of jq that names fields: `.webhooks[].clientConfig.caBundle`, `.spec.containers[] | select(.name == "a") | .image`.
//!
//! Main type: [`Paths`]. Whoever may write an Application may write these expressions, so they cannot loop: there are no definitions, no
//! variables and no arithmetic, and every evaluation has a budget. What is not known is refused by name, never skipped.

mod builtins;
mod eval;
mod lexer;
mod parser;

use serde_json::Value;
use std::fmt;

/// Longest expression that is read.
const MAX_LENGTH: usize = 4096;
/// Deepest nesting of an expression.
const MAX_DEPTH: usize = 48;
/// Most steps of one evaluation; a large object has some ten thousand values.
const MAX_STEPS: usize = 1_000_000;

/// Why an expression cannot be used.
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

/// A key of a map or an index of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Index(usize),
    Key(String),
}

/// An expression that names fields.
#[derive(Clone, Debug)]
pub struct Paths(parser::Expr);

impl Paths {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, JqError> {
        if text.len() > MAX_LENGTH {
            return Err(JqError::new(format!("an expression may have {MAX_LENGTH} characters")));
        }
        parser::parse(&lexer::tokens(text)?).map(Self)
    }

    /// Removes the fields that the expression names. When it cannot be evaluated on this document, nothing is removed.
    pub fn delete_from(&self, document: &mut Value) -> Result<(), JqError> {
        let mut paths = eval::paths(&self.0, document, MAX_STEPS)?;
        // From the end, so that what was removed does not move what is still to go.
        paths.sort();
        for path in paths.iter().rev() {
            remove(document, path);
        }
        Ok(())
    }
}

fn remove(document: &mut Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else {
        *document = Value::Null;
        return;
    };
    let parent = parents.iter().try_fold(document, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    });
    match (parent, last) {
        (Some(Value::Object(map)), Step::Key(key)) => drop(map.remove(key)),
        (Some(Value::Array(list)), Step::Index(index)) if *index < list.len() => drop(list.remove(*index)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
