//! Untyped Kubernetes objects: what every API server and client has in common.
//!
//! Main type: [`object::Object`], a JSON object with Kubernetes accessors. Also the names of kinds
//! and objects ([`gvk`], [`key`]), label and field selectors, resource quantities, the schema of
//! the built-in kinds, and the patches. Pure: no clock, network or files. It knows nothing of
//! Applications, Git or Argo CD.

pub mod gvk;
pub mod kept;
pub mod key;
pub mod object;
pub mod packed;
pub mod patch;
pub mod quantity;
pub mod schema;
pub mod selector;

pub use gvk::{GroupKind, Gvk, Gvr};
pub use kept::Kept;
pub use key::ResourceKey;
pub use object::{Object, ObjectError, OwnerReference};
