//! The error of a build while its callers are still adding context.

use crate::{FileError, RenderError, SourceRef};

/// The cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Fully described by the text.
    Plain,
    /// The text could not be read as YAML.
    Malformed,
    /// The sources that must be fetched first.
    Need(Vec<SourceRef>),
    /// An error that does not come from kustomize.
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

    /// Prefixes the message with context.
    pub fn within(mut self, context: impl std::fmt::Display) -> Self {
        self.text = short(format!("{context}: {}", self.text));
        self
    }

    /// Prefixes the quoted message. Each time, what was quoted before has twice as many backslashes.
    pub fn quoted(mut self, context: &str) -> Self {
        self.text = short(format!("{context} {:?}", self.text));
        self
    }

    /// Whether no alternative may be tried after this failure.
    pub fn is_final(&self) -> bool {
        matches!(self.cause, Cause::Need(_) | Cause::Render(_))
    }
}

/// The longest message: kustomizations in each other add to it at each level.
const LONGEST: usize = 16 << 10;

fn short(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
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

/// What stands for text that may contain secrets: errors get into conditions and logs. kustomize
/// prints such text.
pub(super) const HIDDEN: &str = "…";

/// No text stays no text.
pub(super) fn hidden(text: &str) -> &'static str {
    if text.is_empty() { "" } else { HIDDEN }
}

/// Returns `Err` with this message.
macro_rules! fail {
    ($($arg:tt)*) => {
        Err($crate::kustomize::fault::Fault::new(format!($($arg)*)))
    };
}
pub(super) use fail;
