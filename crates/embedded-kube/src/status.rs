//! Error responses of the API: the `Status` object, with Kubernetes' reasons, codes and wording.
//!
//! Main type: [`Status`]. Its only knowledge of HTTP is the status code, and it does not know where
//! the error came from.

use serde_json::{Map, Value, json};
use std::fmt;
use tiphys_apimachinery::patch::PatchError;
pub use tiphys_kube_schema::Cause;
use tiphys_kube_schema::gofmt;

const NO_SUCH_PATH: &str = "the server could not find the requested resource";

/// The part of `details` about the object of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

/// An error, or an unusual success, as the API server reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Warnings for the headers of the response.
    pub warnings: Vec<String>,
    /// The token with which an expired list can continue.
    pub goes_on: Option<String>,
}

fn qualified(group: &str, word: &str) -> String {
    if group.is_empty() {
        word.to_owned()
    } else {
        format!("{word}.{group}")
    }
}

impl Status {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            warnings: Vec::new(),
            goes_on: None,
        }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// `resource` is the plural name.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!(
                "{} {} not found",
                qualified(group, resource),
                gofmt::quoted(name)
            ),
        )
        .about(group, resource, name)
    }

    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!(
                "{} {} already exists",
                qualified(group, resource),
                gofmt::quoted(name)
            ),
        )
        .about(group, resource, name)
    }

    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            qualified(group, resource),
            gofmt::quoted(name)
        );
        Self::new(409, "Conflict", message).about(group, resource, name)
    }

    /// The conflict of optimistic locking.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Self::conflict(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = match (qualified(group, resource), name) {
            (nothing, _) if nothing.is_empty() => format!("forbidden: {why}"),
            (resource, "") => format!("{resource} is forbidden: {why}"),
            (resource, name) => format!("{resource} {} is forbidden: {why}", gofmt::quoted(name)),
        };
        Self::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// 422 with one cause per field; `kind` is the kind, not the plural.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for cause in &causes {
            let line = if cause.field.is_empty() {
                cause.message.clone()
            } else {
                format!("{}: {}", cause.field, cause.message)
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let text = if lines.len() == 1 {
            lines.remove(0)
        } else {
            format!("[{}]", lines.join(", "))
        };
        let mut status = Self::new(
            422,
            "Invalid",
            format!(
                "{} {} is invalid: {text}",
                qualified(group, kind),
                gofmt::quoted(name)
            ),
        )
        .about(group, kind, name);
        if let Some(details) = &mut status.details {
            details.causes = causes;
        }
        status
    }

    pub fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_default().causes = causes;
        self
    }

    /// The same, with the warnings that were found earlier.
    pub fn warned(mut self, warnings: &[String]) -> Self {
        self.warnings.splice(0..0, warnings.iter().cloned());
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn internal(message: impl fmt::Display) -> Self {
        let mut status = Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        status.details = Some(Box::new(Details {
            causes: vec![Cause {
                reason: "",
                message: message.to_string(),
                field: String::new(),
            }],
            ..Details::default()
        }));
        status
    }

    /// For a feature of a real API server that is not implemented.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(501, "NotImplemented", message)
    }

    pub fn method_not_allowed(group: &str, resource: &str, verb: &str) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind \"{}\"",
            qualified(group, resource)
        );
        Self::new(405, "MethodNotAllowed", message).about(group, resource, "")
    }

    pub fn not_acceptable(allowed: &str) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {allowed}"),
        )
    }

    pub fn unsupported_media_type(allowed: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {allowed}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The URL names nothing this server serves.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", NO_SUCH_PATH)
    }

    pub fn is_no_such_path(&self) -> bool {
        self.code == 404 && self.message == NO_SUCH_PATH && self.details.is_none()
    }

    /// The group is served, but not this resource of it.
    pub fn not_served() -> Self {
        Self::no_such_path().with_causes(Vec::new())
    }

    /// The URL is good, the method is not.
    pub fn not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_causes(Vec::new())
    }

    pub fn too_large() -> Self {
        Self::new(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
        )
    }

    pub fn is_not_found(&self) -> bool {
        self.reason == "NotFound"
    }

    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The JSON of `kind: Status`.
    pub fn to_json(&self) -> Value {
        let status = if self.code < 400 {
            "Success"
        } else {
            "Failure"
        };
        let mut out = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": status, "code": self.code});
        if !self.message.is_empty() {
            out["message"] = self.message.clone().into();
        }
        if !self.reason.is_empty() {
            out["reason"] = self.reason.into();
        }
        if let Some(token) = &self.goes_on {
            out["metadata"]["continue"] = token.as_str().into();
        }
        if let Some(details) = &self.details {
            out["details"] = details.to_json();
        }
        out
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !value.is_empty() {
                map.insert(key.to_owned(), value.clone().into());
            }
        }
        if !self.causes.is_empty() {
            map.insert(
                "causes".to_owned(),
                self.causes
                    .iter()
                    .map(Cause::to_json)
                    .collect::<Vec<_>>()
                    .into(),
            );
        }
        if self.retry_after_seconds > 0 {
            map.insert(
                "retryAfterSeconds".to_owned(),
                self.retry_after_seconds.into(),
            );
        }
        Value::Object(map)
    }
}

/// The real server's response to a patch that cannot be applied.
pub(crate) fn patch_refused(error: &PatchError) -> Status {
    match error {
        // Errors in applying an operation are not described further.
        PatchError::Operation { .. } | PatchError::TestFailed { .. } | PatchError::ListOfLists => {
            Status::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
            .with_causes(Vec::new())
        }
        PatchError::TooManyOperations { .. } => Status::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: {error}"),
        ),
        PatchError::Format(_) => Status::bad_request(error.to_string()),
        // The server uses Go structs, which are named like the last part of the type's name.
        PatchError::UnknownField { type_name, field } => {
            let name = type_name.rsplit('.').next().unwrap_or(type_name);
            Status::new(
                500,
                "",
                format!("unable to find api field in struct {name} for the json field {field:?}"),
            )
        }
        _ => Status::new(500, "", error.to_string()),
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_prints_one_cause_bare_and_many_in_brackets() {
        let one = Status::invalid(
            "apps",
            "Deployment",
            "web",
            vec![Cause::required("spec.selector", "")],
        );
        assert_eq!(
            one.message,
            "Deployment.apps \"web\" is invalid: spec.selector: Required value"
        );
        let two = Status::invalid(
            "",
            "Pod",
            "p",
            vec![
                Cause::required("a", ""),
                Cause::invalid("b", &json!("x"), "bad"),
            ],
        );
        assert_eq!(
            two.message,
            "Pod \"p\" is invalid: [a: Required value, b: Invalid value: \"x\": bad]"
        );
        assert_eq!(two.to_json()["details"]["causes"][1]["field"], "b");
    }
}
