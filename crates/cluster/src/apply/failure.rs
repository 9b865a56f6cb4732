//! Why an object could not be applied, with kubectl's messages. Main type: [`Failure`].

use crate::error::ApiError;
use std::fmt;

/// An error from the API server, or one before the request reached it.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Its `message` may have a context prefix.
    Api(ApiError),
    /// Other managers own the fields; the text includes advice.
    Conflict {
        error: Box<ApiError>,
        text: String,
    },
    Text(String),
}

/// What kubectl prints below a field manager conflict.
const ADVICE: &str = "\
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts";

impl Failure {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The error with the action and the file as context.
    pub(super) fn when(self, doing: &str, source: &str) -> Self {
        if source.is_empty() {
            return self;
        }
        let wrap = |message: &str| format!("error when {doing} {source:?}: {message}");
        match self {
            Self::Api(e) => Self::Api(ApiError {
                message: wrap(&e.message),
                ..e
            }),
            Self::Conflict { error, text } => Self::Conflict {
                error,
                text: wrap(&text),
            },
            Self::Text(text) => Self::Text(wrap(&text)),
        }
    }

    /// The error of a refused server-side apply.
    pub(super) fn server_side(self) -> Self {
        match self {
            Self::Api(e) if e.code == 415 => Self::Text(format!(
                "Server-side apply not available on the server: ({})",
                e.message
            )),
            Self::Api(e) if e.reason == "Conflict" => Self::Conflict {
                text: format!("{}\n{ADVICE}", e.message),
                error: Box::new(e),
            },
            other => other,
        }
    }

    /// The API server's error, if it came from the API server.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(e) => Some(e),
            Self::Conflict { error, .. } => Some(error),
            Self::Text(_) => None,
        }
    }

    pub(super) fn is(&self, reason: &str) -> bool {
        self.api().is_some_and(|e| e.reason == reason)
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.api().is_some_and(|e| e.code == 404)
    }

    /// The API server says that the object of this name does not exist.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.api().is_some_and(|e| e.is_absent(name))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api(e) => &e.message,
            Self::Conflict { text, .. } | Self::Text(text) => text,
        })
    }
}
