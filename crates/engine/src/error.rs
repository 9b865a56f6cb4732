//! Why the engine has no result. Broken input that still allows a result becomes a
//! [`crate::types::Condition`] instead.

use tiphys_apimachinery::Gvk;

/// One enum for the crate; its messages are shown to users unchanged.
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
