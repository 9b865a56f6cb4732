//! What is served: built-in resources and those of CustomResourceDefinitions.
//!
//! Main types: [`Catalog`], replaced as a whole when a definition changes, and [`Resource`]. It holds no objects.

pub mod builtin;

use std::collections::HashMap;
use std::sync::Arc;
use tiphys_apimachinery::{Gvk, Gvr};

/// A subresource and the kind it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    pub name: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
}

/// A resource in one version.
#[derive(Clone, Debug)]
pub struct Resource {
    pub group: String,
    pub version: String,
    /// The plural name.
    pub resource: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub subresources: Vec<Subresource>,
    /// Where its objects are kept: `<group>/<resource>`, the same for every version.
    pub table: String,
    /// The version its objects are kept in.
    pub storage_version: String,
}

impl Resource {
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    pub fn gvr(&self) -> Gvr {
        Gvr::new(&self.group, &self.version, &self.resource)
    }

    pub fn api_version(&self) -> String {
        tiphys_apimachinery::gvk::join_api_version(&self.group, &self.version)
    }

    pub fn storage_api_version(&self) -> String {
        tiphys_apimachinery::gvk::join_api_version(&self.group, &self.storage_version)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }

    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}

/// Everything that is served, by resource and by kind.
#[derive(Clone, Default)]
pub struct Catalog {
    by_resource: HashMap<(String, String, String), Arc<Resource>>,
    by_kind: HashMap<(String, String, String), Arc<Resource>>,
    /// In discovery order: groups, versions inside a group, resources inside a version.
    pub order: Vec<Arc<Resource>>,
}

impl Catalog {
    pub fn new(resources: impl IntoIterator<Item = Arc<Resource>>) -> Self {
        let mut catalog = Self::default();
        for resource in resources {
            let (group, version) = (resource.group.clone(), resource.version.clone());
            catalog.by_kind.insert((group.clone(), version.clone(), resource.kind.clone()), resource.clone());
            catalog.by_resource.insert((group, version, resource.resource.clone()), resource.clone());
            catalog.order.push(resource);
        }
        catalog
    }

    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<Resource>> {
        self.by_resource.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }

    pub fn kind(&self, gvk: &Gvk) -> Option<&Arc<Resource>> {
        self.by_kind.get(&(gvk.group.clone(), gvk.version.clone(), gvk.kind.clone()))
    }

    /// The resource of a table, in its storage version.
    pub fn stored_in(&self, table: &str) -> Option<&Arc<Resource>> {
        self.order.iter().find(|r| r.table == table && r.version == r.storage_version)
    }
}
