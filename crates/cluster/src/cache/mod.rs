//! The live cache: the objects of a cluster, kept current by watches.
//!
//! Main type: [`LiveCache`]. For an object that no Application manages only a compact summary is
//! kept; for managed ones also the whole payload, compressed. Reads copy what they need under a
//! short lock. It knows which Application tracks an object, but not what the Application wants.

mod absent;
mod feed;
mod keeper;
mod parse;
mod readable;
mod reads;
mod record;
mod store;
#[cfg(test)]
mod tests;

pub use readable::{Known, Unreadable};
pub use record::Details;
pub use store::ChangeType;

use crate::{
    FEED_LENGTH,
    discovery::{Discovery, Kind, Kinds},
    traffic::Histogram,
};
use record::{Entry, Uid};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{EventSource, Store, StoreChange};
use tiphys_api::resource::{ResourceNode, ResourceRef};
use tiphys_apimachinery::{GroupKind, Gvk, Object, ResourceKey};
use tiphys_engine::{
    customize::Customizations,
    tree,
    types::{ExclusionRule, Health, Tracking},
};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a cache watches and how it recognizes tracking metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheOptions {
    /// `app_name` is not used: the tracking metadata of every Application is read.
    pub tracking: Tracking,
    pub exclusions: Arc<[ExclusionRule]>,
    pub inclusions: Arc<[ExclusionRule]>,
    /// Only these namespaces (a cluster Secret's `namespaces`); empty means all.
    pub namespaces: Vec<String>,
    /// With `namespaces`: cluster-scoped kinds too.
    pub cluster_resources: bool,
    /// Concurrent lists.
    pub lists: usize,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            tracking: Tracking::annotation(""),
            exclusions: default_exclusions().into(),
            inclusions: Arc::default(),
            namespaces: Vec::new(),
            cluster_resources: false,
            lists: 24,
        }
    }
}

/// Argo CD's default `resource.exclusions`, except events and leases, which are never watched.
pub fn default_exclusions() -> Vec<ExclusionRule> {
    let rule = |groups: &[&str], kinds: &[&str]| ExclusionRule {
        api_groups: groups.iter().map(|s| (*s).to_owned()).collect(),
        kinds: kinds.iter().map(|s| (*s).to_owned()).collect(),
        clusters: Vec::new(),
    };
    let reviews = [
        "SelfSubjectReview",
        "TokenReview",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ];
    let kyverno = [
        "PolicyReport",
        "ClusterPolicyReport",
        "EphemeralReport",
        "ClusterEphemeralReport",
        "AdmissionReport",
        "ClusterAdmissionReport",
        "BackgroundScanReport",
        "ClusterBackgroundScanReport",
        "UpdateRequest",
    ];
    vec![
        rule(&["", "discovery.k8s.io"], &["Endpoints", "EndpointSlice"]),
        rule(&["coordination.k8s.io"], &["Lease"]),
        rule(&["authentication.k8s.io", "authorization.k8s.io"], &reviews),
        rule(&["certificates.k8s.io"], &["CertificateSigningRequest"]),
        rule(&["cert-manager.io"], &["CertificateRequest"]),
        rule(
            &["cilium.io"],
            &["CiliumIdentity", "CiliumEndpoint", "CiliumEndpointSlice"],
        ),
        rule(
            &["kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io"],
            &kyverno,
        ),
    ]
}

/// The cache's summary of an object, without its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    pub key: ResourceKey,
    /// In the version that is watched, which is the server's preferred one.
    pub gvk: Gvk,
    /// Plural name of the resource.
    pub resource: String,
    pub uid: String,
    /// Empty if the server's version is not a number.
    pub resource_version: String,
    /// Seconds since 1970.
    pub created: i64,
    pub deleting: bool,
    pub owners: Vec<String>,
    /// Instance name of the Application that tracks it; never set for an object with owners.
    pub app: Option<Arc<str>>,
    /// Health and tree information; `None` for an object that is neither managed nor owned.
    pub details: Option<Arc<Details>>,
}

impl Live {
    /// As a node of a resource tree, without parents.
    pub fn node(&self) -> ResourceNode {
        let Gvk {
            group,
            version,
            kind,
        } = self.gvk.clone();
        let reference = ResourceRef {
            group,
            version,
            kind,
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
        };
        let created = (self.created > 0)
            .then(|| jiff::Timestamp::from_second(self.created).ok())
            .flatten();
        let details = self.details.as_deref();
        tree::node_of(
            reference,
            &self.resource_version,
            created,
            details.and_then(|d| d.health.as_ref()),
            details.and_then(|d| d.info.as_ref()),
        )
    }

    pub fn health(&self) -> Option<&Health> {
        self.details.as_ref()?.health.as_ref()
    }
}

/// A change that matters to Applications.
#[derive(Clone, Debug)]
pub struct Change {
    pub key: ResourceKey,
    pub gvk: Gvk,
    pub change_type: ChangeType,
    /// Instance names of the affected Applications; never empty.
    pub apps: Vec<Arc<str>>,
    /// The object itself is managed, not just owned by a managed object.
    pub managed: bool,
    /// More than status and bookkeeping changed. Always true for added and deleted objects and for
    /// owned ones.
    pub spec: bool,
    pub resource_version: u64,
}

/// Sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub kinds: usize,
    pub objects: usize,
    /// Objects with a payload.
    pub managed: usize,
    /// Compressed bytes of all payloads.
    pub body_bytes: usize,
    /// Bytes of all summaries and the indexes.
    pub record_bytes: usize,
    pub failed_kinds: usize,
}

/// A live view of one cluster. Cheap to clone; the watches end with the last clone.
#[derive(Clone)]
pub struct LiveCache {
    shared: Arc<Shared>,
    _guard: Arc<DropGuard>,
}

struct Shared {
    discovery: Discovery,
    options: CacheOptions,
    customizations: RwLock<Arc<Customizations>>,
    store: RwLock<Store>,
    changes: broadcast::Sender<Arc<Change>>,
    /// Collections that have not been listed or failed yet.
    pending: watch::Sender<usize>,
    /// Notified when a CRD or API service changed.
    definitions: Arc<Notify>,
    lists: Arc<Semaphore>,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn customizations(&self) -> Arc<Customizations> {
        self.customizations
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn publish(&self, kind: &Kind, effect: StoreChange) {
        if matches!(
            (kind.gvk.group.as_str(), kind.gvk.kind.as_str()),
            ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("apiregistration.k8s.io", "APIService")
        ) {
            self.definitions.notify_one();
        }
        let StoreChange {
            change_type,
            key,
            apps,
            managed,
            spec,
            version,
        } = effect;
        if !apps.is_empty() {
            let change = Change {
                key,
                gvk: kind.gvk.clone(),
                change_type,
                apps,
                managed,
                spec,
                resource_version: version,
            };
            // An error only means that there are no receivers.
            let _ = self.changes.send(Arc::new(change));
        }
    }

    fn live(&self, store: &Store, entry: &Entry) -> Live {
        let kind = &store.slot(entry.kind).kind;
        Live {
            key: store.key(entry),
            gvk: kind.gvk.clone(),
            resource: kind.resource.clone(),
            uid: store.uid_text(entry.uid),
            resource_version: if entry.version == 0 {
                String::new()
            } else {
                entry.version.to_string()
            },
            created: i64::from(entry.created),
            deleting: entry.deleting,
            owners: entry.owners.iter().map(|o| store.uid_text(*o)).collect(),
            app: store.shared_name(entry.app),
            details: entry.details.clone(),
        }
    }
}

impl LiveCache {
    /// Starts listing and watching. Must be called inside a tokio runtime.
    pub fn start(discovery: Discovery, options: CacheOptions) -> Self {
        let lists = Arc::new(Semaphore::new(options.lists.max(1)));
        let shared = Arc::new(Shared {
            customizations: RwLock::default(),
            discovery,
            options,
            store: RwLock::default(),
            changes: broadcast::Sender::new(FEED_LENGTH),
            pending: watch::Sender::new(0),
            definitions: Arc::default(),
            lists,
        });
        let cancel = CancellationToken::new();
        // Subscribed before the first read, so that no change in between is missed.
        let changed = shared.discovery.changed();
        let mut keeper = keeper::Keeper::new(cancel.clone());
        keeper.adjust(&shared);
        tokio::spawn(keeper::keep(
            Arc::downgrade(&shared),
            keeper,
            changed,
            cancel.clone(),
        ));
        Self {
            shared,
            _guard: Arc::new(cancel.drop_guard()),
        }
    }

    pub fn discovery(&self) -> &Discovery {
        &self.shared.discovery
    }

    pub fn kinds(&self) -> Arc<Kinds> {
        self.shared.discovery.kinds()
    }

    /// Waits until every kind has been listed or has failed once; [`LiveCache::failures`] lists the
    /// failed ones.
    pub async fn wait_ready(&self) {
        let mut pending = self.shared.pending.subscribe();
        // The sender lives in `shared`, so this cannot fail while we are here.
        let _ = pending.wait_for(|n| *n == 0).await;
    }

    pub fn is_ready(&self) -> bool {
        *self.shared.pending.borrow() == 0
    }

    /// Kinds that cannot be watched at the moment, and why. Their last known objects are kept.
    pub fn failures(&self) -> Vec<(GroupKind, String)> {
        let store = self.shared.read();
        store
            .slots()
            .iter()
            .filter_map(|s| Some((s.kind.gvk.group_kind(), s.readings.error()?.to_owned())))
            .collect()
    }

    /// The number of watch events per kind, for kinds that had any.
    pub fn events(&self) -> Vec<(GroupKind, u64)> {
        let store = self.shared.read();
        store
            .slots()
            .iter()
            .filter(|s| s.events > 0)
            .map(|s| (s.kind.gvk.group_kind(), s.events))
            .collect()
    }

    /// How long watch events took until readers saw them, in seconds; None if there were no events.
    pub fn processing(&self) -> Option<Histogram> {
        self.shared.read().processing.clone()
    }

    pub fn stats(&self) -> Stats {
        let store = self.shared.read();
        Stats {
            kinds: store
                .slots()
                .iter()
                .filter(|s| s.readings.is_listed())
                .count(),
            objects: store.slots().iter().map(|s| s.objects).sum(),
            managed: store.entries().filter(|e| e.body.is_some()).count(),
            body_bytes: store.body_bytes(),
            record_bytes: store.record_bytes(),
            failed_kinds: store
                .slots()
                .iter()
                .filter(|s| s.readings.error().is_some())
                .count(),
        }
    }

    /// Instance names with at least one tracked object.
    pub fn apps(&self) -> Vec<Arc<str>> {
        self.shared.read().apps()
    }

    /// From now on `app` is notified of objects in this namespace, and no other, that no
    /// Application tracks.
    pub fn monitor(&self, app: &str, namespace: Option<&str>) {
        self.shared.write().monitor(app, namespace);
    }

    /// Removes everything kept for `app`.
    pub fn forget(&self, app: &str) {
        let mut store = self.shared.write();
        store.pin(app, Vec::new());
        store.monitor(app, None);
    }

    /// Sets the customizations whose scripts compute the health of objects read from now on.
    pub fn customize(&self, customizations: &Arc<Customizations>) {
        let mut own = self
            .shared
            .customizations
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&own, customizations) {
            own.clone_from(customizations);
        }
    }

    /// Changes that matter to Applications. A receiver that falls behind gets `Lagged` and should
    /// reconcile everything.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.shared.changes.subscribe()
    }

    /// Adds an answer of the server, so that the next read is at least as new. A state older than
    /// the known one is dropped. `false`: it is in another version than the one that is watched, so
    /// it cannot be added.
    pub fn observe(&self, object: &Object) -> bool {
        let gk = object.gvk().group_kind();
        let shared = &self.shared;
        let Some((slot, kind)) = shared
            .read()
            .find_slot(&gk)
            .map(|(id, s)| (id, s.kind.clone()))
        else {
            return true;
        };
        if !self.covers(&object.key()) {
            return true;
        }
        if kind.gvk.version != object.gvk().version {
            return false;
        }
        let keep = |namespace: &str, name: &str| shared.read().is_pinned(&kind, namespace, name);
        match parse::parse_object(
            object,
            &kind,
            &shared.options.tracking,
            &shared.customizations(),
            keep,
        ) {
            Ok(parsed) => {
                let effect = shared.write().upsert(slot, parsed, EventSource::Write);
                if let Some(effect) = effect {
                    shared.publish(&kind, effect);
                }
            }
            Err(error) => {
                tracing::warn!(key = %object.key(), %error, "the answer to a write cannot be read")
            }
        }
        true
    }

    /// Records our own deletion: the object with this uid is gone and stays gone.
    pub fn observe_deleted(&self, key: &ResourceKey, uid: &str) {
        let shared = &self.shared;
        let Some((slot, kind)) = shared
            .read()
            .find_slot(&key.group_kind())
            .map(|(id, s)| (id, s.kind.clone()))
        else {
            return;
        };
        let uid = if uid.is_empty() {
            Uid::NONE
        } else {
            Uid::parse(uid)
        };
        let mut store = shared.write();
        store.remember_deletion(uid);
        let effect = store.remove(slot, &key.namespace, &key.name, uid, 0);
        drop(store);
        if let Some(effect) = effect {
            shared.publish(&kind, effect);
        }
    }
}
