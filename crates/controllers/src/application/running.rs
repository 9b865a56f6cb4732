//! An operation that runs. Main type: [`Running`].

use std::sync::Arc;
use tiphys_api::operation::SyncOperationResult;
use tiphys_cluster::{Executor, clusters::LiveCluster};
use tiphys_engine::{
    customize::Customizations,
    sync::{Progress, SyncPlan, SyncRequest},
};

/// A running operation.
pub struct Running {
    pub request: SyncRequest,
    pub plan: SyncPlan,
    pub progress: Progress,
    /// The sources and revisions of the operation. The record at the beginning of a reconcile may
    /// be older.
    pub result: SyncOperationResult,
    pub cluster: Arc<LiveCluster>,
    pub executor: Executor,
    pub customizations: Arc<Customizations>,
}

/// What is being synced. Losing it only costs time.
#[derive(Clone, Debug)]
pub struct Syncing {
    pub revisions: super::requested::Revisions,
    /// Digest of the manifests.
    pub digest: String,
}
