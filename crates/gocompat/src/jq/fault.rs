//! Why an evaluation stops: an error, which a program may catch, or an exhausted limit, which
//! nothing catches.
//!
//! Main type: [`Fault`].

use super::{text, value::Val};

#[derive(Clone, Debug)]
pub enum Fault {
    /// The message of an operator or a function.
    Message(String),
    /// The argument of `error`.
    Raised(Val),
    /// Cannot be caught: the program was stopped.
    Ended(String),
}

pub type Out = Result<Val, Fault>;

pub fn fail<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Message(message.into()))
}

pub fn ended<T>(message: &str) -> Result<T, Fault> {
    Err(Fault::Ended(message.to_owned()))
}

impl Fault {
    /// The value that `catch` receives.
    pub fn caught(self) -> Option<Val> {
        match self {
            Self::Message(message) => Some(Val::text(message)),
            Self::Raised(value) => Some(value),
            Self::Ended(_) => None,
        }
    }

    /// The message that the whole program reports.
    pub fn message(&self) -> String {
        match self {
            Self::Message(message) | Self::Ended(message) => message.clone(),
            Self::Raised(Val::Text(text)) => format!("error: {text}"),
            Self::Raised(value) => format!("error: {}", text::to_json(value)),
        }
    }
}
