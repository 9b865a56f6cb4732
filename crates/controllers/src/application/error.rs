//! Why a reconcile could not be finished. Errors of Git, manifests or the destination are not
//! errors here: they are conditions of the Application.

/// Why Git and the cluster could not be compared: a condition of the Application.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The cluster, or one of the kinds that the Application has in it, cannot be read.
    #[error("Failed to load live state: {0}")]
    NoLiveState(String),
    #[error("{0}")]
    Other(String),
}

impl From<String> for CompareError {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// For callers that need only the text.
impl From<CompareError> for String {
    fn from(e: CompareError) -> Self {
        e.to_string()
    }
}

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
