//! Server-side apply: who owns which field, and what an applied configuration makes of a live object.
//!
//! Main functions: [`apply`] and [`track_update`]. They know nothing of requests, admission or storage; the caller gives the time.

use crate::{object::Object, schema::TypeRef};
use std::fmt;

/// Whose change this is, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplyOptions<'a> {
    /// `fieldManager` of the request.
    pub manager: &'a str,
    /// Take over fields that others own with another value.
    pub force: bool,
    /// RFC 3339 in UTC, whole seconds.
    pub now: &'a str,
    /// Of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// Such as `status`; empty for the object itself.
    pub subresource: &'a str,
}

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

/// Why a configuration could not be applied.
#[derive(Debug, Clone, PartialEq)]
pub enum ApplyError {
    Conflicts(Vec<Conflict>),
    /// The request is wrong (400).
    BadRequest(String),
    /// A value does not fit its type (500 from the API server).
    Invalid(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(list) => write!(f, "Apply failed with {} conflicts", list.len()),
            Self::BadRequest(text) | Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ApplyError {}

/// Applies `config` over `live` for one manager. Without a type, maps merge and lists are replaced.
pub fn apply(
    _live: Option<&Object>,
    _config: &Object,
    _options: &ApplyOptions<'_>,
    _ty: Option<TypeRef<'_>>,
) -> Result<Object, ApplyError> {
    Err(ApplyError::Invalid("server-side apply is not ready yet".into()))
}

/// Writes into `after` which fields its manager changed against `before` (create, update or another kind of patch).
pub fn track_update(_before: Option<&Object>, _after: &mut Object, _options: &ApplyOptions<'_>, _ty: Option<TypeRef<'_>>) {}
