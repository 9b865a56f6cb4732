//! The registry as lower layers see it: they can read everything, and write only through the
//! methods named here.

use super::Registry;
use crate::admission::{Cluster, Hooks};
use crate::base::{Part, Stored, WriteOptions};
use crate::catalog::{Catalog, Resource};
use crate::reader::Reader;
use crate::status::Status;
use crate::strategy::service::{Allocations, Allocator};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

impl Reader for Registry {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn catalog(&self) -> Arc<Catalog> {
        Self::catalog(self)
    }

    fn stored(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.read().get(table, namespace, name).cloned()
    }

    fn all_stored(&self, table: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.read().list(table, namespace)
    }

    fn get(&self, gvr: &Gvr, namespace: &str, name: &str) -> Result<Arc<Object>, Status> {
        Self::get(self, gvr, namespace, name)
    }

    fn list(&self, gvr: &Gvr, namespace: Option<&str>) -> Result<Vec<Arc<Object>>, Status> {
        Self::list(self, gvr, namespace)
    }
}

impl Allocator for Registry {
    fn allocations(&self) -> &Allocations {
        Self::allocations(self)
    }
}

impl Cluster for Registry {
    fn hooks(&self) -> Arc<Hooks> {
        Self::hooks(self)
    }

    fn has_controllers(&self) -> bool {
        Self::has_controllers(self)
    }

    fn make_account(
        &self,
        gvr: &Gvr,
        namespace: &str,
        account: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Object>, Status> {
        self.create(gvr, namespace, account, options)
            .map(|written| written.object)
    }

    fn write_quota(
        &self,
        gvr: &Gvr,
        namespace: &str,
        quota: Object,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        self.update_part(gvr, namespace, quota, Part::Status, options)
            .map(drop)
    }

    fn between(&self, from: &Resource, to: &Resource, object: &mut Object) -> Result<(), Status> {
        Self::between(self, from, to, object)
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(self.clone())
    }
}
