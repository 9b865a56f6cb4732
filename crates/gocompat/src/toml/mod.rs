//! TOML as `github.com/BurntSushi/toml` reads and prints it.
//!
//! Main functions: [`parse`] and [`to_string`]. Dates are read as text.

mod decode;
mod encode;

pub use decode::parse;
pub use encode::to_string;

/// Why a text is no TOML, or a value cannot be written as TOML, worded as the Go library does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TomlError(pub(crate) String);
