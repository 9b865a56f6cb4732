//! Errors in a value: the kinds of field errors in Kubernetes, with their messages.
//!
//! Main type: [`Problem`], which becomes a cause of a `Status`.

use crate::cause::Cause;
use crate::gofmt;
use serde_json::Value;

/// A field error. The path is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub reason: &'static str,
    pub path: String,
    pub text: String,
}

impl Problem {
    fn new(
        reason: &'static str,
        path: &str,
        head: &str,
        value: Option<String>,
        detail: &str,
    ) -> Self {
        let mut text = head.to_owned();
        for part in value
            .as_deref()
            .into_iter()
            .chain((!detail.is_empty()).then_some(detail))
        {
            text.push_str(": ");
            text.push_str(part);
        }
        Self {
            reason,
            path: path.to_owned(),
            text,
        }
    }

    pub fn invalid(path: &str, value: &Value, detail: &str) -> Self {
        Self::new(
            "FieldValueInvalid",
            path,
            "Invalid value",
            Some(gofmt::bad_value(value)),
            detail,
        )
    }

    /// Without a value.
    pub fn invalid_bare(path: &str, detail: &str) -> Self {
        Self::new("FieldValueInvalid", path, "Invalid value", None, detail)
    }

    pub fn type_invalid(path: &str, value: &Value, detail: &str) -> Self {
        Self::new(
            "FieldValueTypeInvalid",
            path,
            "Invalid value",
            Some(gofmt::bad_value(value)),
            detail,
        )
    }

    pub fn required(path: &str, detail: &str) -> Self {
        Self::new("FieldValueRequired", path, "Required value", None, detail)
    }

    pub fn forbidden(path: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", path, "Forbidden", None, detail)
    }

    pub fn duplicate(path: &str, value: &Value) -> Self {
        Self::new(
            "FieldValueDuplicate",
            path,
            "Duplicate value",
            Some(gofmt::bad_value(value)),
            "",
        )
    }

    pub fn duplicate_bare(path: &str) -> Self {
        Self::new("FieldValueDuplicate", path, "Duplicate value", None, "")
    }

    pub fn not_supported(path: &str, value: &Value, allowed: &[String]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|a| gofmt::quoted(a)).collect();
        let detail = if allowed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", allowed.join(", "))
        };
        Self::new(
            "FieldValueNotSupported",
            path,
            "Unsupported value",
            Some(gofmt::bad_value(value)),
            &detail,
        )
    }

    pub fn too_long(path: &str, max: i64) -> Self {
        let detail = if max >= 0 {
            format!("may not be more than {max} bytes")
        } else {
            "value is too long".to_owned()
        };
        Self::new("FieldValueTooLong", path, "Too long", None, &detail)
    }

    pub fn too_many(path: &str, found: i64, max: i64) -> Self {
        let detail = format!(
            "must have at most {max} {}",
            if max == 1 { "item" } else { "items" }
        );
        Self::new(
            "FieldValueTooMany",
            path,
            "Too many",
            Some(found.to_string()),
            &detail,
        )
    }

    pub fn internal(path: &str, detail: &str) -> Self {
        Self::new("InternalError", path, "Internal error", None, detail)
    }

    /// As Go prints an error with its field.
    pub fn line(&self) -> String {
        format!("{}: {}", self.path, self.text)
    }
}

impl From<Problem> for Cause {
    fn from(problem: Problem) -> Self {
        Self {
            reason: problem.reason,
            message: problem.text,
            field: problem.path,
        }
    }
}
