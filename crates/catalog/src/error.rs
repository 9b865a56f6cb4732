//! Errors of the catalogue. No message contains a credential.

use tiphys_repo::RepoError;

/// Why a catalogue, or one repository of it, could not be read or written as a whole. What is wrong
/// with a single chart is a [`crate::store::Problem`].
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The repository did not answer as it should.
    #[error(transparent)]
    Repo(#[from] RepoError),
    #[error("the index of {url} cannot be read: {reason}")]
    Index { url: String, reason: String },
    #[error("invalid filter rule: {0}")]
    FilterRule(String),
    /// It failed on a chart.
    #[error("error while applying filter: {0}")]
    Filter(String),
    #[error("database: {0}")]
    Database(String),
    #[error("database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("a document in the database cannot be read: {0}")]
    Document(#[from] serde_json::Error),
    #[error("{0} is not in the catalogue")]
    NotFound(String),
    #[error("{0} exists already")]
    Exists(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Internal(String),
}

impl CatalogError {
    /// After how many seconds the repository wants to be asked again.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Repo(e) => e.retry_after(),
            _ => None,
        }
    }
}

impl From<tokio_postgres::Error> for CatalogError {
    fn from(e: tokio_postgres::Error) -> Self {
        // Its own text leaves out what the server said.
        let said = e.as_db_error().map(|said| said.message().to_owned());
        let cause = std::error::Error::source(&e).map(ToString::to_string);
        Self::Database(said.or(cause).unwrap_or_else(|| e.to_string()))
    }
}
