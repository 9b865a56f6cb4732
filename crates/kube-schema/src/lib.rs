//! What an API server does to an object by schemas alone, before anything else about the object is
//! known: validation, pruning and defaults by a structural schema, CEL, and what Go keeps of a
//! built-in object.
//!
//! Modules: [`structural`], [`cel`], [`gotypes`]; below them the strings that Kubernetes and Go
//! check and print ([`formats`], [`go_regex`], [`gofmt`]) and [`Cause`]. Pure: no clock, no
//! registry, no HTTP. It knows fields and types, not what a kind means.

mod cause;
pub mod cel;
pub mod formats;
pub mod go_regex;
pub mod gofmt;
pub mod gotypes;
pub mod structural;

pub use cause::Cause;
