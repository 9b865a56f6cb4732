//! The catalog of served resources: built-in ones and those of CustomResourceDefinitions.
//!
//! Main types: [`Catalog`], replaced as a whole when a definition changes, and [`Resource`]. It
//! holds no objects.

pub mod builtin;
pub mod crd;

use crate::base::Stored;
use crd::Custom;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use tiphys_apimachinery::gvk::{join_api_version, split_api_version};
use tiphys_apimachinery::schema::{self, TypeRef};
use tiphys_apimachinery::{Gvk, Gvr, Object};
use tiphys_kube_schema::gotypes;

/// The table of the custom resource definitions.
pub const CRD_TABLE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// A subresource and the kind of its body.
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
    /// The table of its objects: `<group>/<resource>`, the same for every version.
    pub table: String,
    /// The group and version in which its objects are stored.
    pub storage_group: String,
    pub storage_version: String,
    /// The definition's version, for custom resources.
    pub custom: Option<Arc<Custom>>,
    /// All versions of the definition, by name.
    customs: Arc<BTreeMap<String, Arc<Custom>>>,
    /// The versions of a definition that are not served: objects and field managers may still have
    /// them.
    pub unserved: Arc<[Resource]>,
    generation: bool,
}

impl Resource {
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    pub fn gvr(&self) -> Gvr {
        Gvr::new(&self.group, &self.version, &self.resource)
    }

    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    pub fn storage_api_version(&self) -> String {
        join_api_version(&self.storage_group, &self.storage_version)
    }

    /// Whether this version is the storage version.
    pub fn is_storage(&self) -> bool {
        self.version == self.storage_version && self.group == self.storage_group
    }

    /// The definition of the storage version.
    pub fn stored_as(&self) -> Option<&Custom> {
        self.customs
            .get(&self.storage_version)
            .map(|custom| &**custom)
    }

    /// The definition of the version of an object of this kind.
    pub fn written_as(&self, object: &Object) -> Option<&Custom> {
        self.in_version(object.api_version())
    }

    /// The definition of a version.
    pub fn in_version(&self, api_version: &str) -> Option<&Custom> {
        let (group, version) = split_api_version(api_version);
        self.customs
            .get(version)
            .filter(|_| group == self.group)
            .map(|custom| &**custom)
    }

    /// The resource as seen for an object of another kind that one of its subresources uses.
    pub fn speaking(&self, kind: &Gvk) -> Self {
        let Gvk {
            group,
            version,
            kind,
        } = kind.clone();
        Self {
            group,
            version,
            kind,
            table: String::new(),
            custom: None,
            ..self.clone()
        }
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

    /// The verbs in discovery. While a definition is being deleted, writes still work, but
    /// discovery omits them.
    pub fn told_verbs(&self) -> Vec<&str> {
        let ends = self
            .custom
            .as_ref()
            .is_some_and(|custom| custom.terminating);
        self.verbs
            .iter()
            .map(String::as_str)
            .filter(|verb| !(ends && matches!(*verb, "create" | "patch" | "update")))
            .collect()
    }

    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether the kind has `metadata.generation`.
    pub fn has_generation(&self) -> bool {
        self.generation
    }

    /// The type, unless it is a custom resource without schema.
    pub fn ty(&self) -> Option<TypeRef<'_>> {
        match &self.custom {
            Some(custom) => custom.schema.as_ref().and_then(|s| s.root()),
            None => self.builtin_type(),
        }
    }

    /// The struct of a built-in kind.
    pub fn go_type(&self) -> Option<&'static gotypes::Struct> {
        if self.custom.is_some() {
            None
        } else {
            gotypes::of_kind(&self.group, &self.version, &self.kind)
        }
    }

    /// The type of a built-in kind.
    pub fn builtin_type(&self) -> Option<TypeRef<'static>> {
        if self.custom.is_some() {
            None
        } else {
            schema::builtin().type_for(&self.gvk())
        }
    }
}

/// A definition and the resources it serves. Parsing one compiles its schemas and rules, so this is
/// done once for each state of the definition.
struct Defined {
    stored: Arc<Stored>,
    resources: Vec<Arc<Resource>>,
    /// Its names have not been accepted, or it is not established.
    waits: bool,
}

impl Defined {
    fn read(stored: &Arc<Stored>) -> Self {
        let object = stored.object();
        let resources = crd::resources(&object).into_iter().map(Arc::new).collect();
        Self {
            stored: stored.clone(),
            resources,
            waits: waits(&object),
        }
    }
}

fn waits(definition: &Object) -> bool {
    let accepted = definition.pointer("/spec/names") == definition.pointer("/status/acceptedNames");
    !accepted || !crate::catalog::crd::is_established(definition)
}

/// All served resources, by resource and by kind.
#[derive(Clone, Default)]
pub struct Catalog {
    by_resource: HashMap<(String, String, String), Arc<Resource>>,
    by_kind: HashMap<Gvk, Arc<Resource>>,
    stored: HashMap<String, Arc<Resource>>,
    /// In discovery order: groups, versions inside a group, resources inside a version.
    pub order: Vec<Arc<Resource>>,
    /// By name.
    defined: HashMap<String, Arc<Defined>>,
    /// How many definitions were parsed for this state; the others were unchanged.
    pub read: usize,
}

impl Catalog {
    /// The built-in resources and those of the given definitions.
    pub fn with_definitions(definitions: &[Arc<Stored>]) -> Self {
        Self::default().followed_by(definitions)
    }

    /// The same with other definitions. Unchanged ones are reused.
    pub fn followed_by(&self, definitions: &[Arc<Stored>]) -> Self {
        static BUILTIN: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
        let builtin = BUILTIN.get_or_init(builtin::resources).iter().cloned();
        let mut catalog = Self::default();
        let mut custom = Vec::new();
        for stored in definitions {
            let known = self
                .defined
                .get(&stored.meta.name)
                .filter(|known| Arc::ptr_eq(&known.stored, stored));
            let defined = known.cloned().unwrap_or_else(|| {
                catalog.read += 1;
                Arc::new(Defined::read(stored))
            });
            custom.extend(defined.resources.iter().cloned());
            catalog.defined.insert(stored.meta.name.clone(), defined);
        }
        for resource in builtin.chain(custom) {
            let (group, version) = (resource.group.clone(), resource.version.clone());
            catalog.by_kind.insert(resource.gvk(), resource.clone());
            catalog.by_resource.insert(
                (group, version, resource.resource.clone()),
                resource.clone(),
            );
            if resource.is_storage() {
                catalog
                    .stored
                    .insert(resource.table.clone(), resource.clone());
            }
            catalog.order.push(resource);
        }
        catalog
    }

    /// Whether a definition is waiting to be served; a known one is not parsed again.
    pub fn waits(&self, stored: &Arc<Stored>) -> bool {
        match self
            .defined
            .get(&stored.meta.name)
            .filter(|known| Arc::ptr_eq(&known.stored, stored))
        {
            Some(known) => known.waits,
            None => waits(&stored.object()),
        }
    }

    /// Whether exactly this resource is served.
    pub fn serves(&self, resource: &Arc<Resource>) -> bool {
        self.resource(&resource.group, &resource.version, &resource.resource)
            .is_some_and(|served| Arc::ptr_eq(served, resource))
    }

    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<Resource>> {
        self.by_resource
            .get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }

    pub fn kind(&self, gvk: &Gvk) -> Option<&Arc<Resource>> {
        self.by_kind.get(gvk)
    }

    /// The resource of a table, in its storage version (or any version, if that one is not served).
    pub fn stored_in(&self, table: &str) -> Option<&Arc<Resource>> {
        self.stored
            .get(table)
            .or_else(|| self.order.iter().find(|r| r.table == table))
    }

    /// Whether any resource of the group is served in this version.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.order
            .iter()
            .any(|r| r.group == group && r.version == version)
    }
}
