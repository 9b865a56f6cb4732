//! The store interface of the simulated controllers.
//!
//! Main type: [`SimStore`]. The API server's registry implements it; tests use a small one in
//! memory. The controllers know nothing of HTTP, persistence or other clients beyond it.

use super::kind::Kind;
use std::{future::Future, sync::Arc};
use tiphys_apimachinery::Object;

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The part of Kubernetes' DeleteOptions that the controllers use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteRequest {
    /// Only the object with this uid may be deleted.
    pub uid: Option<String>,
    /// `Some(0)` deletes immediately; `None` uses the kind's default.
    pub grace_seconds: Option<i64>,
    pub propagation: Propagation,
}

/// A change in the store.
#[derive(Clone, Debug)]
pub enum Change {
    /// Created or modified, with the current state of the object.
    Applied(Arc<Object>),
    /// Deleted, with the last state of the object.
    Deleted(Arc<Object>),
    /// An object that is not simulated was created or deleted in this namespace.
    Other { namespace: String },
    /// Changes were missed (a slow reader): everything must be listed again.
    Resync,
}

/// Why a write was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    NotFound(String),
    /// The object has changed since it was read, or its name is taken.
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    AlreadyExists(String),
    /// The object's namespace is being deleted: nothing can be created in it.
    #[error("{0}")]
    NamespaceTerminating(String),
    /// Rejected by validation, quota or admission; retrying soon does not help.
    #[error("{0}")]
    Refused(String),
    /// The store itself failed.
    #[error("{0}")]
    Unavailable(String),
}

/// The changes of a store, in order, from the moment the feed was created.
pub trait ChangeFeed: Send {
    /// The next change if there is one already.
    fn try_next(&mut self) -> Option<Change>;

    /// Waits for the next change; `None` when the store has ended. Must be safe to drop before it
    /// is ready.
    fn next(&mut self) -> impl Future<Output = Option<Change>> + Send;
}

/// A store of Kubernetes objects. Every change made through it must be in its feeds before the call
/// returns. The calls must be quick: they may take a lock, but not wait for a disk or a network.
pub trait SimStore: Send + 'static {
    type Feed: ChangeFeed;

    fn get(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Object>>, StoreError>;

    /// All objects of a kind, in all namespaces.
    fn list(&self, kind: Kind) -> Result<Vec<Arc<Object>>, StoreError>;

    /// The number of objects of a group and resource in a namespace, simulated or not.
    fn count(&self, group: &str, resource: &str, namespace: &str) -> usize;

    /// Supports `generateName`. A `status` in the object may be ignored.
    fn create(&self, object: Object) -> Result<Arc<Object>, StoreError>;

    /// Replaces everything but the status, if `resourceVersion` is still the current one.
    fn update(&self, object: Object) -> Result<Arc<Object>, StoreError>;

    /// Replaces the status only, if `resourceVersion` is still the current one.
    fn update_status(&self, object: Object) -> Result<Arc<Object>, StoreError>;

    /// The object after the delete, or `None` if it is gone.
    fn delete(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        request: DeleteRequest,
    ) -> Result<Option<Arc<Object>>, StoreError>;

    fn feed(&self) -> Self::Feed;
}
