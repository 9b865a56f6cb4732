//! The live cache: the objects of a cluster, kept current by watches.
//!
//! Main type: [`LiveCache`]. For an object that no Application manages only a compact summary is
//! kept; for managed ones also the whole payload, compressed. Reads copy what they need under a
//! short lock. It knows which Application tracks an object, but not what the Application wants.

mod feed;
mod keeper;
mod parse;
mod readable;
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
    error::Error,
    request::Call,
    traffic::Histogram,
};
use futures::{StreamExt, stream};
use hashbrown::HashSet;
use readable::Within;
use record::{Body, Entry, KindId, NameId, Uid};
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};
use store::{EventSource, Store, StoreChange};
use tiphys_api::resource::{ResourceNode, ResourceRef};
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey};
use tiphys_engine::{
    customize::Customizations,
    tree,
    types::{ExclusionRule, Health, KindInfo as _, Tracking},
};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often a reader checks whether a kind has been listed.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// How long a reader waits for the first list of a kind.
const FIRST_LISTS: Duration = Duration::from_secs(10);
/// Concurrent GETs for objects whose payloads are not kept.
const FETCHES: usize = 16;
/// For larger StatefulSets, claims are searched by ordinal only until the first missing one.
const MOST_REPLICAS: i64 = 1000;

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

    /// All objects tracked by the Application's instance name, and the existing ones of `also` (the
    /// keys in Git), with payloads.
    ///
    /// From then on the payloads of `also` are kept, so calling it again costs no requests.
    ///
    /// # Errors
    /// A kind that is in `also` or `known`, or that has tracked objects, could not be read. There
    /// may be more objects than are visible.
    pub async fn managed(
        &self,
        app: &str,
        also: &[ResourceKey],
        known: &Known,
    ) -> Result<BTreeMap<ResourceKey, Arc<Kept>>, Unreadable> {
        let mut bodies: Vec<(ResourceKey, Arc<Body>)> = Vec::new();
        let mut missing = Vec::new();
        self.await_lists(app, also, known).await;
        let mut unreadable = {
            let mut store = self.shared.write();
            let unmarked =
                |key: &&ResourceKey| store.find(key).is_none_or(|e| store.name(e.app) != app);
            let wanted: Vec<ResourceKey> = also.iter().filter(unmarked).cloned().collect();
            store.pin(app, wanted.clone());
            let unreadable = self.unreadable(&store, app, also, known);
            for entry in store.of_app(app) {
                match &entry.body {
                    Some(body) => bodies.push((store.key(entry), body.clone())),
                    None => missing.push(store.key(entry)),
                }
            }
            for key in wanted {
                match (store.find(&key), store.find_slot(&key.group_kind())) {
                    (
                        Some(Entry {
                            body: Some(body), ..
                        }),
                        _,
                    ) => bodies.push((key, body.clone())),
                    // Watched, listed and not found: it does not exist.
                    (None, Some((_, slot))) if slot.readings.is_listed() && self.covers(&key) => {}
                    _ => missing.push(key),
                }
            }
            unreadable
        };
        // If the result is certain to be incomplete, fetching the rest is pointless.
        if unreadable.kinds().next().is_some() {
            return unreadable.or(BTreeMap::new());
        }
        let mut found: BTreeMap<_, _> = bodies
            .into_iter()
            .map(|(key, body)| (key, body.kept.clone()))
            .collect();
        let mut fetched = stream::iter(missing)
            .map(|key| async move { (self.fetch_now(&key).await, key) })
            .buffer_unordered(FETCHES);
        while let Some((object, key)) = fetched.next().await {
            match object {
                Ok(object) => {
                    found.extend(object.map(|object| (key, Arc::new(Kept::from(object)))))
                }
                Err(error) => unreadable.add(key.group_kind(), error.to_string()),
            }
        }
        unreadable.or(found)
    }

    /// Whether the kinds of these resources can be read now.
    pub fn readable(&self, known: &Known) -> Result<(), Unreadable> {
        self.unreadable(&self.shared.read(), "", &[], known).or(())
    }

    /// The kinds that cannot be read, of those needed for all objects of an Application.
    fn unreadable(
        &self,
        store: &Store,
        app: &str,
        also: &[ResourceKey],
        known: &Known,
    ) -> Unreadable {
        let mut unreadable = Unreadable::none();
        let kinds = self.kinds();
        for (kind, within) in needed(store, app, also, known) {
            let why = store
                .find_slot(&kind)
                .and_then(|(_, slot)| slot.readings.unreadable(&within));
            // Discovery of its group failed.
            if let Some(why) = why.or_else(|| kinds.failure(&kind)) {
                unreadable.add(kind, why);
            }
        }
        if matches!(known, Known::Nothing) {
            for slot in store.slots() {
                if let Some(why) = slot.readings.unreadable(&Within::All) {
                    unreadable.add(slot.kind.gvk.group_kind(), why);
                }
            }
            for (group, why) in &kinds.failures {
                unreadable.add(GroupKind::new(group, "*"), why.clone());
            }
        }
        unreadable
    }

    /// Whether each of these kinds that discovery does not have is really gone. An API server that
    /// has just started serves some kinds a moment later, and until then they look as if they had
    /// been removed.
    ///
    /// # Errors
    /// A CRD or API service exists for the group of such a kind, but is not served, or it cannot be
    /// known whether one exists.
    pub fn truly_gone(&self, known: &Known) -> Result<(), Unreadable> {
        let Known::Resources(keys) = known else {
            return Ok(());
        };
        let (kinds, store) = (self.kinds(), self.shared.read());
        let mut unreadable = Unreadable::none();
        let definitions = [
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("apiregistration.k8s.io", "APIService"),
        ];
        let unknown = definitions.iter().find_map(|(group, kind)| {
            let (_, slot) = store.find_slot(&GroupKind::new(group, kind))?;
            slot.readings.error()
        });
        for key in keys
            .iter()
            .filter(|key| kinds.preferred(&key.group_kind()).is_none())
        {
            if let Some(why) = unknown {
                let why = format!("it is unknown whether it is still defined: {why}");
                unreadable.add(key.group_kind(), why);
                continue;
            }
            let served: Vec<&str> = kinds
                .all()
                .iter()
                .filter(|k| k.gvk.group == key.group)
                .map(|k| k.resource.as_str())
                .collect();
            let of = |group: &str, kind: &str| -> Vec<&str> {
                let Some((id, _)) = store.find_slot(&GroupKind::new(group, kind)) else {
                    return Vec::new();
                };
                store
                    .entries()
                    .filter(|e| e.kind == id)
                    .map(|e| &*e.name)
                    .collect()
            };
            let crds = of("apiextensions.k8s.io", "CustomResourceDefinition");
            let services = of("apiregistration.k8s.io", "APIService");
            if let Some(name) = readable::unserved(&key.group, &served, &crds, &services) {
                unreadable.add(
                    key.group_kind(),
                    format!("{name} is there, but what it defines is not served"),
                );
            }
        }
        unreadable.or(())
    }

    /// Waits a while for the first lists of the needed kinds, because a newly discovered kind has
    /// no objects in the cache yet.
    async fn await_lists(&self, app: &str, also: &[ResourceKey], known: &Known) {
        let is_unsettled = || {
            let store = self.shared.read();
            let of = |(kind, within): (GroupKind, Within)| {
                store
                    .find_slot(&kind)
                    .is_some_and(|(_, s)| s.readings.is_unsettled(&within))
            };
            match known {
                Known::Nothing => store
                    .slots()
                    .iter()
                    .any(|s| s.readings.is_unsettled(&Within::All)),
                Known::Resources(_) => needed(&store, app, also, known).into_iter().any(of),
            }
        };
        let answered = async {
            while is_unsettled() {
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        let _ = tokio::time::timeout(FIRST_LISTS, answered).await;
    }

    fn covers(&self, key: &ResourceKey) -> bool {
        let namespaces = &self.shared.options.namespaces;
        namespaces.is_empty() || key.namespace.is_empty() || namespaces.contains(&key.namespace)
    }

    /// Reads from the server and adds the result to the cache.
    async fn fetch_now(&self, key: &ResourceKey) -> Result<Option<Object>, Error> {
        let Some(kind) = self.kinds().preferred(&key.group_kind()).cloned() else {
            return Ok(None);
        };
        let object = self.get_as(&kind.gvk, &key.namespace, &key.name).await?;
        if let Some(object) = &object {
            self.observe(object);
        }
        Ok(object)
    }

    /// The whole object: from the cache if its payload is kept, else from the server. `None`: it
    /// does not exist.
    pub async fn fetch(&self, key: &ResourceKey) -> Result<Option<Arc<Object>>, Error> {
        match self.object(key) {
            Some(object) => Ok(Some(object)),
            None => Ok(self.fetch_now(key).await?.map(Arc::new)),
        }
    }

    /// The object from the server in this version; `None`: it does not exist.
    pub async fn get_as(
        &self,
        gvk: &Gvk,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>, Error> {
        let kind = self.shared.discovery.resolve(gvk).await?;
        let call = Call::get(kind.object_path(namespace, name)).timeout(Duration::from_secs(30));
        match self
            .shared
            .discovery
            .cluster()
            .http()
            .json::<Object>(&call)
            .await
        {
            Ok(object) => Ok(Some(object)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The summary of an object.
    pub fn get(&self, key: &ResourceKey) -> Option<Live> {
        let store = self.shared.read();
        store.find(key).map(|e| self.shared.live(&store, e))
    }

    pub fn get_by_uid(&self, uid: &str) -> Option<Live> {
        let store = self.shared.read();
        store
            .find_uid(Uid::parse(uid))
            .map(|e| self.shared.live(&store, e))
    }

    /// The whole object, if its payload is kept.
    pub fn object(&self, key: &ResourceKey) -> Option<Arc<Object>> {
        let body = self.shared.read().find(key)?.body.clone()?;
        Some(body.kept.object())
    }

    /// The objects that an object owns directly. The claims that a StatefulSet created for its Pods
    /// count as its own, although they have no owner reference.
    pub fn children(&self, uid: &str) -> Vec<Live> {
        let uid = Uid::parse(uid);
        let (mut children, stateful_set) = {
            let store = self.shared.read();
            let of_stateful_set = store
                .find_uid(uid)
                .filter(|e| store.slot(e.kind).kind.gvk.kind == "StatefulSet");
            let children: Vec<Live> = store
                .children(uid)
                .map(|e| self.shared.live(&store, e))
                .collect();
            (children, of_stateful_set.and_then(|e| e.body.clone()))
        };
        if let Some(body) = stateful_set {
            let unowned = |claim: &Live| claim.owners.is_empty();
            children.extend(self.claims(&body.kept.object()).into_iter().filter(unowned));
        }
        children
    }

    /// `<template>-<set>-<ordinal>`, including those of deleted Pods: their claims remain.
    fn claims(&self, set: &Object) -> Vec<Live> {
        let templates = set
            .pointer("/spec/volumeClaimTemplates")
            .and_then(serde_json::Value::as_array);
        let names = templates
            .into_iter()
            .flatten()
            .filter_map(|t| t.pointer("/metadata/name")?.as_str());
        let (start, replicas) = (
            set.i64_at("/spec/ordinals/start").unwrap_or(0),
            set.i64_at("/spec/replicas").unwrap_or(1).min(MOST_REPLICAS),
        );
        let mut claims = Vec::new();
        for template in names {
            for ordinal in start.. {
                let key = ResourceKey::new(
                    "",
                    "PersistentVolumeClaim",
                    set.namespace(),
                    &format!("{template}-{}-{ordinal}", set.name()),
                );
                match self.get(&key) {
                    Some(claim) => claims.push(claim),
                    None if ordinal - start >= replicas => break,
                    None => {}
                }
            }
        }
        claims
    }

    /// The objects that an object owns directly, as nodes of a resource tree.
    pub fn child_nodes(&self, uid: &str) -> Vec<ResourceNode> {
        self.children(uid).iter().map(Live::node).collect()
    }

    /// The known objects in a namespace (the empty one contains the cluster-scoped objects), and
    /// whether they are complete.
    pub fn namespace_objects(&self, namespace: &str) -> (Vec<Live>, Result<(), Unreadable>) {
        let store = self.shared.read();
        let id = store.name_id(namespace);
        let objects = store
            .entries()
            .filter(|e| Some(e.namespace) == id)
            .map(|e| self.shared.live(&store, e))
            .collect();
        let mut unreadable = Unreadable::none();
        let within = Within::Namespaces(vec![namespace.to_owned()]);
        for slot in store
            .slots()
            .iter()
            .filter(|s| s.kind.namespaced != namespace.is_empty())
        {
            if let Some(why) = slot.readings.unreadable(&within) {
                unreadable.add(slot.kind.gvk.group_kind(), why);
            }
        }
        for (group, why) in &self.kinds().failures {
            unreadable.add(GroupKind::new(group, "*"), why.clone());
        }
        (objects, unreadable.or(()))
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

    /// Adds the server's answer to a write, so that the next read is at least as new. A state older
    /// than the known one is dropped.
    pub fn observe(&self, object: &Object) {
        let gk = object.gvk().group_kind();
        let shared = &self.shared;
        let Some((slot, kind)) = shared
            .read()
            .find_slot(&gk)
            .map(|(id, s)| (id, s.kind.clone()))
        else {
            return;
        };
        if !self.covers(&object.key()) || kind.gvk.version != object.gvk().version {
            return;
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

/// The kinds and namespaces needed for all objects of an Application: those tracked, desired and
/// known.
fn needed(
    store: &Store,
    app: &str,
    also: &[ResourceKey],
    known: &Known,
) -> BTreeMap<GroupKind, Within> {
    // Thousands of objects are in few kinds and namespaces.
    let places: HashSet<_> = store.of_app(app).map(|e| (e.kind, e.namespace)).collect();
    let key = |(kind, namespace): (KindId, NameId)| {
        let gvk = &store.slot(kind).kind.gvk;
        ResourceKey::new(&gvk.group, &gvk.kind, store.name(namespace), "")
    };
    let marked: Vec<ResourceKey> = places.into_iter().map(key).collect();
    let known: &[ResourceKey] = if let Known::Resources(keys) = known {
        keys
    } else {
        &[]
    };
    Within::of(marked.iter().chain(also).chain(known))
}
