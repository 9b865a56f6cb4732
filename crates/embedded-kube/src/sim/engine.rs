//! The main loop: detects changes, asks reconcilers for plans, carries them out.
//!
//! Main type: [`Engine`]. It is driven with [`Engine::step`] and has no clock of its own, so tests
//! control the time.

use super::{
    SimOptions,
    cache::Cache,
    events::Recorder,
    fields::after,
    kind::{Key, Kind},
    node,
    plan::{Change as Planned, Plan, Write},
    pod::{self, Stage},
    route, storage,
    store::{Change, ChangeFeed, DeleteRequest, SimStore, StoreError},
};
use jiff::Timestamp;
use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};
use tiphys_apimachinery::Object;

/// A rejected write for an owner, and when it is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub until: Timestamp,
    pub attempts: u32,
}

/// What the elapsed time of an object is measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Pod(Stage),
    Address,
}

/// An object may be reconciled this often within one second; more means that two writers disagree,
/// and it is slowed down.
const TURNS_PER_SECOND: u32 = 200;

/// The controllers of one cluster.
pub struct Engine<S: SimStore> {
    pub(super) store: S,
    feed: S::Feed,
    pub(super) options: SimOptions,
    pub(super) cache: Cache,
    queue: VecDeque<Key>,
    queued: HashSet<Key>,
    timers: BTreeSet<(Timestamp, Key)>,
    wakes: HashMap<Key, Timestamp>,
    /// Since when an object (by uid) has been in its current state.
    since: HashMap<Key, (String, Marker, Timestamp)>,
    pub(super) failures: HashMap<Key, Failure>,
    turns: HashMap<Key, (i64, u32)>,
    recorder: Recorder,
    /// When a periodically reconciled object is due, or since when it has been in its state.
    pub(super) rounds: HashMap<Key, Timestamp>,
    pub(super) next_address: u32,
}

impl<S: SimStore> Engine<S> {
    pub fn new(store: S, options: SimOptions) -> Self {
        let feed = store.feed();
        let recorder = Recorder::new(options.events);
        Self {
            store,
            feed,
            options,
            cache: Cache::default(),
            queue: VecDeque::new(),
            queued: HashSet::new(),
            timers: BTreeSet::new(),
            wakes: HashMap::new(),
            since: HashMap::new(),
            failures: HashMap::new(),
            turns: HashMap::new(),
            recorder,
            rounds: HashMap::new(),
            next_address: 1,
        }
    }

    /// Reads the store and creates the nodes if they are missing.
    pub fn start(&mut self, now: Timestamp) {
        self.resync();
        self.resume(now);
        match self.store.list(Kind::Event) {
            Ok(events) => self.recorder.adopt(&events),
            Err(error) => {
                tracing::warn!(%error, "the events of an earlier run cannot be listed and will stay")
            }
        }
        if self.cache.of_kind(Kind::StorageClass).next().is_none() {
            let write = Write {
                change: Planned::Create(storage::standard_class()),
                notes: Vec::new(),
            };
            self.carry_out(
                &Key::new(Kind::StorageClass, "", storage::STANDARD),
                None,
                write,
                &mut HashMap::new(),
                now,
            );
        }
        for name in node::NODES {
            if self.cache.find(Kind::Node, "", name).is_none() {
                let write = Write {
                    change: Planned::Create(node::node(name)),
                    notes: Vec::new(),
                };
                self.carry_out(
                    &Key::new(Kind::Node, "", name),
                    None,
                    write,
                    &mut HashMap::new(),
                    now,
                );
            }
        }
    }

    /// Pods continue what they were doing in an earlier process: their status shows since when.
    fn resume(&mut self, now: Timestamp) {
        let pods: Vec<Arc<Object>> = self.cache.of_kind(Kind::Pod).cloned().collect();
        for pod in pods {
            let (stage, _) = pod::stage(&pod, &self.options);
            if let (Some(key), Some(since)) = (Key::of(&pod), pod::entered(&pod, stage)) {
                self.since.insert(
                    key,
                    (pod.uid().to_owned(), Marker::Pod(stage), since.min(now)),
                );
            }
        }
    }

    pub(super) fn feed(&mut self) -> &mut S::Feed {
        &mut self.feed
    }

    /// The number of objects in memory.
    pub fn known(&self) -> usize {
        self.cache.keys().count()
    }

    /// The next time at which there is work even if nothing changes.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Handles changes and due objects, at most `budget` objects. Returns whether there is more to
    /// do now.
    pub fn step(&mut self, now: Timestamp, budget: usize) -> bool {
        for _ in 0..budget {
            // Changes first: a reconciler must see the results of its own writes.
            while let Some(change) = self.feed.try_next() {
                self.notice(change);
            }
            self.fire(now);
            let Some(key) = self.queue.pop_front() else {
                return false;
            };
            self.queued.remove(&key);
            self.reconcile(&key, now);
        }
        true
    }

    fn fire(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.timers.first().cloned()
            && at <= now
        {
            self.timers.remove(&(at, key.clone()));
            self.wakes.remove(&key);
            self.enqueue(key);
        }
    }

    pub(super) fn enqueue(&mut self, key: Key) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    fn set_wake(&mut self, key: &Key, wake: Option<Timestamp>) {
        if let Some(old) = self.wakes.remove(key) {
            self.timers.remove(&(old, key.clone()));
        }
        if let Some(at) = wake {
            self.wakes.insert(key.clone(), at);
            self.timers.insert((at, key.clone()));
        }
    }

    /// Since when the object with this key and uid has been in the state `marker`; from now on if
    /// that is new.
    pub(super) fn since(
        &mut self,
        key: &Key,
        uid: &str,
        marker: Marker,
        now: Timestamp,
    ) -> Timestamp {
        match self.since.get(key) {
            Some((known, state, since)) if known == uid && *state == marker => *since,
            _ => {
                self.since
                    .insert(key.clone(), (uid.to_owned(), marker, now));
                now
            }
        }
    }

    /// Records a change in the store.
    pub(super) fn notice(&mut self, change: Change) {
        match change {
            Change::Applied(object) => self.apply(object),
            Change::Deleted(object) => {
                if let Some(key) = Key::of(&object) {
                    self.drop_object(&key, object.uid());
                }
            }
            Change::Other { namespace } => route::other(self, &namespace),
            Change::Resync => self.resync(),
        }
    }

    fn apply(&mut self, object: Arc<Object>) {
        let Some(key) = Key::of(&object) else { return };
        if let Some(old) = self.cache.put(&key, object.clone()) {
            route::changed(self, &key, old.as_deref(), Some(&object));
        }
    }

    fn drop_object(&mut self, key: &Key, uid: &str) {
        if let Some(old) = self.cache.remove(key, uid) {
            self.set_wake(key, None);
            self.since.remove(key);
            self.failures.remove(key);
            self.turns.remove(key);
            self.rounds.remove(key);
            route::changed(self, key, Some(&old), None);
        }
    }

    fn resync(&mut self) {
        let mut gone: HashSet<Key> = self.cache.keys().cloned().collect();
        for kind in Kind::ALL.iter().filter(|k| **k != Kind::Event) {
            match self.store.list(*kind) {
                Ok(objects) => {
                    for object in objects {
                        if let Some(key) = Key::of(&object) {
                            gone.remove(&key);
                        }
                        self.apply(object);
                    }
                }
                Err(error) => {
                    // An error is not an empty list: the known objects are kept.
                    tracing::warn!(kind = kind.name(), %error, "the simulated controllers cannot list a kind");
                    gone.retain(|k| k.kind != *kind);
                }
            }
        }
        for key in gone {
            if let Some(uid) = self.cache.get(&key).map(|o| o.uid().to_owned()) {
                self.drop_object(&key, &uid);
            }
        }
    }

    fn reconcile(&mut self, key: &Key, now: Timestamp) {
        let Some(object) = self.cache.get(key).cloned() else {
            return self.after_gone(key, now);
        };
        if self.too_often(key, now) {
            self.set_wake(key, Some(after(now, 1)));
            return;
        }
        let Plan {
            writes,
            remarks,
            wake,
        } = self.plan(key, &object, now);
        self.set_wake(key, wake);
        for remark in remarks {
            self.recorder.remark(&self.store, &object, &remark, now);
        }
        let mut versions = HashMap::new();
        for write in writes {
            let creates = matches!(write.change, Planned::Create(_));
            let done = self.carry_out(key, Some(&object), write, &mut versions, now);
            if creates && !done {
                // The next write would be rejected, too.
                break;
            }
        }
    }

    /// The work that remains when an object is deleted.
    fn after_gone(&mut self, key: &Key, now: Timestamp) {
        for write in self.plan_gone(key).writes {
            self.carry_out(key, None, write, &mut HashMap::new(), now);
        }
    }

    fn too_often(&mut self, key: &Key, now: Timestamp) -> bool {
        let second = now.as_second();
        let entry = self.turns.entry(key.clone()).or_insert((second, 0));
        if entry.0 != second {
            *entry = (second, 0);
        }
        entry.1 += 1;
        entry.1 > TURNS_PER_SECOND
    }

    /// Performs one write for the object with `key`. `versions` has the versions written by this
    /// plan, so that its earlier writes do not make its later ones outdated.
    fn carry_out(
        &mut self,
        key: &Key,
        object: Option<&Object>,
        write: Write,
        versions: &mut HashMap<Key, String>,
        now: Timestamp,
    ) -> bool {
        let target = match &write.change {
            Planned::Create(o) | Planned::Update(o) | Planned::Status(o) => Key::of(o),
            Planned::Delete { key, .. } => Some(key.clone()),
        };
        let result = match write.change {
            Planned::Create(o) => self.store.create(o).map(Some),
            Planned::Update(o) => self.store.update(rebased(o, versions)).map(Some),
            Planned::Status(o) => self.store.update_status(rebased(o, versions)).map(Some),
            Planned::Delete {
                key,
                uid,
                grace_seconds,
                propagation,
            } => {
                let request = DeleteRequest {
                    uid: Some(uid),
                    grace_seconds,
                    propagation,
                };
                self.store
                    .delete(key.kind, &key.namespace, &key.name, request)
            }
        };
        match result {
            Ok(written) => {
                let name = written
                    .as_ref()
                    .map(|o| o.name().to_owned())
                    .unwrap_or_default();
                if let Some(written) = written {
                    if let Some(target) = Key::of(&written) {
                        versions.insert(target, written.resource_version().to_owned());
                    }
                    self.apply(written);
                }
                for mut note in write.notes {
                    note.message = note.message.replace("{name}", &name);
                    if let Some(object) = object {
                        self.recorder.record(&self.store, object, &note, now);
                    }
                }
                self.failures.remove(key);
                true
            }
            Err(error) => {
                self.refused(key, object, target, error, now);
                false
            }
        }
    }

    fn refused(
        &mut self,
        key: &Key,
        object: Option<&Object>,
        target: Option<Key>,
        error: StoreError,
        now: Timestamp,
    ) {
        tracing::debug!(%key, %error, "a simulated controller's write was refused");
        match error {
            StoreError::Conflict(_) | StoreError::NotFound(_) => {
                if let Some(target) = target {
                    self.refetch(&target);
                }
                self.set_wake(key, Some(self.soon(key, now)));
            }
            StoreError::AlreadyExists(_) => {
                if let Some(target) = target {
                    self.refetch(&target);
                }
                self.set_wake(key, Some(after(now, 1)));
            }
            // The owner is being deleted, too.
            StoreError::NamespaceTerminating(_) => {}
            StoreError::Refused(message) | StoreError::Unavailable(message) => {
                self.fail(key, object, message, now)
            }
        }
    }

    /// Immediately, unless the object has been reconciled very often.
    fn soon(&self, key: &Key, now: Timestamp) -> Timestamp {
        if self
            .turns
            .get(key)
            .is_some_and(|(_, n)| *n > TURNS_PER_SECOND / 2)
        {
            after(now, 1)
        } else {
            now
        }
    }

    fn fail(&mut self, key: &Key, object: Option<&Object>, message: String, now: Timestamp) {
        let attempts = self
            .failures
            .get(key)
            .map_or(1, |f| f.attempts.saturating_add(1));
        let until = after(now, 1 << attempts.min(6));
        if let Some(object) = object {
            let note =
                super::plan::Note::warning("FailedCreate", format!("Error creating: {message}"));
            self.recorder.record(&self.store, object, &note, now);
        }
        self.failures.insert(
            key.clone(),
            Failure {
                message,
                until,
                attempts,
            },
        );
        self.set_wake(key, Some(until));
        if attempts == 1 {
            // The status should report the failure.
            self.enqueue(key.clone());
        }
    }

    fn refetch(&mut self, key: &Key) {
        match self.store.get(key.kind, &key.namespace, &key.name) {
            Ok(Some(object)) => self.apply(object),
            Ok(None) => {
                if let Some(uid) = self.cache.get(key).map(|o| o.uid().to_owned()) {
                    self.drop_object(key, &uid);
                }
            }
            Err(error) => tracing::debug!(%key, %error, "cannot be read again"),
        }
    }
}

/// The object with the resourceVersion after this plan's own writes.
fn rebased(mut object: Object, versions: &HashMap<Key, String>) -> Object {
    if let Some(version) = Key::of(&object).and_then(|k| versions.get(&k)) {
        object
            .metadata_mut()
            .insert("resourceVersion".into(), version.clone().into());
    }
    object
}
