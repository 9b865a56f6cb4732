//! The objects and their indexes: by key, uid, owner and Application. No I/O; callers hold the
//! lock.
//!
//! Main type: [`Store`]. An event costs only what it touches. The store never goes backwards: older
//! states of an object are dropped.

use super::{
    feed::Scope,
    parse::Parsed,
    readable::Readings,
    record::{Details, Entry, KindId, NameId, Uid},
};
use crate::{discovery::Kind, traffic::Histogram};
use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use std::{collections::VecDeque, hash::BuildHasher, sync::Arc};
use tiphys_apimachinery::{GroupKind, ResourceKey};

/// Longest chain of owners. Deeper ones do not occur, but cycles could.
const MAX_DEPTH: usize = 12;
/// How many of our own deletions are remembered until the watch confirms them.
const REMEMBERED_DELETIONS: usize = 4096;

/// Where a new state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSource {
    List,
    Watch,
    /// The answer to our own write, which the watch may have overtaken.
    Write,
}

/// A kind that is watched.
pub(super) struct Slot {
    pub kind: Arc<Kind>,
    /// For each collection that was read, the resourceVersion up to which everything in it has been
    /// seen.
    positions: Vec<(Scope, u64)>,
    pub readings: Readings,
    pub objects: usize,
    /// Number of watch events so far.
    pub events: u64,
}

impl Slot {
    /// Everything in the collection up to this resourceVersion has been seen.
    pub fn advance(&mut self, scope: &Scope, version: u64) {
        match self.positions.iter_mut().find(|(own, _)| own == scope) {
            Some((_, position)) => *position = version.max(*position),
            None => self.positions.push((scope.clone(), version)),
        }
    }

    /// Everything in this namespace up to this resourceVersion has been seen.
    pub fn position(&self, namespace: &str) -> u64 {
        let reaching = self
            .positions
            .iter()
            .filter(|(scope, _)| scope.has(namespace));
        reaching.map(|(_, position)| *position).max().unwrap_or(0)
    }
}

/// The effect of an update, for the change feed.
pub(super) struct StoreChange {
    pub change_type: ChangeType,
    pub key: ResourceKey,
    /// Empty if it matters to no Application.
    pub apps: Vec<Arc<str>>,
    pub managed: bool,
    pub spec: bool,
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    Added,
    Modified,
    Deleted,
}

#[derive(Default)]
pub(super) struct Store {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
    by_key: HashTable<u32>,
    by_uid: HashTable<u32>,
    by_owner: HashMap<Uid, Vec<u32>>,
    by_app: HashMap<NameId, HashSet<u32>>,
    names: Names,
    uid_texts: HashMap<Uid, Box<str>>,
    slots: Vec<Slot>,
    slot_of: HashMap<GroupKind, KindId>,
    /// Untracked objects whose payloads Applications want: key to Applications.
    pinned: HashMap<ResourceKey, Vec<NameId>>,
    pins_of: HashMap<NameId, Vec<ResourceKey>>,
    /// Applications that monitor orphans, by namespace.
    monitors: HashMap<NameId, Vec<NameId>>,
    deleted: VecDeque<Uid>,
    deleted_set: HashSet<Uid>,
    body_bytes: usize,
    /// How long watch events took until they were stored, in seconds.
    pub processing: Option<Histogram>,
}

#[derive(Default)]
struct Names {
    list: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NameId>,
}

impl Names {
    fn id(&mut self, name: &str) -> NameId {
        if name.is_empty() {
            return NameId::EMPTY;
        }
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let shared: Arc<str> = name.into();
        self.list.push(shared.clone());
        let id = NameId(u32::try_from(self.list.len()).expect("fewer than four billion names"));
        self.ids.insert(shared, id);
        id
    }

    fn find(&self, name: &str) -> Option<NameId> {
        if name.is_empty() {
            Some(NameId::EMPTY)
        } else {
            self.ids.get(name).copied()
        }
    }

    fn text(&self, id: NameId) -> &str {
        if id == NameId::EMPTY {
            ""
        } else {
            &self.list[id.0 as usize - 1]
        }
    }

    fn shared(&self, id: NameId) -> Option<Arc<str>> {
        (id != NameId::EMPTY).then(|| self.list[id.0 as usize - 1].clone())
    }
}

impl Store {
    /// The slot of a kind, created if it is new. A kind that reappears in another version reuses
    /// its old slot.
    pub fn slot_for(&mut self, kind: &Arc<Kind>) -> KindId {
        let gk = kind.gvk.group_kind();
        if let Some(id) = self.slot_of.get(&gk) {
            let slot = &mut self.slots[usize::from(id.0)];
            slot.kind = kind.clone();
            return *id;
        }
        let id =
            KindId(u16::try_from(self.slots.len()).expect("a cluster has fewer than 65,536 kinds"));
        self.slots.push(Slot {
            kind: kind.clone(),
            positions: Vec::new(),
            readings: Readings::default(),
            objects: 0,
            events: 0,
        });
        self.slot_of.insert(gk, id);
        id
    }

    pub fn find_slot(&self, gk: &GroupKind) -> Option<(KindId, &Slot)> {
        self.slot_of
            .get(gk)
            .map(|id| (*id, &self.slots[usize::from(id.0)]))
    }

    pub fn slot(&self, id: KindId) -> &Slot {
        &self.slots[usize::from(id.0)]
    }

    pub fn slot_mut(&mut self, id: KindId) -> &mut Slot {
        &mut self.slots[usize::from(id.0)]
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn entry(&self, id: u32) -> &Entry {
        self.entries[id as usize]
            .as_ref()
            .expect("the indexes name only entries that are there")
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    pub fn name(&self, id: NameId) -> &str {
        self.names.text(id)
    }

    pub fn shared_name(&self, id: NameId) -> Option<Arc<str>> {
        self.names.shared(id)
    }

    pub fn name_id(&self, name: &str) -> Option<NameId> {
        self.names.find(name)
    }

    pub fn uid_text(&self, uid: Uid) -> String {
        if uid == Uid::NONE {
            String::new()
        } else {
            self.uid_texts
                .get(&uid)
                .map_or_else(|| uid.to_string(), |t| t.to_string())
        }
    }

    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Bytes of the summaries and their indexes, as requested; the allocator's overhead is not
    /// included.
    pub fn record_bytes(&self) -> usize {
        let of = |e: &Entry| {
            e.name.len()
                + size_of_val(&*e.owners)
                + e.details.as_ref().map_or(0, |_| size_of::<Details>())
        };
        let entries = self.entries.capacity() * size_of::<Option<Entry>>()
            + self.entries().map(of).sum::<usize>();
        let owners = self
            .by_owner
            .values()
            .map(|list| list.capacity() * size_of::<u32>())
            .sum::<usize>();
        let apps = self
            .by_app
            .values()
            .map(HashSet::allocation_size)
            .sum::<usize>();
        let names = self
            .names
            .list
            .iter()
            .map(|name| name.len() + 2 * size_of::<usize>())
            .sum::<usize>();
        let tables = self.by_key.allocation_size()
            + self.by_uid.allocation_size()
            + self.by_owner.allocation_size();
        let texts = self.uid_texts.allocation_size()
            + self
                .uid_texts
                .values()
                .map(|text| text.len())
                .sum::<usize>();
        let lists = self.free.capacity() * size_of::<u32>()
            + self.names.list.capacity() * size_of::<Arc<str>>();
        entries
            + owners
            + apps
            + names
            + tables
            + texts
            + lists
            + self.by_app.allocation_size()
            + self.names.ids.allocation_size()
    }

    fn hash(&self, kind: KindId, namespace: NameId, name: &str) -> u64 {
        self.hasher.hash_one((kind, namespace, name))
    }

    fn find_id(&self, kind: KindId, namespace: NameId, name: &str) -> Option<u32> {
        let same = |id: &u32| {
            let e = self.entry(*id);
            e.kind == kind && e.namespace == namespace && *e.name == *name
        };
        self.by_key
            .find(self.hash(kind, namespace, name), same)
            .copied()
    }

    pub fn find(&self, key: &ResourceKey) -> Option<&Entry> {
        let (kind, _) = self.find_slot(&key.group_kind())?;
        let id = self.find_id(kind, self.names.find(&key.namespace)?, &key.name)?;
        Some(self.entry(id))
    }

    pub fn find_uid(&self, uid: Uid) -> Option<&Entry> {
        self.by_uid
            .find(self.hasher.hash_one(uid), |id| self.entry(*id).uid == uid)
            .map(|id| self.entry(*id))
    }

    pub fn children(&self, uid: Uid) -> impl Iterator<Item = &Entry> {
        self.by_owner
            .get(&uid)
            .into_iter()
            .flatten()
            .map(|id| self.entry(*id))
    }

    pub fn of_app(&self, app: &str) -> impl Iterator<Item = &Entry> {
        let ids = self.names.find(app).and_then(|id| self.by_app.get(&id));
        ids.into_iter().flatten().map(|id| self.entry(*id))
    }

    pub fn apps(&self) -> Vec<Arc<str>> {
        self.by_app
            .keys()
            .filter_map(|id| self.names.shared(*id))
            .collect()
    }

    pub fn key(&self, entry: &Entry) -> ResourceKey {
        let gvk = &self.slot(entry.kind).kind.gvk;
        ResourceKey::new(
            &gvk.group,
            &gvk.kind,
            self.names.text(entry.namespace),
            &entry.name,
        )
    }

    pub fn is_pinned(&self, kind: &Kind, namespace: &str, name: &str) -> bool {
        !self.pinned.is_empty()
            && self.pinned.contains_key(&ResourceKey::new(
                &kind.gvk.group,
                &kind.gvk.kind,
                namespace,
                name,
            ))
    }

    /// From now on the payloads of exactly these keys are kept for `app`, tracked or not.
    pub fn pin(&mut self, app: &str, keys: Vec<ResourceKey>) {
        let app = self.names.id(app);
        let old = if keys.is_empty() {
            self.pins_of.remove(&app)
        } else {
            self.pins_of.insert(app, keys.clone())
        };
        for key in &keys {
            let apps = self.pinned.entry(key.clone()).or_default();
            if !apps.contains(&app) {
                apps.push(app);
            }
        }
        for key in old.into_iter().flatten().filter(|k| !keys.contains(k)) {
            if let Some(apps) = self.pinned.get_mut(&key) {
                apps.retain(|a| *a != app);
                if apps.is_empty() {
                    self.pinned.remove(&key);
                }
            }
        }
    }

    /// From now on `app` is notified of orphans in this namespace, and no other.
    pub fn monitor(&mut self, app: &str, namespace: Option<&str>) {
        if namespace.is_none() && self.monitors.is_empty() {
            return;
        }
        let app = self.names.id(app);
        let namespace = namespace.map(|n| self.names.id(n));
        if namespace.is_some_and(|n| {
            self.monitors
                .get(&n)
                .is_some_and(|apps| apps.contains(&app))
        }) {
            return;
        }
        self.monitors.retain(|_, apps| {
            apps.retain(|a| *a != app);
            !apps.is_empty()
        });
        if let Some(namespace) = namespace {
            self.monitors.entry(namespace).or_default().push(app);
        }
    }

    /// The Applications that an object matters to: the one that tracks it, those that pinned it,
    /// those of its owners; or, for an orphan, those that monitor its namespace.
    fn apps_of(&self, entry: &Entry, key: &ResourceKey) -> (Vec<Arc<str>>, bool) {
        let mut apps: Vec<NameId> = self.pinned.get(key).cloned().unwrap_or_default();
        if entry.app != NameId::EMPTY && !apps.contains(&entry.app) {
            apps.push(entry.app);
        }
        let managed = !apps.is_empty();
        let mut above: Vec<Uid> = entry.owners.to_vec();
        // Owner references may be repeated, form cycles, and lead to one owner on several paths.
        let mut seen: HashSet<Uid> = HashSet::new();
        for _ in 0..MAX_DEPTH {
            above.retain(|uid| seen.insert(*uid));
            let mut next = Vec::new();
            for owner in above.iter().filter_map(|uid| self.find_uid(*uid)) {
                if owner.app != NameId::EMPTY && !apps.contains(&owner.app) {
                    apps.push(owner.app);
                }
                next.extend_from_slice(&owner.owners);
            }
            if next.is_empty() {
                break;
            }
            above = next;
        }
        if apps.is_empty() {
            apps.extend(self.monitors.get(&entry.namespace).into_iter().flatten());
        }
        (
            apps.into_iter()
                .filter_map(|a| self.names.shared(a))
                .collect(),
            managed,
        )
    }

    /// Stores a new state of an object; `None` if it is not new (older or the same).
    pub fn upsert(
        &mut self,
        kind: KindId,
        parsed: Parsed,
        news: EventSource,
    ) -> Option<StoreChange> {
        if parsed.uid != Uid::NONE && self.deleted_set.contains(&parsed.uid) {
            return None;
        }
        let namespace = self.names.id(&parsed.namespace);
        let known = self.find_id(kind, namespace, &parsed.name);
        let mut before = None;
        if let Some(id) = known {
            let e = self.entry(id);
            let older = parsed.version != 0
                && if e.uid == parsed.uid {
                    parsed.version <= e.version
                } else {
                    parsed.version < e.version
                };
            // The same state may bring a payload that was not wanted before.
            if older && !(parsed.version == e.version && e.body.is_none() && parsed.body.is_some())
            {
                return None;
            }
            let key = self.key(e);
            before = Some((
                self.apps_of(e, &key),
                e.body.as_ref().map(|b| b.digest),
                e.deleting,
                e.details.clone(),
            ));
            self.remove_id(id);
        } else if news == EventSource::Write
            && parsed.version != 0
            && parsed.version <= self.slot(kind).position(&parsed.namespace)
        {
            // The watch is past this state and the object does not exist: it has been deleted
            // since.
            return None;
        }
        let app = parsed
            .app
            .as_deref()
            .map_or(NameId::EMPTY, |a| self.names.id(a));
        if let Some(text) = parsed.uid_text {
            self.uid_texts.insert(parsed.uid, text.into());
        }
        let version = parsed.version;
        let (digest, deleting, details) = (
            parsed.body.as_ref().map(|b| b.digest),
            parsed.deleting,
            parsed.details.clone(),
        );
        let id = self.insert(Entry {
            kind,
            deleting: parsed.deleting,
            namespace,
            app,
            created: parsed.created,
            name: parsed.name.into(),
            uid: parsed.uid,
            version,
            owners: parsed.owners,
            details: parsed.details,
            body: parsed.body,
        });
        let entry = self.entry(id);
        let key = self.key(entry);
        let (mut apps, mut managed) = self.apps_of(entry, &key);
        let (change_type, spec) = match before {
            None => (ChangeType::Added, true),
            Some(((old_apps, was_managed), old_digest, old_deleting, old_details)) => {
                let spec = old_digest.is_none()
                    || old_digest != digest
                    || old_deleting != deleting
                    || old_apps != apps;
                let ignored = old_apps == apps
                    && old_details
                        .zip(details)
                        .is_some_and(|(old, new)| new.is_same_update(&old));
                if ignored {
                    tracing::trace!(%key, "nothing that is watched changed");
                    apps.clear();
                } else {
                    apps.extend(
                        old_apps
                            .into_iter()
                            .filter(|a| !apps.contains(a))
                            .collect::<Vec<_>>(),
                    );
                }
                // Removing the tracking metadata removes the object from its Application, which
                // must be notified.
                managed |= was_managed;
                (ChangeType::Modified, spec)
            }
        };
        Some(StoreChange {
            change_type,
            key,
            apps,
            managed,
            spec,
            version,
        })
    }

    /// Removes an object. `uid` must be its uid (or NONE); `version` that of the deletion, 0 if
    /// unknown.
    pub fn remove(
        &mut self,
        kind: KindId,
        namespace: &str,
        name: &str,
        uid: Uid,
        version: u64,
    ) -> Option<StoreChange> {
        let id = self.find_id(kind, self.names.find(namespace)?, name)?;
        let e = self.entry(id);
        if (uid != Uid::NONE && e.uid != uid) || (version != 0 && e.version > version) {
            return None;
        }
        Some(self.remove_with_effect(id, version))
    }

    fn remove_with_effect(&mut self, id: u32, version: u64) -> StoreChange {
        let e = self.entry(id);
        let key = self.key(e);
        let (apps, managed) = self.apps_of(e, &key);
        self.remove_id(id);
        StoreChange {
            change_type: ChangeType::Deleted,
            key,
            apps,
            managed,
            spec: true,
            version,
        }
    }

    /// Remembers that we deleted an object, so that a list or watch that lags behind does not
    /// restore it.
    pub fn remember_deletion(&mut self, uid: Uid) {
        if uid != Uid::NONE && self.deleted_set.insert(uid) {
            self.deleted.push_back(uid);
            if self.deleted.len() > REMEMBERED_DELETIONS
                && let Some(oldest) = self.deleted.pop_front()
            {
                self.deleted_set.remove(&oldest);
            }
        }
    }

    /// Removes objects that a complete list at `version` does not contain; newer ones stay.
    pub fn retain_listed(
        &mut self,
        kind: KindId,
        scope: &Scope,
        listed: &HashSet<Uid>,
        version: u64,
    ) -> Vec<StoreChange> {
        let gone = |e: &Entry| {
            e.kind == kind
                && scope.has(self.names.text(e.namespace))
                && !listed.contains(&e.uid)
                && (version == 0 || e.version <= version)
        };
        let ids: Vec<u32> = (0u32..)
            .zip(&self.entries)
            .filter(|(_, e)| e.as_ref().is_some_and(gone))
            .map(|(id, _)| id)
            .collect();
        ids.into_iter()
            .map(|id| self.remove_with_effect(id, version))
            .collect()
    }

    /// Drops a kind that is no longer watched.
    pub fn drop_kind(&mut self, kind: KindId) -> Vec<StoreChange> {
        let effects = self.retain_listed(kind, &Scope::All, &HashSet::new(), 0);
        self.slot_mut(kind).readings.end();
        effects
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        let hash = self.hash(entry.kind, entry.namespace, &entry.name);
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).expect("fewer than four billion objects")
        });
        for owner in &entry.owners {
            self.by_owner.entry(*owner).or_default().push(id);
        }
        if entry.app != NameId::EMPTY {
            self.by_app.entry(entry.app).or_default().insert(id);
        }
        self.body_bytes += entry.body.as_ref().map_or(0, |b| b.len());
        self.slot_mut(entry.kind).objects += 1;
        self.entries[id as usize] = Some(entry);
        let Self {
            by_key,
            by_uid,
            entries,
            hasher,
            ..
        } = self;
        let entry = |id: &u32| {
            entries[*id as usize]
                .as_ref()
                .expect("the indexes name only entries that are there")
        };
        by_key.insert_unique(hash, id, |id| {
            let e = entry(id);
            hasher.hash_one((e.kind, e.namespace, &*e.name))
        });
        let uid = entry(&id).uid;
        if uid != Uid::NONE {
            // If two objects had the same uid, which no server does, the newer one would be found.
            let place = by_uid.entry(
                hasher.hash_one(uid),
                |id| entry(id).uid == uid,
                |id| hasher.hash_one(entry(id).uid),
            );
            place.insert(id);
        }
        id
    }

    fn remove_id(&mut self, id: u32) {
        let entry = self.entries[id as usize]
            .take()
            .expect("the indexes name only entries that are there");
        let hash = self.hash(entry.kind, entry.namespace, &entry.name);
        if let Ok(found) = self.by_key.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        if let Ok(found) = self
            .by_uid
            .find_entry(self.hasher.hash_one(entry.uid), |other| *other == id)
        {
            found.remove();
            self.uid_texts.remove(&entry.uid);
        }
        for owner in &entry.owners {
            if let Some(children) = self.by_owner.get_mut(owner) {
                children.retain(|c| *c != id);
                if children.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        if let Some(ids) = self.by_app.get_mut(&entry.app) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_app.remove(&entry.app);
            }
        }
        self.body_bytes -= entry.body.as_ref().map_or(0, |b| b.len());
        self.slot_mut(entry.kind).objects -= 1;
        self.free.push(id);
    }
}
