//! A single error in one field, with Kubernetes' reasons and wording. Main type: [`Cause`]. It does
//! not know the response that contains it.

use crate::gofmt;
use serde_json::{Map, Value};

/// One field-level reason inside an `Invalid` or `Conflict` status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl Cause {
    pub fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            reason: "FieldValueRequired",
            message,
            field: field.to_owned(),
        }
    }

    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {detail}", shown(value)),
            field: field.to_owned(),
        }
    }

    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {detail}"),
            field: field.to_owned(),
        }
    }

    pub fn duplicate(field: &str, value: &Value) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {}", shown(value)),
            field: field.to_owned(),
        }
    }

    pub fn not_supported(field: &str, value: &Value, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|a| format!("\"{a}\"")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            allowed.join(", ")
        );
        Self {
            reason: "FieldValueNotSupported",
            message,
            field: field.to_owned(),
        }
    }

    pub fn type_invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {}: {detail}", shown(value)),
            field: field.to_owned(),
        }
    }

    /// The entry in `details.causes` of a `Status`.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in [
            ("reason", self.reason),
            ("message", self.message.as_str()),
            ("field", self.field.as_str()),
        ] {
            if !value.is_empty() {
                map.insert(key.to_owned(), value.into());
            }
        }
        Value::Object(map)
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => gofmt::quoted(text),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        other => other.to_string().chars().take(2000).collect(),
    }
}
