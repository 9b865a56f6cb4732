//! Errors of expressions.
//!
//! Main type: [`ExprError`].

use std::fmt;

/// When a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Compile,
    Run,
}

/// Why a program does not compile, or did not give a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    phase: Phase,
    message: String,
    /// Offset in characters, until [`ExprError::placed`] makes a place of it.
    at: usize,
    place: Option<(usize, usize)>,
}

impl ExprError {
    pub(super) fn compile(at: usize, message: impl Into<String>) -> Self {
        Self {
            phase: Phase::Compile,
            message: message.into(),
            at,
            place: None,
        }
    }

    /// An error of a function, or of an operation, while a program runs.
    pub fn run(message: impl Into<String>) -> Self {
        Self {
            phase: Phase::Run,
            message: message.into(),
            at: 0,
            place: None,
        }
    }

    /// The same with the line and column of its offset.
    pub(super) fn placed(mut self, code: &str) -> Self {
        let before = code.chars().take(self.at);
        let (mut line, mut column) = (1, 1);
        for c in before {
            if c == '\n' {
                line += 1;
                column = 1;
            } else {
                column += 1;
            }
        }
        self.place = Some((line, column));
        self
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.place {
            Some((line, column)) => write!(f, " ({line}:{column})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ExprError {}
