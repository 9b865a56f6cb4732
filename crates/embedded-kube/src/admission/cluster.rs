//! Access to the cluster for admission plugins. Main trait: [`Cluster`]. It is mostly read-only:
//! the only writes are to quotas and to the service accounts that pods wait for.

use super::Hooks;
use crate::base::WriteOptions;
use crate::catalog::Resource;
use crate::reader::Reader;
use crate::status::Status;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

pub trait Cluster: Reader {
    /// The current policies and webhooks.
    fn hooks(&self) -> Arc<Hooks>;

    /// Whether the cluster has a controller manager.
    fn has_controllers(&self) -> bool;

    /// Creates a service account that its controller would create a moment later.
    fn make_account(
        &self,
        gvr: &Gvr,
        namespace: &str,
        account: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status>;

    /// Writes the status of a quota, unless the quota has changed in the meantime.
    fn write_quota(
        &self,
        gvr: &Gvr,
        namespace: &str,
        quota: Object,
        options: &WriteOptions,
    ) -> Result<(), Status>;

    /// Converts an object from one version of its kind to another.
    fn between(&self, from: &Resource, to: &Resource, object: &mut Object) -> Result<(), Status>;

    /// A reader of the same cluster that may outlive the request, as needed by CEL's authorizer.
    fn reader(&self) -> Arc<dyn Reader>;
}
