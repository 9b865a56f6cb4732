//! Why a configuration could not be applied, with the API server's messages.
//!
//! Main types: [`ApplyError`], [`Conflict`].

use super::managers::{Identity, Operation};
use std::{collections::BTreeMap, fmt};

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub manager: String,
    pub operation: String,
    pub api_version: String,
    pub subresource: String,
    /// Such as `.spec.containers[name="web"].image`.
    pub field: String,
}

impl Conflict {
    /// The manager as messages name it: `"kubectl" using apps/v1`.
    pub fn manager_text(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == "Update" {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }

    fn sort_key(&self) -> String {
        let operation = if self.operation == "Update" {
            Operation::Update
        } else {
            Operation::Apply
        };
        let identity = Identity::new("", operation, &self.api_version, &self.subresource);
        Identity {
            manager: self.manager.clone(),
            ..identity
        }
        .sort_key()
    }

    /// The `message` of the status cause for this conflict; `field` is the cause's field.
    pub fn cause_message(&self) -> String {
        format!("conflict with {}", self.manager_text())
    }
}

/// Why a configuration could not be applied.
#[derive(Debug, Clone, PartialEq)]
pub enum ApplyError {
    /// Sorted by manager (409).
    Conflicts(Vec<Conflict>),
    /// The request is wrong (400).
    BadRequest(String),
    /// A value does not match its type (500 from the API server).
    Invalid(String),
}

/// The API server's message.
impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(list) if list.len() == 1 => {
                write!(
                    f,
                    "Apply failed with 1 conflict: {}: {}",
                    list[0].cause_message(),
                    list[0].field
                )
            }
            Self::Conflicts(list) => {
                let mut by_manager: BTreeMap<String, Vec<&Conflict>> = BTreeMap::new();
                for conflict in list {
                    by_manager
                        .entry(conflict.sort_key())
                        .or_default()
                        .push(conflict);
                }
                let mut lines = Vec::new();
                for conflicts in by_manager.into_values() {
                    lines.push(format!("conflicts with {}:", conflicts[0].manager_text()));
                    lines.extend(
                        conflicts
                            .iter()
                            .map(|conflict| format!("- {}", conflict.field)),
                    );
                }
                write!(
                    f,
                    "Apply failed with {} conflicts: {}",
                    list.len(),
                    lines.join("\n")
                )
            }
            Self::BadRequest(text) | Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ApplyError {}
