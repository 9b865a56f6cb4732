//! Every decision about resources, as pure functions: what differs, what is healthy, who owns what,
//! and what a sync does next.
//!
//! Main types: [`types::Comparison`] (the cluster compared with Git), and the plan that `sync`
//! makes from it. It must not know how objects are rendered, read, watched or written, and has no
//! clock: the time is an argument.

pub mod actions;
mod base;
pub mod compare;
pub mod customize;
pub mod diff;
pub mod error;
pub mod generate_paths;
pub mod health;
pub mod integrity;
pub mod marks;
pub mod normalize;
mod pattern;
pub mod permit;
pub mod project;
mod remarshal;
mod rules;
pub mod spec;
pub mod spending;
pub mod sync;
pub mod track;
pub mod tree;
pub mod types;
mod updates;
