//! Why a command fails. [`Failure`] contains the message and the exit code of the program.

pub mod hint;

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
    /// How the command is used is printed, too.
    pub is_misuse: bool,
}

/// The exit codes of all commands, as those of the `argocd` command. Plugins, and the programs of
/// which `tiphys helm` and the like take the place, have their own.
pub mod exit {
    /// It did what it was asked for; or the user decided against it.
    pub const DONE: u8 = 0;
    /// The command cannot be carried out as it is written (missing or unknown words, no server, a
    /// broken config file), or its result is not the wanted one (an operation that failed,
    /// differences, `no`).
    pub const FAILED: u8 = 1;
    /// `diff`, `app diff` or `appset plan` written wrongly: 1 means a difference there. (A flag
    /// that `app diff` does not have ends with 1 all the same, as scripts know from `argocd`.)
    pub const MISUSED_DIFF: u8 = 2;
    /// A call failed, or something that the command reads is not as it must be.
    pub const ERROR: u8 = 20;
}

impl Failure {
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            code: exit::ERROR,
            message: message.into(),
            status: None,
            hint: "",
            is_misuse: false,
        }
    }

    /// An error that makes the command impossible from the start, or a result that is not the
    /// wanted one.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self {
            code: exit::FAILED,
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

    /// The same error with another exit code, where scripts know that one.
    pub fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// The same failure of a command that ends with 1 if something differs: nothing that failed
    /// looks like a difference.
    pub fn unlike_a_difference(self) -> Self {
        match self.code {
            exit::FAILED => self.with_code(exit::ERROR),
            _ => self,
        }
    }

    /// Words are missing: prints how the command is used.
    pub fn misuse() -> Self {
        Self {
            is_misuse: true,
            ..Self::exit(exit::FAILED)
        }
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
            hint: hint::of(&status),
            ..Self::error(message)
        }
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
