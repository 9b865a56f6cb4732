//! The objects and the rules for writing them: optimistic locking, identity, generation,
//! finalizers, field managers.
//!
//! Main type: [`Registry`], cheap to clone. HTTP handlers and the simulated controllers use the
//! same methods. It knows no HTTP. Methods do not block on the disk: await [`Registry::durable`]
//! with the returned revision before acknowledging a write to a client.

pub mod commit;
mod conversion_webhook;
mod fields;
pub mod meta;
mod patches;
mod remove;
mod settle;
pub mod state;
#[cfg(test)]
mod tests;
mod views;
mod write;

pub use crate::base::{
    DeleteOptions, Deleted, FieldValidation, Guard, Meta, Part, Patch, Propagation, Sender,
    Spelling, Stored, WriteOptions, Written,
};
pub(crate) use fields::{apply_scale, track_scale};
pub(crate) use patches::{TYPE_META, not_an_object, patched_scale, settle_said_type, unreadable};
pub use remove::{FOREGROUND, ORPHAN, check_preconditions};
pub use state::{Change, Event, EventType, TooOld};

use crate::admission::Hooks;
use crate::catalog::{Catalog, Resource};
use crate::status::Status;
use crate::store::{Store, StoreError};
use crate::{admission, convert};
use commit::Committer;
use jiff::Timestamp;
use state::State;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tiphys_apimachinery::{Gvk, Gvr, Object};
use tiphys_kube_schema::formats;
use tokio::sync::mpsc;

/// After a restart, revisions continue this far above the last durable one, so that a revision that
/// a client saw of a lost write (one that was never acknowledged) is not used a second time.
const REVISION_GAP: u64 = 1_000;

/// Maximum nesting of maps and lists in an object that a client sends or creates with a patch.
/// `managedFields` repeats the object some levels deeper, and a list adds two more levels; many
/// clients cannot read JSON of more than 127 levels.
pub const MAX_DEPTH: usize = 100;

/// Returns the current time for timestamps.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The objects of a cluster.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    state: RwLock<State>,
    catalog: RwLock<Arc<Catalog>>,
    /// Held while the next catalog is built.
    reloading: Mutex<()>,
    committer: Committer,
    allocations: crate::strategy::service::Allocations,
    role_changes: AtomicU64,
    /// The policies and webhooks that admit writes in addition to the built-in plugins.
    hooks: RwLock<Arc<Hooks>>,
    without_controllers: AtomicBool,
    now: Now,
}

impl Registry {
    /// Loads the store.
    pub fn open(store: Arc<dyn Store>, now: Now) -> Result<Self, StoreError> {
        let loaded = store.load()?;
        let revision = if loaded.revision > 0 {
            loaded.revision + REVISION_GAP
        } else {
            0
        };
        let (committer, outbox) = Committer::start(store, revision);
        let mut state = State::new(revision, outbox);
        for (key, bytes) in loaded.entries {
            let table = key.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
            match Stored::from_bytes(bytes) {
                Ok(stored) => state.load(&table, stored),
                Err(error) => {
                    tracing::error!(%key, %error, "an object in the store is not JSON; it is left out")
                }
            }
        }
        let catalog = Catalog::with_definitions(&state.list(crate::catalog::CRD_TABLE, None));
        let (state, catalog, allocations) = (
            RwLock::new(state),
            RwLock::new(Arc::new(catalog)),
            Default::default(),
        );
        let inner = Inner {
            state,
            catalog,
            reloading: Mutex::new(()),
            committer,
            allocations,
            role_changes: AtomicU64::new(0),
            hooks: RwLock::default(),
            without_controllers: AtomicBool::new(false),
            now,
        };
        let registry = Self {
            inner: Arc::new(inner),
        };
        registry.reload_hooks();
        let services = registry.read().list("/services", None);
        services
            .iter()
            .for_each(|s| registry.allocations().note(&s.object(), false));
        Ok(registry)
    }

    pub(crate) fn allocations(&self) -> &crate::strategy::service::Allocations {
        &self.inner.allocations
    }

    pub fn now(&self) -> Timestamp {
        (self.inner.now)()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.inner
            .state
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn lock(&self) -> RwLockWriteGuard<'_, State> {
        self.inner
            .state
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner
            .catalog
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }

    /// Whether the cluster has a controller manager.
    pub(crate) fn has_controllers(&self) -> bool {
        !self.inner.without_controllers.load(Ordering::Relaxed)
    }

    /// Marks the cluster as having no controllers.
    pub(crate) fn leave_alone(&self) {
        self.inner
            .without_controllers
            .store(true, Ordering::Relaxed);
    }

    /// Increases with every change of a role or binding.
    pub fn role_changes(&self) -> u64 {
        self.inner.role_changes.load(Ordering::Acquire)
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// Returns when every write up to `revision` survives a crash.
    pub async fn durable(&self, revision: u64) -> Result<(), Status> {
        self.inner
            .committer
            .durable(revision)
            .await
            .map_err(Status::internal)
    }

    /// Commits the remaining writes and closes the store. Later writes are never acknowledged as
    /// durable.
    pub async fn close(&self) {
        self.lock().close();
        let inner = self.inner.clone();
        if tokio::task::spawn_blocking(move || inner.committer.join())
            .await
            .is_err()
        {
            tracing::error!("the store was not closed in order");
        }
    }

    pub fn resource(&self, gvr: &Gvr) -> Result<Arc<Resource>, Status> {
        self.catalog()
            .resource(&gvr.group, &gvr.version, &gvr.resource)
            .cloned()
            .ok_or_else(Status::no_such_path)
    }

    pub fn resource_of_kind(&self, gvk: &Gvk) -> Option<Arc<Resource>> {
        self.catalog().kind(gvk).cloned()
    }

    /// `namespace` is empty for cluster-scoped resources.
    pub fn get(&self, gvr: &Gvr, namespace: &str, name: &str) -> Result<Arc<Object>, Status> {
        let resource = self.resource(gvr)?;
        Ok(self.get_stored(&resource, namespace, name)?.object())
    }

    pub fn get_stored(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Stored>, Status> {
        let found = self.read().get(&resource.table, namespace, name).cloned();
        found.ok_or_else(|| match &formats::path_segment(name)[..] {
            [] => Status::not_found(&resource.group, &resource.resource, name),
            problems => Status::bad_request(format!(
                "Name parameter invalid: {name:?}: {}",
                problems.join(";")
            )),
        })
    }

    /// The objects of a namespace (`None`: of all namespaces).
    pub fn list(&self, gvr: &Gvr, namespace: Option<&str>) -> Result<Vec<Arc<Object>>, Status> {
        let resource = self.resource(gvr)?;
        let found = self.read().list(&resource.table, namespace);
        Ok(found.iter().map(|s| s.object()).collect())
    }

    /// A consistent list and its revision.
    pub fn list_stored(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> (u64, Vec<Arc<Stored>>) {
        let state = self.read();
        (state.revision, state.list(&resource.table, namespace))
    }

    /// The same as of a given revision.
    pub fn list_stored_at(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Arc<Stored>>, TooOld> {
        self.read().list_at(&resource.table, namespace, revision)
    }

    /// Every change from now on, of every resource, in order. A change is in the channel before the
    /// call that made it returns.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<Event> {
        self.lock().follow()
    }
}

impl Registry {
    /// Records field ownership in an object that is returned but not stored.
    pub(crate) fn track_new(
        &self,
        resource: &Resource,
        object: &mut Object,
        part: Part,
        options: &WriteOptions,
    ) {
        fields::track(self, resource, None, object, part, options);
    }

    /// The resource in its storage version.
    pub(crate) fn storage_resource(&self, resource: &Arc<Resource>) -> Arc<Resource> {
        if resource.is_storage() {
            return resource.clone();
        }
        self.catalog()
            .stored_in(&resource.table)
            .cloned()
            .unwrap_or_else(|| resource.clone())
    }

    /// The side effects of a write beyond the object itself.
    pub(crate) fn after_write(&self, resource: &Resource, object: &Object, removed: bool) {
        if resource.table == "/services" {
            self.allocations().note(object, removed);
            if removed {
                // A new service of the same name must not inherit the endpoints of this one;
                // usually there are none left.
                let endpoints = Gvr::new("", "v1", "endpoints");
                drop(self.delete(
                    &endpoints,
                    object.namespace(),
                    object.name(),
                    &DeleteOptions::default(),
                ));
            }
        }
        if resource.group == crate::rbac::GROUP {
            self.inner.role_changes.fetch_add(1, Ordering::AcqRel);
        }
        if resource.group == admission::GROUP {
            self.reload_hooks();
        }
        if resource.table == crate::catalog::CRD_TABLE {
            self.settle_definitions(resource, object, removed);
            self.reload_catalog();
        }
    }

    /// Accepts names and establishes definitions, as the real server's own controllers do: for this
    /// definition, and for those of its group that were waiting for its names.
    fn settle_definitions(&self, resource: &Resource, object: &Object, removed: bool) {
        let Ok(resource) = self.resource(&resource.gvr()) else {
            return;
        };
        let group = object.str_at("/spec/group").to_owned();
        let others = || -> Vec<String> {
            let (all, catalog) = (
                self.read().list(crate::catalog::CRD_TABLE, None),
                self.catalog(),
            );
            let waiting = all.iter().filter(|s| {
                crate::strategy::is_definition_named_for(&s.meta.name, &group)
                    && s.meta.name != object.name()
                    && catalog.waits(s)
            });
            waiting.map(|s| s.meta.name.clone()).collect()
        };
        let own = (!removed).then(|| object.name().to_owned());
        for name in own.into_iter().chain(others()) {
            // First the names, then the other conditions; there are never more steps than these.
            for _ in 0..3 {
                let Ok(current) = self.get_stored(&resource, "", &name) else {
                    break;
                };
                let old = current.object();
                let Some(mut new) = crate::strategy::settle_definition(self, &old) else {
                    break;
                };
                fields::track(
                    self,
                    &resource,
                    Some(&old),
                    &mut new,
                    Part::Status,
                    &WriteOptions::manager("kube-apiserver"),
                );
                let mut state = self.lock();
                if state
                    .get(&resource.table, "", &name)
                    .is_some_and(|now| Arc::ptr_eq(now, &current))
                {
                    state.put(&resource, new);
                }
            }
        }
    }

    /// The current policies and webhooks.
    pub(crate) fn hooks(&self) -> Arc<Hooks> {
        self.inner
            .hooks
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }

    fn reload_hooks(&self) {
        // Held while the objects are read, see below.
        let mut slot = self
            .inner
            .hooks
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *slot = Arc::new(Hooks::read(self));
    }

    /// Rebuilds the catalog from the current CustomResourceDefinitions.
    fn reload_catalog(&self) {
        // Two reloads must not finish in the wrong order. Readers do not wait: they use the
        // previous catalog meanwhile.
        let _one = self
            .inner
            .reloading
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = self.catalog();
        let definitions = self.read().list(crate::catalog::CRD_TABLE, None);
        let next = Arc::new(before.followed_by(&definitions));
        let gone: Vec<String> = before
            .order
            .iter()
            .filter(|r| next.stored_in(&r.table).is_none())
            .map(|r| r.table.clone())
            .collect();
        let changed = next
            .order
            .iter()
            .filter(|r| convert::is_older(r) && !before.serves(r));
        let changed: Vec<String> = changed.map(|r| r.table.clone()).collect();
        *self
            .inner
            .catalog
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = next;
        let mut state = self.lock();
        gone.iter().for_each(|table| state.drop_watchers(table));
        changed.iter().for_each(|table| state.lay_bare(table));
    }
}
