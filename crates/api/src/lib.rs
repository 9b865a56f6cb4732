//! The wire types: Application, AppProject, AppRepository and their parts, and the messages of the
//! API. No behaviour.
//!
//! One Rust type serves both encodings: serde with the JSON names of Argo CD's Go types, prost with
//! their field numbers. A pointer in Go is an `Option` here; empty fields that Go omits are omitted
//! here too.

pub mod access;
pub mod app_repository;
pub mod application;
pub mod application_set;
pub mod cluster;
pub mod constants;
mod destination;
pub mod meta;
pub mod operation;
mod passwords;
pub mod project;
pub mod repo_url;
pub mod repository;
pub mod resource;
pub mod rpc;
mod shared;
pub mod source;
pub mod status;

pub use app_repository::AppRepository;
pub use application::Application;
pub use application_set::ApplicationSet;
pub use project::AppProject;
pub use shared::Shared;

use serde::{Deserialize, Deserializer};

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

pub(crate) fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Go encodes an absent list or map as `null`; it is decoded as empty.
pub(crate) fn null_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
