//! Why a build fails, while it is still being wrapped into the words of those who called.

use crate::{FileError, RenderError, SourceRef};

/// What may follow a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Nothing: the text says it all.
    Plain,
    /// The text could not be read as YAML.
    Malformed,
    /// What must be fetched first.
    Need(Vec<SourceRef>),
    /// Not kustomize's to word.
    Render(RenderError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub text: String,
    pub cause: Cause,
}

pub(super) type Res<T> = Result<T, Fault>;

impl Fault {
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cause: Cause::Plain,
        }
    }

    pub fn need(needed: SourceRef) -> Self {
        Self {
            text: format!("{needed} is not there yet"),
            cause: Cause::Need(vec![needed]),
        }
    }

    pub fn over_budget(what: &str, limit: usize) -> Self {
        RenderError::OverBudget {
            what: what.to_owned(),
            limit: limit as u64,
        }
        .into()
    }

    /// Puts words in front.
    pub fn within(mut self, context: impl std::fmt::Display) -> Self {
        self.text = format!("{context}: {}", self.text);
        self
    }

    /// Whether the text is all there is to it, so that something else may be tried.
    pub fn is_final(&self) -> bool {
        matches!(self.cause, Cause::Need(_) | Cause::Render(_))
    }
}

impl From<RenderError> for Fault {
    fn from(error: RenderError) -> Self {
        Self {
            text: error.to_string(),
            cause: Cause::Render(error),
        }
    }
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        RenderError::from(error).into()
    }
}

impl From<Fault> for RenderError {
    fn from(fault: Fault) -> Self {
        match fault.cause {
            Cause::Need(needed) => Self::Need(needed),
            Cause::Render(error) => error,
            Cause::Plain | Cause::Malformed => Self::Source(fault.text),
        }
    }
}

/// `Err` with these words.
macro_rules! fail {
    ($($arg:tt)*) => {
        Err($crate::kustomize::fault::Fault::new(format!($($arg)*)))
    };
}
pub(super) use fail;
