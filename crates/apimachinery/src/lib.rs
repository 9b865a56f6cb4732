//! Untyped Kubernetes: what any API server and any client agree on.
//!
//! Main type: [`object::Object`], a JSON object with Kubernetes accessors. Beside it the names of
//! things ([`gvk`], [`key`]), label and field selectors, resource quantities, the schema of the
//! built-in kinds and the patches. Pure: no clock, no network, no file. It knows nothing of
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
