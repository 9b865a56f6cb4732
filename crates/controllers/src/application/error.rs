//! Why a reconcile of an Application could not be finished. Faults of Git, manifests or the
//! destination are no errors here: they are conditions of the Application.

/// What stops a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the Application cannot be read: {0}")]
    Unreadable(String),
    #[error(transparent)]
    Cluster(#[from] tiphys_cluster::Error),
}

impl Error {
    /// Somebody else wrote first: look again at once.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Cluster(e) if e.is_conflict())
    }

    /// The Application is gone.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Cluster(e) if e.is_not_found())
    }
}
