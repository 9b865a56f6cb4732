//! Why a command fails. [`Failure`] contains the message and the exit code of the program.

use tiphys_repo::net::reason;
use tonic::{Code, Status};

/// A message and an exit code. An empty message is not printed: it already was.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: u8,
    pub message: String,
    /// The server's status, if it came from the server.
    pub status: Option<Code>,
    /// Advice for a user at a terminal; may be empty.
    pub hint: &'static str,
}

impl Failure {
    /// Exit code for an error in a call or in its input: 20, as in the `argocd` command.
    const ERROR: u8 = 20;

    pub fn error(message: impl Into<String>) -> Self {
        Self {
            code: Self::ERROR,
            message: message.into(),
            status: None,
            hint: "",
        }
    }

    /// An error that makes the command impossible from the start: exit code 1, as in the `argocd`
    /// command.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            ..Self::error(message)
        }
    }

    pub fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// A file that cannot be opened or read.
    pub fn file(path: impl AsRef<std::path::Path>, e: &std::io::Error) -> Self {
        Self::error(format!("open {}: {}", path.as_ref().display(), reason(e)))
    }

    /// Ends the program without a message.
    pub fn exit(code: u8) -> Self {
        Self {
            code,
            ..Self::error("")
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let code = status.code();
        let message = tiphys_repo::repo_server::shown(&status);
        Self {
            status: Some(code),
            hint: hint(code),
            ..Self::error(message)
        }
    }
}

fn hint(code: Code) -> &'static str {
    match code {
        Code::Unauthenticated => "log in with `tiphys login SERVER`",
        Code::Unavailable => {
            "is the server running, and its address right? `tiphys context` shows which one is asked"
        }
        Code::NotFound => {
            "check the name; `tiphys app list` shows the Applications that you may see"
        }
        Code::PermissionDenied => {
            "either there is no such object, or your account may not do this: `tiphys account can-i`"
        }
        Code::Unimplemented => "STATUS.md lists what works",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there() {
        let e = std::io::Error::from_raw_os_error(2);
        assert_eq!(
            Failure::file("a/b", &e).message,
            "open a/b: no such file or directory"
        );
        assert_eq!(
            reason(&std::io::Error::other("Our own Words")),
            "Our own Words"
        );
    }

    #[test]
    fn a_status_is_worded_as_go_does() {
        let failure = Failure::from(Status::not_found(
            "applications.argoproj.io \"x\" not found",
        ));
        assert_eq!(
            failure.to_string(),
            "rpc error: code = NotFound desc = applications.argoproj.io \"x\" not found"
        );
        assert_eq!((failure.code, failure.status), (20, Some(Code::NotFound)));
    }
}
