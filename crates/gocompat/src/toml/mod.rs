//! TOML as parsed and printed by `github.com/BurntSushi/toml`.
//!
//! Main functions: [`parse`] and [`to_string`]. Dates are parsed as text.

mod decode;
mod encode;

pub use decode::parse;
pub use encode::to_string;

/// Why a text is not TOML, or a value cannot be written as TOML, with the Go library's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TomlError(pub(crate) String);
