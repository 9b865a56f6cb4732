//! Errors on the way from a repository URL to manifests. No message contains a credential.

use tiphys_render::RenderError;

/// Who has to fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The Application or the repository content is wrong.
    User,
    /// The repository settings or credentials are wrong.
    Config,
    /// The other side did not respond as it should; retrying may help.
    Upstream,
    Internal,
}

/// What is not there that a later commit may add, if a repo-server failed for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// Nothing: it failed for another reason.
    Nothing,
    /// A file that matches a glob of values files.
    ValuesFile,
    /// The folder of the source.
    Path,
}

/// Cheap to clone: one failure is returned to all waiters.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RepoError {
    #[error("repository URL {url:?} is refused: {reason}")]
    BadUrl { url: String, reason: String },
    #[error("repository {url} cannot be reached: {reason}")]
    Unreachable {
        url: String,
        reason: String,
        /// It is certain that its server could not be asked, or could not answer. Otherwise this
        /// may be an answer that is not understood: a refusal, for example.
        is_away: bool,
    },
    #[error("repository {url} did not answer within {seconds} s")]
    Timeout { url: String, seconds: u64 },
    /// All its connections are used by slow requests.
    #[error(
        "repository {url} was not contacted within {seconds} s: too many other requests to its host or of its project are still waiting"
    )]
    Busy { url: String, seconds: u64 },
    /// The disk space for downloads is used by others until these are unpacked.
    #[error(
        "{url} was not downloaded: other downloads left no room on disk for {seconds} s until they are unpacked"
    )]
    NoRoom { url: String, seconds: u64 },
    #[error("authentication required: repository {url} refused the credentials{hint}")]
    AuthFailed { url: String, hint: &'static str },
    /// The server of a repository's identity gave no token.
    #[error("no token for repository {url}: {reason}")]
    NoToken {
        url: String,
        reason: String,
        retryable: bool,
    },
    #[error("repository not found: {url}")]
    NotFound { url: String },
    /// What a server answered in place of a document.
    #[error("failed to fetch {url}: {status}{}", phrase(*.status))]
    Status {
        url: String,
        status: u16,
        /// After how many seconds it wants to be asked again.
        retry_after: Option<u64>,
    },
    #[error("chart {chart:?} version {version:?} not found in {url} repository")]
    NoChart {
        chart: String,
        version: String,
        url: String,
    },
    /// A repository besides the source's own, which answered that it needs credentials.
    #[error(
        "{} not permitted in project '{project}' and asked without credentials: {cause}",
        if *.is_chart { format!("helm repos {url} are") } else { format!("repository {url} is") }
    )]
    NotPermitted {
        /// Several chart repositories are separated by commas.
        url: String,
        is_chart: bool,
        project: String,
        cause: String,
    },
    #[error("{reason}")]
    NoVersion { reason: String },
    /// What a registry has is nothing that can be rendered.
    #[error("{reason}")]
    Artifact { reason: String },
    #[error("unable to resolve '{revision}' to a commit SHA: revision not found")]
    RevisionNotFound { revision: String },
    /// A constraint that no tag satisfies.
    #[error("unable to resolve '{revision}' to a commit SHA: {reason}")]
    NoTag { revision: String, reason: String },
    #[error("revision {sha} is not in repository {url}")]
    CommitMissing { url: String, sha: String },
    /// What `.gitmodules` says is refused.
    #[error("failed to update submodules: repository {url}: {reason}")]
    Submodules { url: String, reason: String },
    #[error("failed to update submodules: {path}: {cause}")]
    Submodule { path: String, cause: Box<Self> },
    #[error("repository {url} is broken: {reason}")]
    Corrupt { url: String, reason: String },
    /// It exceeds a limit; nothing of it is kept.
    #[error("repository {url} is refused: it has {excess}")]
    OverLimit { url: String, excess: String },
    /// The server refused to move a ref.
    #[error("failed to push: repository {url} refused {name}: {reason}")]
    PushRefused {
        url: String,
        name: String,
        reason: String,
    },
    /// Someone else moved a ref meanwhile.
    #[error("failed to push: {name} of repository {url} was moved by someone else")]
    RefMoved { url: String, name: String },
    #[error("{0}")]
    Render(#[from] RenderError),
    /// The error of a repo-server, or that it did not respond.
    #[error("{message}")]
    RepoServer {
        message: String,
        retryable: bool,
        lacks: Lacking,
    },
    /// A plugin could not be found, failed, or did not answer as it should.
    #[error("{message}")]
    Plugin { message: String, retryable: bool },
    #[error("appproject.argoproj.io {name:?} not found")]
    NoProject { name: String },
    /// What was being kept was removed meanwhile, as much else was kept.
    #[error(
        "a download did not stay in the cache while it was stored, and can be tried again: {0}"
    )]
    Displaced(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Internal(String),
}

impl RepoError {
    /// Whether only a glob of values files matches nothing, which may change without a change of
    /// the source.
    pub fn awaits_values(&self) -> bool {
        matches!(
            self,
            Self::Render(RenderError::NoValuesFile(_))
                | Self::RepoServer {
                    lacks: Lacking::ValuesFile,
                    ..
                }
        )
    }

    /// Whether the folder of the source does not exist at this revision. Someone may still fill it:
    /// a hydrator, for example.
    pub fn lacks_path(&self) -> bool {
        matches!(
            self,
            Self::Render(RenderError::PathMissing(_))
                | Self::RepoServer {
                    lacks: Lacking::Path,
                    ..
                }
        )
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            // The content need not be the cause, and the next process may do it.
            Self::Render(RenderError::Lost(_)) => ErrorKind::Upstream,
            Self::RevisionNotFound { .. }
            | Self::NoTag { .. }
            | Self::NoChart { .. }
            | Self::NoVersion { .. }
            | Self::Artifact { .. }
            | Self::CommitMissing { .. }
            | Self::Submodules { .. }
            | Self::Render(_)
            | Self::Unsupported(_)
            | Self::NoProject { .. }
            | Self::OverLimit { .. } => ErrorKind::User,
            Self::BadUrl { .. }
            | Self::AuthFailed { .. }
            | Self::NoToken {
                retryable: false, ..
            }
            | Self::NotFound { .. }
            | Self::PushRefused { .. }
            | Self::NotPermitted { .. } => ErrorKind::Config,
            Self::RepoServer {
                retryable: false, ..
            }
            | Self::Plugin {
                retryable: false, ..
            } => ErrorKind::User,
            Self::Status { status, .. } if !matches!(status, 408 | 429 | 500..) => {
                ErrorKind::Config
            }
            Self::RepoServer { .. }
            | Self::Plugin { .. }
            | Self::Status { .. }
            | Self::NoToken { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Busy { .. }
            | Self::NoRoom { .. }
            | Self::RefMoved { .. }
            | Self::Displaced(_)
            | Self::Corrupt { .. } => ErrorKind::Upstream,
            Self::Submodule { cause, .. } => cause.kind(),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// After how many seconds the server wants to be asked again.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the other side could not be asked, or could not answer: this says nothing about what
    /// it has, nor about the credentials.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            Self::Unreachable { is_away, .. } => *is_away,
            Self::Timeout { .. }
            | Self::Busy { .. }
            | Self::NoToken {
                retryable: true, ..
            } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Submodule { cause, .. } => cause.is_away(),
            _ => false,
        }
    }

    /// Whether the other side answered that it does not accept the credentials, or does not have
    /// the repository.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::AuthFailed { .. }
            | Self::NotFound { .. }
            | Self::NoToken {
                retryable: false, ..
            } => true,
            Self::Status { status, .. } => matches!(status, 401 | 403 | 404 | 410),
            _ => false,
        }
    }

    /// Whether the same request may succeed later without any change.
    pub fn retryable(&self) -> bool {
        self.kind() == ErrorKind::Upstream
    }
}

fn phrase(status: u16) -> String {
    let known = reqwest::StatusCode::from_u16(status).ok();
    let reason = known.and_then(|status| status.canonical_reason());
    reason.map_or_else(String::new, |reason| format!(" {reason}"))
}
