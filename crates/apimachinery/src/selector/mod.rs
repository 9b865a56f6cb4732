//! Label and field selectors, as in `kubectl -l` and `--field-selector`.
//!
//! Main types: [`LabelSelector`], [`FieldSelector`]. They know nothing of lists, watches or HTTP.

mod field;
mod label;

pub use field::{FieldSelector, FieldTerm, field_text};
pub use label::{
    LabelOperator, LabelRequirement, LabelSelector, is_label_value, is_qualified_name,
};

/// Longest selector text accepted, in bytes.
const MAX_SELECTOR_BYTES: usize = 64 * 1024;

/// An invalid selector; the text names the part and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse selector {selector:?}: {reason}")]
pub struct SelectorError {
    pub selector: String,
    pub reason: String,
}

fn error(selector: &str, reason: String) -> SelectorError {
    SelectorError {
        selector: selector.to_owned(),
        reason,
    }
}
