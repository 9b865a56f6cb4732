//! Errors of a cluster, structured by how the caller handles them.
//!
//! Main type: [`Error`]. A message names the file, context or field and a fix; the API server's
//! messages are passed on unchanged.

use std::time::Duration;

/// Every failure of this crate.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A kubeconfig, a cluster Secret or a setting cannot be used as it is.
    #[error("{origin}: {problem}; {fix}")]
    Config {
        origin: String,
        problem: String,
        fix: String,
    },
    /// No response from the API server.
    #[error("cannot reach the Kubernetes API at {server} ({origin}): {reason}; {fix}")]
    Unreachable {
        server: String,
        origin: String,
        reason: String,
        fix: String,
    },
    /// The API server returned an error, with its message.
    #[error("{0}")]
    Api(ApiError),
    /// The connection broke or the request could not be sent.
    #[error("{what}: {reason}")]
    Transport { what: String, reason: String },
    /// A response that violates the Kubernetes API.
    #[error("unreadable answer to {what}: {reason}")]
    Decode { what: String, reason: String },
    /// The cluster does not serve this kind.
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    UnknownKind { api_version: String, kind: String },
    /// The given object cannot be written: a field is missing or wrong.
    #[error("{key}: {problem}")]
    Invalid { key: String, problem: String },
    /// The project does not permit the object in the scope that its kind has.
    #[error("{0}")]
    NotPermitted(String),
    /// A response did not arrive in time.
    #[error("{what}: no answer within {}s", after.as_secs())]
    Timeout { what: String, after: Duration },
    /// The lease required for the write is no longer ours.
    #[error("{what}: not sent, another replica may hold the lease now")]
    Fenced { what: String },
}

/// The `Status` of a refused request.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: u16,
    /// `NotFound`, `Conflict`, `Invalid`, ...
    pub reason: String,
    pub message: String,
    pub retry_after: Option<Duration>,
    /// The object that the error is about, if the status names one.
    pub about: Option<Box<About>>,
    /// `details.causes`: (reason, message, field).
    pub causes: Vec<(String, String, String)>,
}

/// `details.kind` and `details.name` of a `Status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub kind: String,
    pub name: String,
}

/// How a caller handles an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request itself is wrong.
    User,
    /// The configuration is wrong.
    Config,
    /// The server failed or is unreachable.
    Upstream,
    /// Someone else changed the object first.
    Conflict,
    /// A bug of ours.
    Internal,
}

impl Error {
    pub(crate) fn config(
        origin: impl Into<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::Config {
            origin: origin.into(),
            problem: problem.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn transport(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Transport {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn decode(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Decode {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config { .. } => ErrorKind::Config,
            Self::Unreachable { .. } | Self::Transport { .. } | Self::Timeout { .. } => {
                ErrorKind::Upstream
            }
            Self::Fenced { .. } => ErrorKind::Conflict,
            Self::Api(e) => match e.code {
                409 => ErrorKind::Conflict,
                400..=499 if e.code != 429 => ErrorKind::User,
                _ => ErrorKind::Upstream,
            },
            Self::Decode { .. } => ErrorKind::Internal,
            Self::UnknownKind { .. } | Self::Invalid { .. } | Self::NotPermitted(_) => {
                ErrorKind::User
            }
        }
    }

    /// The same request may succeed later without any change by a user.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Transport { .. } | Self::Timeout { .. } => true,
            Self::Api(e) => {
                matches!(e.code, 408 | 409 | 429 | 500 | 502 | 503 | 504)
                    && e.reason != "AlreadyExists"
            }
            Self::Config { .. }
            | Self::Decode { .. }
            | Self::UnknownKind { .. }
            | Self::Invalid { .. }
            | Self::NotPermitted(_)
            | Self::Fenced { .. } => false,
        }
    }

    /// It was not sent, because another replica may hold the lease.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    fn api(&self) -> Option<&ApiError> {
        if let Self::Api(e) = self {
            Some(e)
        } else {
            None
        }
    }

    /// The HTTP status of an error response.
    pub fn code(&self) -> Option<u16> {
        self.api().map(|e| e.code)
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// The API server says that the object of this name does not exist. A kind that is not served
    /// for a moment is "not found" as well, which says nothing about its objects.
    pub fn is_absent(&self, name: &str) -> bool {
        self.api().is_some_and(|e| e.is_absent(name))
    }

    /// The API server says that there is no such namespace, as it does of every object that is to
    /// be created in it.
    pub fn is_absent_namespace(&self, name: &str) -> bool {
        let about = self.api().and_then(|e| e.about.as_ref());
        self.is_absent(name) && about.is_some_and(|about| about.kind == "namespaces")
    }

    /// The object changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.api()
            .is_some_and(|e| e.code == 409 && e.reason != "AlreadyExists")
    }

    pub fn is_already_exists(&self) -> bool {
        self.api().is_some_and(|e| e.reason == "AlreadyExists")
    }

    /// The resourceVersion is too old to be watched from.
    pub fn is_gone(&self) -> bool {
        self.api()
            .is_some_and(|e| e.code == 410 || e.reason == "Expired" || e.reason == "Gone")
    }

    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The object is too large for the API server or for etcd.
    pub fn is_too_large(&self) -> bool {
        let by_store = |message: &str| {
            message.contains("request is too large") || message.contains("message larger than max")
        };
        self.api()
            .is_some_and(|e| e.code == 413 || by_store(&e.message))
    }
}

impl ApiError {
    /// See [`Error::is_absent`].
    pub(crate) fn is_absent(&self, name: &str) -> bool {
        let is_it = match &self.about {
            Some(about) => about.name == name,
            // API servers that extend another one may name it in the message only.
            None => {
                let message = self.message.strip_suffix(" not found");
                let words = message.and_then(|message| message.split_once(' '));
                words.is_some_and(|(_, quoted)| quoted == format!("{name:?}"))
            }
        };
        // A webhook that refuses passes on what it looked for itself, often under the same name.
        let is_refusal = self.message.starts_with("admission webhook ");
        self.code == 404 && self.reason == "NotFound" && !name.is_empty() && is_it && !is_refusal
    }

    /// Parses the `Status` in a response body; any other body (such as a proxy's error page) is
    /// quoted in part.
    pub(crate) fn from_body(code: u16, body: &[u8]) -> Self {
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(body)
            && value.get("kind").and_then(|k| k.as_str()) == Some("Status")
        {
            return Self::from_status(code, &value);
        }
        let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
        let text = text.trim();
        let message = if text.is_empty() {
            format!("the server answered {code} without a reason")
        } else {
            format!("the server answered {code}: {text}")
        };
        Self {
            code,
            message,
            ..Self::default()
        }
    }

    pub(crate) fn from_status(code: u16, status: &serde_json::Value) -> Self {
        let text = |v: &serde_json::Value, f: &str| {
            v.get(f).and_then(|m| m.as_str()).unwrap_or("").to_owned()
        };
        let details = status.get("details").cloned().unwrap_or_default();
        let causes = details
            .get("causes")
            .and_then(|c| c.as_array())
            .cloned()
            .unwrap_or_default();
        let code = status
            .get("code")
            .and_then(|c| c.as_u64())
            .and_then(|c| u16::try_from(c).ok())
            .filter(|c| *c != 0)
            .unwrap_or(code);
        Self {
            code,
            reason: text(status, "reason"),
            message: text(status, "message"),
            retry_after: details
                .get("retryAfterSeconds")
                .and_then(|s| s.as_u64())
                .filter(|s| *s > 0)
                .map(Duration::from_secs),
            about: Some(About {
                kind: text(&details, "kind"),
                name: text(&details, "name"),
            })
            .filter(|a| *a != About::default())
            .map(Box::new),
            causes: causes
                .iter()
                .map(|c| (text(c, "reason"), text(c, "message"), text(c, "field")))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_body_keeps_the_servers_words() {
        let body = br#"{"kind":"Status","status":"Failure","message":"pods \"a\" not found","reason":"NotFound","code":404}"#;
        let e = Error::Api(ApiError::from_body(404, body));
        assert_eq!(e.to_string(), "pods \"a\" not found");
        assert!(e.is_not_found() && !e.retryable());
        let e = Error::Api(ApiError::from_body(502, b"<html>bad gateway</html>"));
        assert_eq!(
            e.to_string(),
            "the server answered 502: <html>bad gateway</html>"
        );
        assert!(e.retryable());
    }

    #[test]
    fn only_an_answer_about_the_object_says_that_it_is_absent() {
        let status = |details: serde_json::Value, message: &str| {
            let status = serde_json::json!({"kind": "Status", "reason": "NotFound", "code": 404,
                "message": message, "details": details});
            Error::Api(ApiError::from_body(404, status.to_string().as_bytes()))
        };
        let (text, none) = (r#"pods "a" not found"#, serde_json::json!({}));
        let its = serde_json::json!({"name": "a", "kind": "pods"});
        assert!(status(its.clone(), text).is_absent("a"));
        assert!(status(its.clone(), "no such pod").is_absent("a"));
        assert!(status(none.clone(), text).is_absent("a"));
        assert!(status(none.clone(), r#"widgets.example.org "a" not found"#).is_absent("a"));

        let refused = r#"admission webhook "w.example.org" denied the request: pods "a" not found"#;
        let what = "the server could not find the requested resource";
        for (details, message, name) in [
            (its.clone(), text, "b"),
            (its, refused, "a"),
            (none.clone(), refused, "a"),
            (none.clone(), r#"there is no pods "a" not found"#, "a"),
            (none.clone(), what, "a"),
            (none, what, ""),
            (serde_json::json!({"kind": "pods"}), what, ""),
        ] {
            assert!(!status(details, message).is_absent(name), "{message}");
        }
        for body in [
            "404 page not found\n",
            "<html>pods \"a\" not found</html>",
            "",
        ] {
            let error = Error::Api(ApiError::from_body(404, body.as_bytes()));
            assert!(error.is_not_found() && !error.is_absent("a"), "{body}");
        }
    }

    #[test]
    fn too_large_is_said_in_several_ways() {
        let large = |code, message: &str| {
            Error::Api(ApiError {
                code,
                message: message.into(),
                ..ApiError::default()
            })
            .is_too_large()
        };
        assert!(
            large(413, "Request entity too large: limit is 3145728")
                && large(500, "etcdserver: request is too large")
        );
        assert!(large(
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2411522 vs. 2097152)"
        ));
        assert!(!large(500, "etcdserver: request timed out"));
    }

    #[test]
    fn already_exists_is_no_conflict() {
        let e = Error::Api(ApiError {
            code: 409,
            reason: "AlreadyExists".into(),
            ..ApiError::default()
        });
        assert!(e.is_already_exists() && !e.is_conflict() && !e.retryable());
    }
}
