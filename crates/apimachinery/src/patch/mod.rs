//! Patches: every way to change a Kubernetes object by a document that describes the change.
//!
//! Main type: [`PatchError`]; one module for each kind of patch. They know nothing of HTTP, storage
//! or content types.

pub mod apply;
pub mod difference;
mod explain;
pub mod json;
pub mod json_merge;
pub mod keyed;
pub mod last_applied;
pub mod migrate;
pub mod strategic;
pub mod three_way;

use crate::schema::SchemaError;

/// Why a patch cannot be computed or applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// An invalid directive or document. The API server returns 400 for it.
    #[error("{0}")]
    Format(&'static str),
    /// The API server returns 422 for it.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// The patch or a document has the wrong structure. The API server returns 500 for it.
    #[error("{0}")]
    Invalid(String),
    /// A JSON patch operation that is invalid for the document; `index` counts from 0.
    #[error("{reason}")]
    Operation { index: usize, reason: String },
    /// A `test` of a JSON patch that does not hold.
    #[error("{reason}")]
    TestFailed { index: usize, reason: String },
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {got}")]
    TooManyOperations { limit: usize, got: usize },
    /// The type does not have a field that a nested difference needs.
    #[error("unable to find api field \"{field}\" in {type_name}")]
    UnknownField { type_name: String, field: String },
    /// Someone else changed a field that this patch changes.
    #[error("patch:\n{patch}\nconflicts with changes made from original to current:\n{changed}\n")]
    Conflict { patch: String, changed: String },
    /// The patch contains an immutable field.
    #[error("precondition failed for: {0}")]
    Precondition(String),
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl PatchError {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }
}
