//! What can go wrong between a repository URL and its manifests. No message contains a credential.

use tiphys_render::RenderError;

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The Application or the repository content is wrong.
    User,
    /// The repository settings or credentials are wrong.
    Config,
    /// The other side did not answer as it should; trying again may help.
    Upstream,
    Internal,
}

/// Cheap to clone: one failure is handed to everyone who waited for it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RepoError {
    #[error("repository URL {url:?} is refused: {reason}")]
    BadUrl { url: String, reason: String },
    #[error("repository {url} cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("repository {url} did not answer within {seconds} s")]
    Timeout { url: String, seconds: u64 },
    /// Its own share of contacts is taken up by others that are slow.
    #[error(
        "repository {url} was not contacted within {seconds} s: too many other requests to its host or of its project are still waiting"
    )]
    Busy { url: String, seconds: u64 },
    #[error("authentication required: repository {url} refused the credentials{hint}")]
    AuthFailed { url: String, hint: &'static str },
    #[error("repository not found: {url}")]
    NotFound { url: String },
    #[error("unable to resolve '{revision}' to a commit SHA")]
    RevisionNotFound { revision: String },
    #[error("revision {sha} is not in repository {url}")]
    CommitMissing { url: String, sha: String },
    #[error("repository {url} is broken: {reason}")]
    Corrupt { url: String, reason: String },
    /// It is larger than it may be; nothing of it is kept.
    #[error("repository {url} is refused: it has {excess}")]
    OverLimit { url: String, excess: String },
    #[error("{0}")]
    Render(#[from] RenderError),
    /// What a repo-server answered, or that it did not.
    #[error("{message}")]
    RepoServer { message: String, retryable: bool },
    #[error("appproject.argoproj.io {name:?} not found")]
    NoProject { name: String },
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Internal(String),
}

impl RepoError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::RevisionNotFound { .. }
            | Self::CommitMissing { .. }
            | Self::Render(_)
            | Self::Unsupported(_)
            | Self::NoProject { .. }
            | Self::OverLimit { .. } => ErrorKind::User,
            Self::BadUrl { .. } | Self::AuthFailed { .. } | Self::NotFound { .. } => {
                ErrorKind::Config
            }
            Self::RepoServer {
                retryable: false, ..
            } => ErrorKind::User,
            Self::RepoServer { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Busy { .. }
            | Self::Corrupt { .. } => ErrorKind::Upstream,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// Whether the same request may succeed later without anyone changing anything.
    pub fn retryable(&self) -> bool {
        self.kind() == ErrorKind::Upstream
    }
}
