//! stub
/// A file, and where in it something is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct ManifestError {
    pub file: String,
    pub line: usize,
    pub message: String,
}
pub fn objects_of_text() {}
