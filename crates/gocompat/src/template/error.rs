//! Why a template cannot be parsed or executed, with Go's messages.
//!
//! Main type: [`Error`]. Errors wrap each other (`error calling include: template: …`); each link
//! stores only its own text.

use std::fmt;

/// The kind of failure; that of the innermost link counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not a template.
    Parse,
    /// Execution failed at a location in a template.
    Execute,
    /// The same, because a map lacks a key or a value a field.
    Missing,
    /// A function rejected its arguments, or the template asked it to fail.
    Function,
    /// A limit of the budget was reached; Go would continue.
    Limit,
}

/// An error, as a chain from the outermost text to the cause.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    cause: Option<Box<Error>>,
}

impl Error {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            cause: None,
        }
    }

    /// An error returned by a function.
    pub fn function(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Function, message)
    }

    /// A limit was reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Adds a prefix to this error, as `%w` does.
    #[must_use]
    pub fn wrap(self, words: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Execute,
            message: words.into(),
            cause: Some(Box::new(self)),
        }
    }

    /// The text of this link alone; the cause's text follows it.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn cause(&self) -> Option<&Error> {
        self.cause.as_deref()
    }

    /// From this error to the innermost.
    pub fn chain(&self) -> impl Iterator<Item = &Error> {
        std::iter::successors(Some(self), |e| e.cause())
    }

    /// The kind of the innermost error.
    pub fn kind(&self) -> ErrorKind {
        self.chain().last().map_or(self.kind, |e| e.kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain().try_for_each(|link| f.write_str(&link.message))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())
    }
}

impl std::error::Error for Error {}

/// A chain may be long, so it is dropped link by link.
impl Drop for Error {
    fn drop(&mut self) {
        let mut next = self.cause.take();
        while let Some(mut link) = next {
            next = link.cause.take();
        }
    }
}

impl From<super::value::NilMap> for Error {
    fn from(e: super::value::NilMap) -> Self {
        Error::function(e.to_string())
    }
}
