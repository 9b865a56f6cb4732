//! Every way a Kubernetes object is changed by a document that describes the change.
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

/// Why a patch cannot be made or applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// A directive, or a document, that cannot be read. The API server blames the client for it
    /// (400).
    #[error("{0}")]
    Format(&'static str),
    /// The API server does not process it (422).
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// The patch, or the document below it, does not have the shape it must have. The API server
    /// blames itself (500).
    #[error("{0}")]
    Invalid(String),
    /// A JSON patch operation that the document does not allow; `index` counts from 0.
    #[error("{reason}")]
    Operation { index: usize, reason: String },
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {got}")]
    TooManyOperations { limit: usize, got: usize },
    /// The type does not have the field that a nested difference needs.
    #[error("unable to find api field \"{field}\" in {type_name}")]
    UnknownField { type_name: String, field: String },
    /// Someone else changed what this patch changes.
    #[error("patch:\n{patch}\nconflicts with changes made from original to current:\n{changed}\n")]
    Conflict { patch: String, changed: String },
    /// A field that may never change is in the patch.
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
