//! Go's `text/template`.
//!
//! Main types: [`TemplateSet`], [`Value`] and [`Functions`]; main function: [`execute`]. A text is
//! parsed once to a compact form, which can be shared and cached, and executed with values that are
//! shared and mutable like Go's. Output and error texts are Go's, byte for byte. Nothing here knows
//! Helm: its functions and objects are added through [`Function`] and [`Object`].

mod budget;
mod builtin;
mod code;
mod compile;
mod error;
mod exec;
pub mod format;
mod function;
mod lex;
mod node;
mod number;
mod parse;
mod set;
mod shared;
mod types;
mod unicode;
mod value;

pub use budget::{Budget, Deadline, Limits};
pub use code::Template;
pub use error::{Error, ErrorKind};
pub use exec::{MissingKey, Options, execute};
pub use function::{Around, Call, Function, Functions, Run, Then};
pub use set::{Parsed, TemplateSet};
pub use types::{BYTES, INT, INT64, IntKind, LIST, MAP, Named, STRINGS, Type, UintKind};
pub use value::{JsonForm, List, Map, NilMap, Object, Str, Value, is_exported};
