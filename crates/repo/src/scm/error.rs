//! Why a host gave no complete answer. Main type: [`ScmError`]. No message contains a credential.

use crate::RepoError;
use tiphys_cloud::CloudError;

/// Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScmError {
    /// The host says, not in HTML, that what was asked for does not exist or is hidden.
    #[error("{url} answered 404 Not Found{said}")]
    NotFound {
        url: String,
        said: String,
        /// Azure DevOps' or AWS' name of the error, else empty.
        key: String,
    },
    /// A status that is no answer.
    #[error("{url} answered {status}{said}")]
    Status {
        url: String,
        status: u16,
        said: String,
        key: String,
    },
    /// The host answers no more questions of this account for a time.
    #[error("{host} permits no more requests before {until} (its rate limit is reached)")]
    RateLimited {
        host: String,
        until: jiff::Timestamp,
    },
    /// An answer that is not what the host's API defines: HTML, a page that is missing, too much.
    #[error("{url}: {reason}")]
    Answer { url: String, reason: String },
    /// The settings of a generator name nothing that can be asked.
    #[error("{0}")]
    Settings(String),
    /// AWS did not say who this process is: it was not reached, or refused to. Nothing in the
    /// settings is wrong for that reason alone.
    #[error("AWS: {0}")]
    Identity(CloudError),
    /// The host could not be reached, or gave no token.
    #[error(transparent)]
    Contact(#[from] RepoError),
}

impl ScmError {
    pub(super) fn settings(message: impl Into<String>) -> Self {
        Self::Settings(message.into())
    }

    pub(super) fn of_aws(why: CloudError) -> Self {
        match why {
            CloudError::Settings(why) => Self::Settings(format!("AWS: {why}")),
            why => Self::Identity(why),
        }
    }

    /// Whether the host says that what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether the host's own message contains a text.
    pub(super) fn says(&self, text: &str) -> bool {
        match self {
            Self::NotFound { said, .. } | Self::Status { said, .. } => said.contains(text),
            _ => false,
        }
    }

    /// Whether the host named its error so.
    pub(super) fn is_named(&self, name: &str) -> bool {
        match self {
            Self::NotFound { key, .. } | Self::Status { key, .. } => key == name,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_being_away_is_no_fault_of_the_settings() {
        let wrong = ScmError::of_aws(CloudError::Settings("there is no profile x".to_owned()));
        assert_eq!(wrong.to_string(), "AWS: there is no profile x");
        assert!(matches!(wrong, ScmError::Settings(_)));
        let away = ScmError::of_aws(CloudError::Unreachable {
            host: "sts.amazonaws.com".to_owned(),
            reason: "connection refused".to_owned(),
        });
        assert_eq!(
            away.to_string(),
            "AWS: sts.amazonaws.com: connection refused"
        );
        assert!(matches!(away, ScmError::Identity(_)));
    }
}
