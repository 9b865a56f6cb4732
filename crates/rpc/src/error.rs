//! Errors of calls: a gRPC code and a message, and how REST shows both. [`ApiError`] is the only
//! error type.

use http::StatusCode;
use tiphys_api::access::without_passwords;

/// The gRPC codes that are used; numbers and names are gRPC's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Canceled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Code {
    /// The HTTP status that a REST client sees for this code.
    pub fn http(self) -> StatusCode {
        match self {
            Self::Canceled => StatusCode::REQUEST_TIMEOUT,
            Self::InvalidArgument | Self::FailedPrecondition | Self::OutOfRange => {
                StatusCode::BAD_REQUEST
            }
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists | Self::Aborted => StatusCode::CONFLICT,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Unknown | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The error of a call. Passwords in URLs are removed from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: Code,
    pub message: String,
    /// Whether a call gave the code; decides what remains of the error inside another.
    explicit: bool,
    /// Whether the request could not be read.
    unread: bool,
}

impl ApiError {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: without_passwords(&message.into()),
            explicit: true,
            unread: false,
        }
    }

    /// An error without an explicit code.
    pub fn plain(message: impl Into<String>) -> Self {
        Self {
            code: Code::Unknown,
            message: without_passwords(&message.into()),
            explicit: false,
            unread: false,
        }
    }

    /// An error of something that has no codes, such as a store; its text in another is plain.
    pub fn of_other(code: Code, message: impl Into<String>) -> Self {
        Self {
            explicit: false,
            ..Self::new(code, message)
        }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub fn precondition(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(Code::Unauthenticated, message)
    }

    /// The same error for forbidden and for missing objects.
    pub fn denied() -> Self {
        Self::new(Code::PermissionDenied, "permission denied")
    }

    /// Adds what was being done when it failed, unless the error was given its code by a call:
    /// clients then get that error as it is, as from Argo CD.
    #[must_use]
    pub fn context(self, doing: &str) -> Self {
        if self.explicit {
            return self;
        }
        self.within(doing)
    }

    /// Adds what was being done when it failed.
    #[must_use]
    pub fn within(self, doing: &str) -> Self {
        Self {
            message: format!("{doing}: {}", self.message),
            ..self
        }
    }

    /// The error of a request that could not be read, so that no call has begun.
    #[must_use]
    pub(crate) fn of_unread(self) -> Self {
        Self {
            unread: true,
            ..self
        }
    }

    /// Whether the request could not be read: REST then answers as to a call without a stream.
    pub(crate) fn is_of_unread(&self) -> bool {
        self.unread
    }

    /// The body of a REST error.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({"error": self.message, "message": self.message, "code": self.code as i32})
    }

    /// The last line of a REST stream that failed, as JSON in Argo CD's order: events are text.
    pub fn stream_line(&self) -> String {
        let status = self.code.http();
        let (code, http) = (self.code as i32, status.as_u16());
        let message = serde_json::Value::from(self.message.as_str());
        let name = serde_json::Value::from(status.canonical_reason().unwrap_or_default());
        format!(
            "{{\"error\":{{\"grpc_code\":{code},\"http_code\":{http},\"message\":{message},\
             \"http_status\":{name}}}}}"
        )
    }
}

impl From<ApiError> for tonic::Status {
    fn from(e: ApiError) -> Self {
        Self::new(tonic::Code::from_i32(e.code as i32), e.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_leaves_a_coded_error_as_it_is() {
        let why = "another operation is already in progress";
        let coded = ApiError::precondition(why).context("error setting app operation");
        assert_eq!(
            (coded.code, &*coded.message),
            (Code::FailedPrecondition, why)
        );
        let absent = ApiError::of_other(Code::NotFound, "x").context("error deleting");
        assert_eq!(
            (absent.code, &*absent.message),
            (Code::NotFound, "error deleting: x")
        );
        assert_eq!(ApiError::plain("x").context("doing").message, "doing: x");
    }

    #[test]
    fn rest_sees_the_status_of_the_code() {
        assert_eq!(ApiError::denied().code.http(), 403);
        assert_eq!(
            ApiError::denied().json(),
            serde_json::json!({"error": "permission denied", "message": "permission denied", "code": 7})
        );
        assert_eq!(ApiError::plain("x").code.http(), 500);
        assert_eq!(
            ApiError::denied().stream_line(),
            "{\"error\":{\"grpc_code\":7,\"http_code\":403,\"message\":\"permission denied\",\
             \"http_status\":\"Forbidden\"}}"
        );
    }
}
