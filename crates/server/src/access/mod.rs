//! Permissions as types. [`Authorized`] is the main type: an object, and the proof that the caller
//! may do something with it.
//!
//! - A row of the call table names the permissions it needs ([`Access`], [`Ask`]), in Argo CD's
//!   RBAC vocabulary. Its handler gets a [`Guard`]: the caller, limited to those permissions.
//! - The [`Enforcer`] decides.
//! - A granted permission yields an [`Authorized`]; there is no other way to make one. [`Reach`]
//!   owns the ports to Applications, projects, clusters and repositories. Its methods require an
//!   [`Authorized`]: reads check the permission before returning an object, lists leave out objects
//!   that the caller may not see, and writes require proof of an action that writes ([`Writes`]).
//! - The module `unasked` has what the server does without a caller, and explains why.
//!
//! Handlers of public rows get a [`Caller`](crate::auth::Caller), which proves no permission.

mod applications;
mod changes;
mod charts;
mod cluster_secrets;
mod clusters;
mod guard;
mod keys;
mod live;
mod notifications;
mod projects;
mod repositories;
mod secrets;
mod sets;
mod sources;
mod templates;
mod trusted;
mod unasked;

pub use crate::policy::{
    Access, Action, AdminOnly, Ask, Enforcer, Everybody, ObjectSelection, PolicyEnforcer, Question,
    Resource,
};
pub use cluster_secrets::secret_of as cluster_secret;
pub use secrets::secret_of as repository_secret;
pub use templates::CredentialUse;

pub(crate) use crate::policy::{
    Create, Delete, DeleteResource, Get, OpenShell, Override, ReadLogs, Rollback, RunAction, Sync,
    Update, UpdateResource, Verb, Writes,
};
pub(crate) use applications::{
    Followed, Seen, SeenEvents, app_in_project, app_of_page, app_of_terminal, find, find_to,
    look_up, may_write,
};
pub(crate) use changes::AllChanges;
pub(crate) use charts::{read_charts, refused};
pub(crate) use cluster_secrets::sanitized;
pub(crate) use clusters::{ClusterKey, StoredCluster};
pub(crate) use guard::{Authorized, Guard};
pub(crate) use keys::PublicKeys;
pub(crate) use projects::{find as find_project, find_for_tokens};
pub(crate) use repositories::Stored;
pub(crate) use sets::{find_deleted_set, find_set, set_to_delete};
pub(crate) use trusted::{Trusted, TrustedChange};

use crate::{
    index::Index,
    ports::{Catalog, EventRecord, Live, Sets, Sources, Store, StoreResult},
};
use std::sync::Arc;

/// What Argo CD says of a name that is empty; the Kubernetes API would take it for all objects.
const UNNAMED: &str = "resource name may not be empty";

/// The ports; only the modules here can use them, after checking permissions.
pub struct Reach {
    store: Arc<dyn Store>,
    live: Arc<dyn Live>,
    sources: Arc<dyn Sources>,
    sets: Arc<dyn Sets>,
    catalog: Arc<dyn Catalog>,
    index: Index,
    /// The control plane's namespace, which is omitted from Application names.
    namespace: String,
}

impl Reach {
    pub fn new(
        store: Arc<dyn Store>,
        live: Arc<dyn Live>,
        sources: Arc<dyn Sources>,
        sets: Arc<dyn Sets>,
        catalog: Arc<dyn Catalog>,
        namespace: String,
    ) -> Self {
        Self {
            store,
            live,
            sources,
            sets,
            catalog,
            index: Index::default(),
            namespace,
        }
    }

    /// The requested namespace, or the control plane's.
    pub(crate) fn namespace_or_ours<'a>(&'a self, namespace: &'a str) -> &'a str {
        if namespace.is_empty() {
            &self.namespace
        } else {
            namespace
        }
    }

    /// Whether Applications are allowed in a namespace.
    pub(crate) fn permits(&self, namespace: &str) -> bool {
        self.store.permits(namespace)
    }

    /// Whether Applications may be in other namespaces than the control plane's.
    pub(crate) fn permits_others(&self) -> bool {
        self.store.permits_others()
    }

    /// Records an event. It needs no permission, because it reveals nothing.
    pub(crate) async fn record_event(&self, event: EventRecord) -> StoreResult<()> {
        self.store.record_event(event).await
    }
}
