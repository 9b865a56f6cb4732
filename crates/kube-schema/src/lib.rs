//! The schema-based processing of an object in an API server, which needs no other knowledge of the
//! object: validation, pruning and defaults by a structural schema, CEL, and Go's decoding of
//! built-in objects.
//!
//! Modules: [`structural`], [`cel`], [`gotypes`]; below them the strings that Kubernetes and Go
//! check and print ([`formats`], [`go_regex`], [`gofmt`]) and [`Cause`]. Pure: no clock, no
//! registry, no HTTP. It knows fields and types, not the meaning of a kind.

mod cause;
pub mod cel;
pub mod formats;
pub mod go_regex;
pub mod gofmt;
pub mod gotypes;
pub mod structural;

pub use cause::Cause;
