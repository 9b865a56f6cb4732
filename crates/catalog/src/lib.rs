//! The chart catalogue: from a chart repository to what people search, read and install.
//!
//! Main types: [`Repository`] (what to read), [`sync::CatalogSync`] (one run of reading it) and [`Store`]
//! (what is known, in SQLite or PostgreSQL). The tables and documents for charts and their files
//! are those of kubeapps, so that its database can be taken over and given back. It must not know
//! clusters, where Applications are, or who asks.

pub mod apprepository;
pub mod asset_syncer;
mod error;
pub mod fields;
pub mod files;
mod filter;
mod folding;
mod gunzip;
pub mod icon;
pub mod index;
pub mod lease;
pub mod model;
mod opening;
pub mod release;
mod repository;
pub mod search;
mod spec;
pub mod store;
pub mod sync;

pub use error::CatalogError;
pub use filter::Filter;
pub use repository::{Form, RepoId, Repository};
pub use spec::RepoSpec;
pub use store::Store;

/// Runs work that blocks on a thread for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CatalogError> + Send + 'static,
) -> Result<T, CatalogError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| CatalogError::Internal(format!("work was abandoned: {e}")))?
}
