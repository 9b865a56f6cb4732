//! The memory of what anchors and aliases copy.
//!
//! Main type: [`Copies`]. An alias of three characters can stand for a text of megabytes, and
//! anchored lists inside each other keep a copy each, so counting nodes does not limit the memory
//! that a short document takes.

use super::YamlError;
use super::cursor::Mark;
use serde_json::Value;

/// What may still be copied, and what was.
#[derive(Clone, Copy, Default)]
pub(super) struct Copies {
    limit: usize,
    pub used: usize,
}

impl Copies {
    pub fn new(limit: usize) -> Self {
        Self { limit, used: 0 }
    }

    /// Counts a copy before it is made; `offset` is the number of lines in front of the document.
    pub fn take(&mut self, bytes: usize, at: Mark, offset: usize) -> Result<(), YamlError> {
        let used = self.used.saturating_add(bytes);
        if used > self.limit {
            let message = format!(
                "anchors and aliases copy more than the {} bytes that the input has left for them",
                self.limit
            );
            let mut error = YamlError::at(at.line + 1 + offset, at.column + 1, message);
            error.go_line = u32::try_from(error.line).unwrap_or(u32::MAX);
            return Err(error);
        }
        self.used = used;
        Ok(())
    }
}

/// The memory of a value, about: its nodes with all texts and keys.
pub(super) fn memory(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| size_of::<String>() + key.len() + memory(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + content
}
