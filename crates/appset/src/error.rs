//! Why parameters or Applications could not be made. Main types: [`GenerateError`] and
//! [`NeedError`].

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NeedError {
    pub message: String,
    /// The asked thing does not exist, for certain.
    pub not_found: bool,
}

impl NeedError {
    /// Any other failure.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            not_found: false,
        }
    }

    /// The asked thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            not_found: true,
        }
    }
}

/// Messages are Argo CD's where users see them in a condition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The answer to a need is still missing: the caller is told by `Outcome::Needs`.
    #[error("an answer is missing")]
    Missing,
    /// The outside answered with an error.
    #[error(transparent)]
    Outside(#[from] NeedError),
    /// A text is not a template, or fails with these parameters.
    #[error("{0}")]
    Template(String),
    /// The specification of a generator contradicts itself or a limit.
    #[error("{0}")]
    Spec(String),
    /// An element, a file or an answer does not have the form that is needed.
    #[error("{0}")]
    Content(String),
    /// The same, with which part of the set it is about. It stands behind the text, which begins as
    /// Argo CD's.
    #[error("{error} (in {place})")]
    Inside {
        place: String,
        error: Box<GenerateError>,
    },
    /// The same, with what failed because of it.
    #[error("{place}: {error}")]
    At {
        place: String,
        error: Box<GenerateError>,
    },
}

impl GenerateError {
    /// Adds where it happened; a missing answer stays what it is.
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        match self {
            Self::Missing => Self::Missing,
            error => Self::At {
                place: place.into(),
                error: Box::new(error),
            },
        }
    }

    /// Adds the part of the set that an error is about: a wider one after a narrower one.
    pub(crate) fn inside(self, place: impl Into<String>) -> Self {
        match self {
            Self::Missing => Self::Missing,
            Self::Inside {
                place: narrower,
                error,
            } => Self::Inside {
                place: format!("{narrower} of {}", place.into()),
                error,
            },
            Self::At { place: at, error } => Self::At {
                place: at,
                error: Box::new(error.inside(place)),
            },
            error => Self::Inside {
                place: place.into(),
                error: Box::new(error),
            },
        }
    }

    /// Whether it is only that answers are missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    pub(crate) fn spec(message: impl Into<String>) -> Self {
        Self::Spec(message.into())
    }

    pub(crate) fn content(message: impl Into<String>) -> Self {
        Self::Content(message.into())
    }
}

/// Adds where an error happened.
pub(crate) trait Place<T> {
    fn at(self, place: &str) -> Result<T, GenerateError>;
}

impl<T> Place<T> for Result<T, GenerateError> {
    fn at(self, place: &str) -> Result<T, GenerateError> {
        self.map_err(|error| error.at(place))
    }
}
