//! What is read from the cache: the objects of an Application, single ones, and what cannot be
//! read. A kind that cannot be read is an error, never an empty list.

use super::{
    Known, Live, LiveCache, Unreadable,
    readable::{self, Within},
    record::{Body, Entry, KindId, NameId, Uid},
    store::Store,
};
use crate::{discovery::Kind, error::Error, request::Call};
use futures::{StreamExt, stream};
use hashbrown::HashSet;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tiphys_api::resource::ResourceNode;
use tiphys_apimachinery::{GroupKind, Gvk, Kept, Object, ResourceKey};
use tiphys_engine::types::KindInfo as _;

/// How often a reader checks whether a kind has been listed.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// How long a reader waits for the first list of a kind.
const FIRST_LISTS: Duration = Duration::from_secs(10);
/// Concurrent GETs for objects whose payloads are not kept.
const FETCHES: usize = 16;
/// For larger StatefulSets, claims are searched by ordinal only until the first missing one.
const MOST_REPLICAS: i64 = 1000;

impl LiveCache {
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

    /// The kinds whose known objects are incomplete, sorted, each with the reason; `*` is every
    /// kind of a group. One that is listed for the first time is about to be known, and not here.
    pub fn incomplete(&self) -> Vec<(GroupKind, String)> {
        let kinds = self.kinds();
        let groups = kinds.failures.iter();
        let groups = groups.map(|(group, why)| (GroupKind::new(group, "*"), why.clone()));
        let store = self.shared.read();
        let slots = store.slots().iter();
        let mut all: Vec<(GroupKind, String)> = slots
            .filter_map(|slot| {
                let why = slot.readings.lasting()?;
                Some((slot.kind.gvk.group_kind(), why.to_owned()))
            })
            .chain(groups)
            .collect();
        all.sort();
        all
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
            let error = slot.readings.error().map(str::to_owned);
            error.or_else(|| slot.readings.unreadable(&Within::All))
        });
        for key in keys
            .iter()
            .filter(|key| kinds.preferred(&key.group_kind()).is_none())
        {
            if let Some(why) = &unknown {
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

    pub(super) fn covers(&self, key: &ResourceKey) -> bool {
        let namespaces = &self.shared.options.namespaces;
        namespaces.is_empty() || key.namespace.is_empty() || namespaces.contains(&key.namespace)
    }

    /// Reads from the server and adds the result to the cache.
    async fn fetch_now(&self, key: &ResourceKey) -> Result<Option<Object>, Error> {
        let Some(kind) = self.kinds().preferred(&key.group_kind()).cloned() else {
            return Ok(None);
        };
        // What was known before the server said that there is nothing is gone for good: whatever
        // gets its name later has another uid.
        let known = self.get(key).map(|live| live.uid);
        match self.ask(&kind, &key.namespace, &key.name).await {
            Ok(object) => {
                self.observe(&object);
                Ok(Some(object))
            }
            Err(e) if e.is_absent(&key.name) => {
                if let Some(uid) = known {
                    self.observe_deleted(key, &uid);
                }
                Ok(None)
            }
            Err(e) if self.says_gone(&e, key).await => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Adds the server's answer to a write in any version of its kind. An answer in another version
    /// than the one that is watched does not say what the watch will, so the object is read again:
    /// otherwise a comparison before the next event would still see the state before the write.
    pub async fn observe_written(&self, object: &Object) {
        if self.observe(object) || self.is_as_new_as(object) {
            return;
        }
        if let Err(error) = self.fetch_now(&object.key()).await {
            tracing::warn!(key = %object.key(), %error, "what was written cannot be read again");
        }
    }

    /// Whether the watch has already reported this state of the object, or a later one.
    fn is_as_new_as(&self, object: &Object) -> bool {
        let Ok(version) = object.resource_version().parse::<u64>() else {
            return false;
        };
        self.get(&object.key()).is_some_and(|live| {
            let known = live.resource_version.parse::<u64>();
            live.uid == object.uid() && known.is_ok_and(|known| known >= version)
        })
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
        let key = ResourceKey::new(&gvk.group, &gvk.kind, namespace, name);
        match self.ask(&kind, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(e) if self.says_gone(&e, &key).await => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn ask(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Object, Error> {
        let call = Call::get(kind.object_path(namespace, name)).timeout(Duration::from_secs(30));
        let cluster = self.shared.discovery.cluster();
        cluster.http().json(&call).await
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
