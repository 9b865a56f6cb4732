//! Argo CD's RBAC vocabulary: resources and actions, the permissions a row of the table requires,
//! and each action as a type.

use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($variant,)* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words!(
    /// The resource a policy is about.
    Resource {
        Clusters = "clusters",
        Projects = "projects",
        Applications = "applications",
        ApplicationSets = "applicationsets",
        Repositories = "repositories",
        WriteRepositories = "write-repositories",
        Certificates = "certificates",
        Accounts = "accounts",
        GpgKeys = "gpgkeys",
        Logs = "logs",
        Exec = "exec",
        Extensions = "extensions",
    }
);

words!(
    /// The action. The last two apply to one resource of an Application and are followed by its
    /// path in a question: `action/<group>/<kind>/<name>`.
    Action {
        Get = "get",
        Create = "create",
        Update = "update",
        Delete = "delete",
        Sync = "sync",
        Override = "override",
        RunAction = "action",
        Invoke = "invoke",
        Rollback = "rollback",
        UpdateResource = "update/",
        DeleteResource = "delete/",
    }
);

impl Action {
    /// The action as it appears in a question; `path` is empty for actions on a whole object.
    pub(crate) fn text(self, path: &str) -> String {
        match path {
            "" => self.word().trim_end_matches('/').to_owned(),
            path => format!("{}/{path}", self.word().trim_end_matches('/')),
        }
    }
}

/// A resource and an action: a permission that a row requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask(pub Resource, pub Action);

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.0.word(), self.1.word())
    }
}

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody; the handler may show more to callers who are logged in.
    Public,
    /// Any logged-in caller.
    SignedIn,
    /// Callers who have every permission in `always`. Some requests also need those in `sometimes`.
    Asks {
        always: &'static [Ask],
        sometimes: &'static [Ask],
    },
    /// Any logged-in caller; the reply contains only objects for which they have this permission.
    Lists(Ask),
}

impl Access {
    /// Whether calls of this row may ask for this permission.
    pub fn names(&self, ask: Ask) -> bool {
        match self {
            Self::Public | Self::SignedIn => false,
            Self::Asks { always, sometimes } => always.contains(&ask) || sometimes.contains(&ask),
            Self::Lists(one) => *one == ask,
        }
    }
}

/// An action as a type: what an `Authorized` object allows the caller to do.
pub(crate) trait Verb: Send + std::marker::Sync + 'static {
    const ACTION: Action;
}

/// An action that writes.
pub(crate) trait Writes: Verb {}

macro_rules! verbs {
    ($($name:ident)*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Verb for $name {
            const ACTION: Action = Action::$name;
        }
    )*};
}

verbs!(
    Get Create Update Delete Sync Rollback Override RunAction UpdateResource DeleteResource
);

/// `logs, get` of an Application.
pub(crate) struct ReadLogs;
/// `exec, create` of an Application.
pub(crate) struct OpenShell;

impl Writes for Create {}
impl Writes for Update {}
impl Writes for Delete {}
impl Writes for Sync {}
impl Writes for Rollback {}
impl Writes for RunAction {}
impl Writes for UpdateResource {}
impl Writes for DeleteResource {}
