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
    /// The policies and webhooks as they are now.
    fn hooks(&self) -> Arc<Hooks>;

    /// Whether somebody does what a controller manager does.
    fn has_controllers(&self) -> bool;

    /// Makes a service account that its controller would make a moment later.
    fn make_account(
        &self,
        gvr: &Gvr,
        namespace: &str,
        account: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status>;

    /// Writes the status of a quota, unless the quota has changed meanwhile.
    fn write_quota(
        &self,
        gvr: &Gvr,
        namespace: &str,
        quota: Object,
        options: &WriteOptions,
    ) -> Result<(), Status>;

    /// Makes an object of one version of a kind one of another version.
    fn between(&self, from: &Resource, to: &Resource, object: &mut Object) -> Result<(), Status>;

    /// The same cluster for what may outlive the request, as a question of CEL does.
    fn reader(&self) -> Arc<dyn Reader>;
}
