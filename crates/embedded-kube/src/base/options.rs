//! The options of a request. Plain values, created by the HTTP layer from query parameters or by
//! in-process callers.

use crate::base::UserInfo;
use crate::status::Status;
use serde_json::{Map, Value};
use std::sync::Arc;
use tiphys_apimachinery::Object;

use super::stored::Stored;

/// How to handle unknown fields and duplicate keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    #[default]
    Ignore,
    Warn,
    Strict,
}

type Check = dyn Fn(&Object, Option<&Object>) -> Result<(), Status> + Send + Sync;

/// A check that is called with the new object and the one it replaces, before anything is validated
/// or written.
#[derive(Clone, Default)]
pub struct Guard(Option<Arc<Check>>);

impl Guard {
    pub fn new(
        check: impl Fn(&Object, Option<&Object>) -> Result<(), Status> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(check)))
    }

    pub fn check(&self, new: &Object, old: Option<&Object>) -> Result<(), Status> {
        self.0.as_ref().map_or(Ok(()), |check| check(new, old))
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "Guard"
        } else {
            "no guard"
        })
    }
}

/// The user who makes a request, and the options as sent.
#[derive(Clone, Debug)]
pub struct Sender {
    pub user: Arc<UserInfo>,
    /// The fields of `CreateOptions` and the like, without kind and version.
    pub options: Map<String, Value>,
}

impl Default for Sender {
    /// This server itself.
    fn default() -> Self {
        Self {
            user: Arc::new(UserInfo::new(
                "system:apiserver",
                &["system:authenticated", "system:masters"],
            )),
            options: Map::new(),
        }
    }
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// The field manager. Empty means "unknown".
    pub manager: String,
    pub dry_run: bool,
    /// Server-side apply takes over fields of other managers.
    pub force: bool,
    pub validation: FieldValidation,
    /// The object comes from server-side apply or a strategic patch, which convert a tree: nulls in
    /// a custom resource are kept, and numbers that are too large for their field are truncated.
    pub from_tree: bool,
    /// The object comes from server-side apply: undeclared fields are dropped silently.
    pub applied: bool,
    /// Findings of the request's decoder (duplicate keys), also handled according to `validation`.
    pub findings: Vec<String>,
    /// The name in the URL, which an updated object must have.
    pub named: Option<String>,
    /// The check of the caller's permissions for the object.
    pub guard: Guard,
    pub sender: Sender,
}

impl WriteOptions {
    pub fn manager(name: &str) -> Self {
        Self {
            manager: name.to_owned(),
            ..Self::default()
        }
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// Options of delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub propagation: Option<Propagation>,
    pub grace_period_seconds: Option<i64>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
    pub sender: Sender,
    /// The request was for all objects that a selector matches.
    pub of_many: bool,
}

/// A patch, by its media type.
#[derive(Clone, Debug)]
pub enum Patch {
    /// The operations, and whether their text contains characters literally that the server would
    /// escape.
    Json(Value, Spelling),
    Merge(Value),
    Strategic(Value),
    /// Server-side apply.
    Apply(Object),
}

/// How the text of a JSON Patch writes the characters that Go's encoder escapes: `<`, `>`, `&` and
/// two line separators. Patches compare texts, and the server's own texts are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    Escaped,
    Plain,
}

/// The part of an object that a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Main,
    Status,
    /// `namespaces/finalize`: only `spec.finalizers` counts.
    Finalize,
    /// `deployments/scale` and the like: the object has been changed by the scale handler.
    Scale,
    /// `pods/binding`: `spec.nodeName` is set, once. Also used for the pod conditions that the
    /// server itself sets: neither has a field owner.
    Binding,
    /// `pods/ephemeralcontainers`: only the ephemeral containers are used.
    Ephemeral,
    /// `pods/resize`: only the resources of the containers are used.
    Resize,
    /// `certificatesigningrequests/approval`: only the conditions are used.
    Approval,
    /// `serviceaccounts/token`: the request for a token, which is not stored.
    Token,
}

impl Part {
    /// The value of `managedFields[].subresource`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Main | Self::Binding => "",
            Self::Status => "status",
            Self::Token => "token",
            Self::Finalize => "finalize",
            Self::Scale => "scale",
            Self::Ephemeral => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Approval => "approval",
        }
    }
}

/// The result of a write.
#[derive(Clone, Debug)]
pub struct Written {
    pub object: Arc<Object>,
    pub stored: Arc<Stored>,
    /// The revision to wait for until the write is durable; 0 if nothing was written.
    pub revision: u64,
    pub created: bool,
    pub warnings: Vec<String>,
}

/// The result of a delete: removed immediately, or marked and left to finalizers or the grace
/// period.
#[derive(Clone, Debug)]
pub struct Deleted {
    pub object: Arc<Object>,
    pub stored: Arc<Stored>,
    pub revision: u64,
    pub removed: bool,
    /// A dry run that would remove an object with finalizers: the response is an empty object.
    pub hollow: bool,
    pub warnings: Vec<String>,
}
