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
    /// A user's health script.
    #[error("failed to get resource health for {namespace}/{name}: {why}")]
    HealthScript {
        namespace: String,
        name: String,
        why: String,
    },
    #[error("{0}")]
    Invalid(String),
}

impl EngineError {
    /// As a resource's own health tells it, which is not the place to name the resource.
    pub fn why(&self) -> String {
        match self {
            Self::HealthScript { why, .. } => why.clone(),
            other => other.to_string(),
        }
    }
}
