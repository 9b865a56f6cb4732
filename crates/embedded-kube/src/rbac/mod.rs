//! Roles: what a request asks for, and whether the bindings of the cluster allow it to a user.
//!
//! Main types: [`Attributes`], the question, and [`Policy`], which answers it. It knows nothing of
//! tokens: who the user is has been found out before.

pub mod attributes;
pub mod policy;
pub mod rules;

pub use attributes::Attributes;
pub use policy::{GROUP, Policy, together};
pub use rules::Rule;
