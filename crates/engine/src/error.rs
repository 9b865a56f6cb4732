//! Why the engine has no answer. Broken input that still leaves an answer is a
//! [`crate::types::Condition`] instead.

use tiphys_apimachinery::Gvk;

/// One enum for the crate; the texts are shown to users as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("unsupported {what} GVK: {gvk}")]
    UnsupportedVersion { what: &'static str, gvk: Gvk },
    #[error("failed to convert unstructured {what} to typed: {why}")]
    Convert { what: &'static str, why: String },
    #[error("failed to convert conditions annotation to typed: {0}")]
    ConditionsAnnotation(String),
    #[error("{0}")]
    Invalid(String),
}
