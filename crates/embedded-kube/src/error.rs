//! The reasons why a server fails to start. Main type: [`Error`].

use crate::status::Status;
use crate::store::StoreError;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot prepare the server's identity: {0}")]
    Identity(String),
    #[error("cannot prepare the cluster: {0}")]
    Bootstrap(#[from] Status),
}
