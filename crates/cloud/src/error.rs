//! Why this process is nobody at a cloud provider. Main type: [`CloudError`].

use http::StatusCode;

/// No text has a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// The environment, a file or the caller's settings name nothing that can be used.
    #[error("{0}")]
    Settings(String),
    /// A provider, or the metadata service of the machine, was not reached or did not answer in
    /// time.
    #[error("{host}: {reason}")]
    Unreachable { host: String, reason: String },
    /// It answered with an error, in its own words.
    #[error("{host}: {status}: {said}")]
    Refused {
        host: String,
        status: StatusCode,
        said: String,
    },
    /// An answer that is not what its API defines.
    #[error("{0}")]
    Answer(String),
    /// Nothing else names credentials, and the machine has none to give.
    #[error("{without}, and of the machine: {why}")]
    Machine {
        without: &'static str,
        why: Box<CloudError>,
    },
}

impl CloudError {
    pub(crate) fn settings(why: impl Into<String>) -> Self {
        Self::Settings(why.into())
    }

    pub(crate) fn answer(why: impl Into<String>) -> Self {
        Self::Answer(why.into())
    }
}
