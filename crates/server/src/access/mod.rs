//! Who may do what, as types. [`Authorized`] is the main type: an object, and the proof that the
//! caller may do something with it.
//!
//! - A row of the table of calls names what it asks for ([`Access`], [`Ask`]), in the words of Argo
//!   CD's RBAC. Its handler gets a [`Guard`]: the caller, who may ask for just that.
//! - The [`Enforcer`] answers. With one account, [`AdminOnly`] does; what a refused caller is told
//!   is written there, once.
//! - A granted question makes an [`Authorized`], and nothing else does. [`Reach`] owns the ports to
//!   Applications, projects, clusters and repositories, and its methods want one: reading asks
//!   before it shows, lists leave out what is refused, and a write wants the proof of an action that
//!   writes ([`Writes`]).
//! - What the server does without a caller is in `unasked`, with the reason.
//!
//! Handlers of public rows get a [`Caller`](crate::auth::Caller), which proves nothing.

mod action;
mod applications;
mod clusters;
mod enforcer;
mod guard;
mod live;
mod projects;
mod repositories;
mod secrets;
mod sources;
mod unasked;

pub use action::{Access, Action, Ask, Resource};
pub use enforcer::{AdminOnly, Enforcer, Question};

pub(crate) use action::{
    Create, Delete, DeleteResource, Get, Override, ReadLogs, RunAction, Sync, Update,
    UpdateResource, Verb, Writes,
};
pub(crate) use applications::{Seen, SeenEvents, app_in_project, find, find_to};
pub(crate) use guard::{Authorized, Guard};
pub(crate) use projects::find as find_project;
pub(crate) use repositories::Stored;

use crate::{
    index::Index,
    ports::{EventRecord, Live, Sources, Store, StoreResult},
};
use std::sync::Arc;

/// The ports, behind what the modules here want to see first.
pub struct Reach {
    store: Arc<dyn Store>,
    live: Arc<dyn Live>,
    sources: Arc<dyn Sources>,
    index: Index,
    /// The control plane's namespace, which the name of an Application leaves out.
    namespace: String,
}

impl Reach {
    pub fn new(
        store: Arc<dyn Store>,
        live: Arc<dyn Live>,
        sources: Arc<dyn Sources>,
        namespace: String,
    ) -> Self {
        Self {
            store,
            live,
            sources,
            index: Index::default(),
            namespace,
        }
    }

    /// Whether Applications may be in a namespace.
    pub(crate) fn permits(&self, namespace: &str) -> bool {
        self.store.permits(namespace)
    }

    /// Tells of what was done; it shows nothing.
    pub(crate) async fn record_event(&self, event: EventRecord) -> StoreResult<()> {
        self.store.record_event(event).await
    }
}
