//! Read access to stored objects and served resources, for code that needs other objects than the
//! one being handled: roles, admission, kind-specific strategies.
//!
//! Main trait: [`Reader`]. The registry implements it; readers do not depend on how it writes.

use crate::base::Stored;
use crate::catalog::Catalog;
use crate::status::Status;
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

/// The cluster as it is now.
pub trait Reader: Send + Sync {
    fn now(&self) -> Timestamp;

    /// The served resources.
    fn catalog(&self) -> Arc<Catalog>;

    /// An object of a table (`<group>/<resource>`). An empty namespace for cluster-scoped resources.
    fn stored(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>>;

    /// The objects of a table in a namespace (`None`: in all namespaces).
    fn all_stored(&self, table: &str, namespace: Option<&str>) -> Vec<Arc<Stored>>;

    /// The same as [`Reader::stored`], with a client's error if there is no such resource or
    /// object.
    fn get(&self, gvr: &Gvr, namespace: &str, name: &str) -> Result<Arc<Object>, Status>;

    /// The same as [`Reader::all_stored`], with an error if there is no such resource.
    fn list(&self, gvr: &Gvr, namespace: Option<&str>) -> Result<Vec<Arc<Object>>, Status>;
}
