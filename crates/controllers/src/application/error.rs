//! Why a reconcile could not be finished. Errors of Git, manifests or the destination are not
//! errors here: they are conditions of the Application.

/// What stops a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the Application cannot be read: {0}")]
    Unreadable(String),
    #[error(transparent)]
    Cluster(#[from] tiphys_cluster::Error),
}

impl Error {
    /// Someone else wrote first: reconcile again immediately.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Cluster(e) if e.is_conflict())
    }

    /// The Application no longer exists.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Cluster(e) if e.is_not_found())
    }
}
