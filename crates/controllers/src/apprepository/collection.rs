//! A collection of objects as last seen, and what changes in it.
//!
//! Main type: [`Collection`]. For kinds with few objects: they are kept whole.

use super::Key;
use serde_json::{Value, value::RawValue};
use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};
use tiphys_cluster::{
    Cluster, Error,
    watch::{self, EventKind, Sink, Target},
};
use tokio::{sync::Semaphore, sync::watch as channel, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Object before and after a change; neither is `null` unless it did not or does not exist.
pub(super) struct Change<'a> {
    pub key: &'a Key,
    pub before: Option<&'a Value>,
    pub now: Option<&'a Value>,
}

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Collection {
    objects: Arc<RwLock<BTreeMap<Key, Arc<Value>>>>,
    listed: channel::Receiver<bool>,
}

impl Collection {
    /// Follows the collection at a path until stopped, and tells every change.
    pub fn follow(
        cluster: &Cluster,
        path: &str,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        tell: impl Fn(Change<'_>) + Send + 'static,
    ) -> Self {
        Self::follow_some(cluster, (path, |_| true), tasks, stop, tell)
    }

    /// Follows the objects of which a function says so; of others only that they are gone.
    pub fn follow_some(
        cluster: &Cluster,
        (path, wanted): (&str, fn(&Value) -> bool),
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        tell: impl Fn(Change<'_>) + Send + 'static,
    ) -> Self {
        let (done, listed) = channel::channel(false);
        let collection = Self {
            objects: Arc::default(),
            listed,
        };
        let sink = Follower {
            collection: collection.clone(),
            listed: HashSet::new(),
            done,
            tell,
            wanted,
            path: path.to_owned(),
        };
        let target = Target {
            path: path.to_owned(),
            field_selector: String::new(),
            lists: Arc::new(Semaphore::new(1)),
            tap: None,
        };
        tasks.spawn(watch::follow(cluster.clone(), target, sink, stop.clone()));
        collection
    }

    /// Waits until it was listed once.
    pub async fn ready(&self) {
        let mut listed = self.listed.clone();
        // It ends only with the process.
        let _ = listed.wait_for(|listed| *listed).await;
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.read().get(key).cloned()
    }

    pub fn find(&self, fits: impl Fn(&Key, &Value) -> bool) -> Vec<(Key, Arc<Value>)> {
        let objects = self.read();
        let found = objects.iter().filter(|(key, object)| fits(key, object));
        found
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Key, Arc<Value>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Key, Arc<Value>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Follower<T> {
    collection: Collection,
    listed: HashSet<Key>,
    done: channel::Sender<bool>,
    tell: T,
    wanted: fn(&Value) -> bool,
    path: String,
}

impl<T: Fn(Change<'_>) + Send> Follower<T> {
    fn parse(&self, object: &RawValue) -> Option<(Key, Value)> {
        let object: Value = match serde_json::from_str(object.get()) {
            Ok(object) => object,
            Err(error) => {
                tracing::warn!(path = self.path, %error, "an object was left out: it cannot be read");
                return None;
            }
        };
        let of = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Some((Key::new(of("namespace"), of("name")), object))
    }

    fn put(&self, key: &Key, object: Value) {
        if !(self.wanted)(&object) {
            return self.remove(key);
        }
        let now = Arc::new(object);
        let before = self
            .collection
            .write()
            .insert(key.clone(), Arc::clone(&now));
        if before.as_ref() != Some(&now) {
            (self.tell)(Change {
                key,
                before: before.as_deref(),
                now: Some(&now),
            });
        }
    }

    fn remove(&self, key: &Key) {
        let before = self.collection.write().remove(key);
        if before.is_some() {
            (self.tell)(Change {
                key,
                before: before.as_deref(),
                now: None,
            });
        }
    }
}

impl<T: Fn(Change<'_>) + Send> Sink for Follower<T> {
    fn list_begin(&mut self) {
        self.listed.clear();
    }

    fn page(&mut self, items: &[&RawValue]) {
        for item in items {
            let Some((key, object)) = self.parse(item) else {
                continue;
            };
            self.listed.insert(key.clone());
            self.put(&key, object);
        }
    }

    fn list_done(&mut self, _: &str) {
        let gone: Vec<Key> = {
            let objects = self.collection.read();
            let gone = objects.keys().filter(|key| !self.listed.contains(*key));
            gone.cloned().collect()
        };
        gone.iter().for_each(|key| self.remove(key));
        self.done.send_replace(true);
    }

    fn event(&mut self, kind: EventKind, object: &RawValue) {
        let Some((key, object)) = self.parse(object) else {
            return;
        };
        match kind {
            EventKind::Deleted => self.remove(&key),
            EventKind::Added | EventKind::Modified => self.put(&key, object),
        }
    }

    fn position(&mut self, _: &str) {}

    fn failed(&mut self, error: &Error) {
        tracing::warn!(path = self.path, %error, "cannot be followed; trying again");
    }
}
