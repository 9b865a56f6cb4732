//! RBAC: the attributes of a request, and whether the bindings of the cluster allow it to a user.
//!
//! Main types: [`Attributes`], the question, and [`Policy`], which answers it. It knows nothing of
//! tokens: the user is authenticated beforehand.

pub mod attributes;
pub mod policy;
pub mod rules;

pub use attributes::Attributes;
pub use policy::{GROUP, Policy, together};
pub use rules::Rule;
