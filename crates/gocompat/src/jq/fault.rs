//! Why an evaluation stops: an error, which a program may catch, or the end of what it may use,
//! which nothing catches.
//!
//! Main type: [`Fault`].

use super::{text, value::Val};

#[derive(Clone, Debug)]
pub enum Fault {
    /// A message of an operator or a function.
    Message(String),
    /// What `error` was called with.
    Raised(Val),
    /// Nothing catches this: the program was stopped.
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
    /// What `catch` gets.
    pub fn caught(self) -> Option<Val> {
        match self {
            Self::Message(message) => Some(Val::text(message)),
            Self::Raised(value) => Some(value),
            Self::Ended(_) => None,
        }
    }

    /// As the whole program reports it.
    pub fn message(&self) -> String {
        match self {
            Self::Message(message) | Self::Ended(message) => message.clone(),
            Self::Raised(Val::Text(text)) => format!("error: {text}"),
            Self::Raised(value) => format!("error: {}", text::to_json(value)),
        }
    }
}
