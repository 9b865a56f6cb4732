//! All objects of one kind in memory, kept current by a watch: for our own records, which are few.
//!
//! Main type: [`Store`], of [`Record`]s. The response to a write is stored immediately, so a reader
//! never sees less than it wrote.

use super::{
    feed::Feed,
    lean::Raw,
    record::{NamespacedName, Readable, Record, RecordChange},
};
use crate::{
    FEED_LENGTH,
    cache::ChangeType,
    connect::Cluster,
    discovery::Kind,
    error::Error,
    request::{Call, JSON_PATCH, MERGE_PATCH},
    watch::{Target, follow},
};
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError, RwLock},
};
use tiphys_apimachinery::{
    Object,
    patch::{
        PatchError,
        difference::{self, Difference},
    },
};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often a read-modify-write is tried again after a conflict.
const CONFLICTS: usize = 20;

/// All records of one kind. Cheap to clone; the watches end with the last clone.
pub struct Store<T> {
    shared: Arc<Shared<T>>,
    /// Ends the watches; replaced when other namespaces are watched.
    guard: Arc<Mutex<Option<DropGuard>>>,
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            guard: self.guard.clone(),
        }
    }
}

/// Which namespaces' records are kept, of those that are watched.
pub(super) type Admits = Arc<dyn Fn(&str) -> bool + Send + Sync>;

pub(super) struct Shared<T> {
    cluster: Cluster,
    pub kind: Kind,
    /// Other parts of the process may listen to the watches.
    is_tapped: bool,
    /// Which objects of the kind are watched; empty: all.
    field_selector: String,
    pub records: RwLock<Records<T>>,
    changes: broadcast::Sender<Arc<RecordChange<T>>>,
    /// Collections not listed yet, and the last list's error.
    pub state: watch::Sender<State>,
}

pub(super) struct Records<T> {
    pub all: BTreeMap<NamespacedName, Arc<Record<T>>>,
    /// Everything up to this resourceVersion has been seen.
    pub position: u64,
    /// The resourceVersions of responses that were stored and that no watch has reported yet.
    pub answered: HashSet<u64>,
    admits: Admits,
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Increases when other namespaces are watched; reports of older feeds are then ignored.
    pub generation: u64,
    pub pending: usize,
    pub error: Option<Error>,
}

impl<T: Readable> Store<T> {
    /// Starts watching the kind in these namespaces (none: all of them), and lets others listen if
    /// `is_tapped`. Must be called inside a tokio runtime.
    pub fn start(cluster: Cluster, kind: Kind, namespaces: &[String], is_tapped: bool) -> Self {
        Self::selected(cluster, kind, namespaces, is_tapped, String::new())
    }

    /// As [`Self::start`], with the objects of one name alone.
    pub(super) fn named(cluster: Cluster, kind: Kind, namespaces: &[String], name: &str) -> Self {
        let selector = format!("metadata.name={name}");
        Self::selected(cluster, kind, namespaces, false, selector)
    }

    fn selected(
        cluster: Cluster,
        kind: Kind,
        namespaces: &[String],
        is_tapped: bool,
        field_selector: String,
    ) -> Self {
        let all: Admits = Arc::new(|_| true);
        let shared = Arc::new(Shared {
            kind,
            is_tapped,
            field_selector,
            records: RwLock::new(Records {
                all: BTreeMap::new(),
                position: 0,
                answered: HashSet::new(),
                admits: all.clone(),
            }),
            changes: broadcast::Sender::new(FEED_LENGTH),
            state: watch::Sender::new(State::default()),
            cluster,
        });
        let store = Self {
            shared,
            guard: Arc::default(),
        };
        store.follow(namespaces, all);
        store
    }

    /// Watches these namespaces (none: all of them) instead, and keeps only what `admits` accepts;
    /// known records in other namespaces are dropped. The store is ready again once they are
    /// listed. Must be called inside a tokio runtime.
    pub(super) fn follow(&self, namespaces: &[String], admits: Admits) {
        let shared = &self.shared;
        let everywhere = vec![String::new()];
        let namespaces = if namespaces.is_empty() {
            &everywhere
        } else {
            namespaces
        };
        let mut generation = 0;
        shared.state.send_modify(|state| {
            generation = state.generation + 1;
            *state = State {
                generation,
                pending: namespaces.len(),
                error: None,
            };
        });
        shared.keep_only(admits);
        let cancel = CancellationToken::new();
        let lists = Arc::new(Semaphore::new(4));
        for namespace in namespaces {
            let target = Target {
                path: shared.kind.collection_path(namespace),
                field_selector: shared.field_selector.clone(),
                lists: lists.clone(),
                tap: shared.is_tapped.then(|| {
                    shared
                        .cluster
                        .taps()
                        .tap(&shared.kind.collection_path(""), namespace)
                }),
            };
            let feed = Feed {
                shared: Arc::downgrade(shared),
                namespace: namespace.clone(),
                listed: HashSet::new(),
                done: false,
                whole: namespaces.len() == 1,
                generation,
            };
            tokio::spawn(follow(shared.cluster.clone(), target, feed, cancel.clone()));
        }
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.drop_guard());
    }

    /// Waits for the first complete list. Returns a permanent error; others are waited out.
    pub async fn wait_ready(&self) -> Result<(), Error> {
        let mut state = self.shared.state.subscribe();
        let hopeless = |e: &Error| e.is_not_found() || e.is_forbidden() || e.code() == Some(401);
        let state = state
            .wait_for(|s| s.pending == 0 || s.error.as_ref().is_some_and(hopeless))
            .await;
        match state.map(|s| s.clone()) {
            Ok(State { pending: 0, .. }) | Err(_) => Ok(()),
            Ok(State { error, .. }) => error.map_or(Ok(()), Err),
        }
    }

    /// Whether the records are complete: they were listed, and no watch has failed since.
    pub fn is_current(&self) -> bool {
        let state = self.shared.state.borrow();
        state.pending == 0 && state.error.is_none()
    }

    /// Why the records may be out of date; None while they are watched.
    pub fn problem(&self) -> Option<String> {
        let state = self.shared.state.borrow();
        let kind = &self.shared.kind.resource;
        match &state.error {
            Some(error) => Some(format!("{kind} cannot be followed: {error}")),
            None => (state.pending > 0).then(|| format!("{kind} are not listed yet")),
        }
    }

    fn read<R>(&self, f: impl FnOnce(&Records<T>) -> R) -> R {
        f(&self
            .shared
            .records
            .read()
            .unwrap_or_else(PoisonError::into_inner))
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Record<T>>> {
        self.shared.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// By namespace and name.
    pub fn list(&self) -> Vec<Arc<Record<T>>> {
        self.read(|r| r.all.values().cloned().collect())
    }

    pub fn len(&self) -> usize {
        self.read(|r| r.all.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The resourceVersion up to which everything was seen.
    pub fn position(&self) -> u64 {
        self.read(|r| r.position)
    }

    /// Changes from now on. A receiver that falls behind gets `Lagged` and should list again.
    pub fn changes(&self) -> broadcast::Receiver<Arc<RecordChange<T>>> {
        self.shared.changes.subscribe()
    }

    /// Reads from the server itself; `None`: it does not exist.
    pub async fn fetch(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Record<T>>>, Error> {
        // The API server would answer with the list.
        if name.is_empty() {
            return Ok(None);
        }
        match self
            .send(Call::get(self.path(namespace, name)), namespace, name)
            .await
        {
            Ok(record) => Ok(Some(record)),
            Err(e) if self.is_gone(&e, namespace, name) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn path(&self, namespace: &str, name: &str) -> String {
        self.shared.kind.object_path(namespace, name)
    }

    /// Sends a request whose response is one record, and stores the response.
    async fn send(&self, call: Call, namespace: &str, name: &str) -> Result<Arc<Record<T>>, Error> {
        let known = self.get(namespace, name);
        let answer = self.shared.cluster.http().send(&call).await;
        let answer = answer.inspect_err(|e| self.learn_gone(e, known.as_deref()))?;
        let text = std::str::from_utf8(&answer).map_err(|e| Error::decode(call.what(), e))?;
        // The watch is often faster than the response, which then need not be read again. What was
        // known before the request can only be the response if that changed nothing.
        let told = self.get(namespace, name);
        let is_new = |told: &Arc<Record<T>>| known.as_ref().is_none_or(|k| !Arc::ptr_eq(k, told));
        if let Some(told) = told.filter(|told| is_new(told) && told.is_state(text)) {
            return Ok(told);
        }
        let raw = Raw::read(text).map_err(|e| Error::decode(call.what(), e))?;
        let is_gone = raw.kind() == "Status";
        let before = self.shared.get(&raw.key());
        let record = Arc::new(Record::new(raw, &self.shared.kind).after(before.as_deref()));
        if is_gone {
            // The write removed the last finalizer of a record being deleted: the server has
            // nothing to return any more.
            let key = (namespace.to_owned(), name.to_owned());
            let last = self.get(namespace, name).unwrap_or(record);
            self.shared.remove(&key, None, 0);
            return Ok(last);
        }
        self.shared.take(record.clone(), true);
        Ok(record)
    }

    /// Forgets a record that the API server does not have, though the watch has not told it: who
    /// decides by it would try the same write again. A namespace or a definition that is missing
    /// says nothing about the record.
    fn learn_gone(&self, error: &Error, known: Option<&Record<T>>) {
        let (Some(known), Error::Api(error)) = (known, error) else {
            return;
        };
        let is_it = error.about.as_ref().is_some_and(|about| {
            about.kind == self.shared.kind.resource && about.name == known.meta.name
        });
        if error.code == 404 && is_it {
            self.shared.forget(known);
        }
    }

    /// Whether an error of a write says that this record does not exist. A definition that is not
    /// served for a moment is "not found" as well, and says nothing about the record.
    pub fn is_gone(&self, error: &Error, namespace: &str, name: &str) -> bool {
        error.is_not_found() && self.get(namespace, name).is_none()
    }

    pub async fn create(&self, object: &Object) -> Result<Arc<Record<T>>, Error> {
        self.create_json(object.namespace(), object.name(), bytes_of(object))
            .await
    }

    /// Creates an object that its caller has written as JSON.
    pub async fn create_json(
        &self,
        namespace: &str,
        name: &str,
        json: Vec<u8>,
    ) -> Result<Arc<Record<T>>, Error> {
        let call = Call::new(Method::POST, self.shared.kind.collection_path(namespace));
        let call = self.managed(call).with_body(crate::request::JSON, json);
        self.send(call, namespace, name).await
    }

    /// Replaces the object; its resourceVersion, if set, must be the server's.
    pub async fn update(&self, object: &Object) -> Result<Arc<Record<T>>, Error> {
        let call = Call::new(Method::PUT, self.path(object.namespace(), object.name()));
        self.send(
            self.managed(call)
                .with_body(crate::request::JSON, bytes_of(object)),
            object.namespace(),
            object.name(),
        )
        .await
    }

    pub async fn merge_patch(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Record<T>>, Error> {
        self.patch(namespace, name, MERGE_PATCH, patch).await
    }

    /// The same for the status, where that is a subresource.
    pub async fn merge_patch_status(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Record<T>>, Error> {
        let path = format!("{}/status", self.path(namespace, name));
        let call = self.managed(Call::new(Method::PATCH, path));
        let call = call.with_body(MERGE_PATCH, bytes_of(patch));
        self.send(call, namespace, name).await
    }

    pub async fn json_patch(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Record<T>>, Error> {
        self.patch(namespace, name, JSON_PATCH, patch).await
    }

    async fn patch(
        &self,
        namespace: &str,
        name: &str,
        content_type: &'static str,
        patch: &Value,
    ) -> Result<Arc<Record<T>>, Error> {
        let call = Call::new(Method::PATCH, self.path(namespace, name));
        let call = self.managed(call).with_body(content_type, bytes_of(patch));
        self.send(call, namespace, name).await
    }

    /// Writes the difference between `from`, which was parsed from `record`, and `to`, unless
    /// someone else has written meanwhile; unknown fields stay. A merge patch would drop null
    /// values of maps, so if there are new ones a JSON patch is used. `None`: there is nothing to
    /// write.
    pub async fn write(
        &self,
        record: &Record<T>,
        from: &Value,
        to: &Value,
    ) -> Result<Option<Arc<Record<T>>>, Error> {
        let (namespace, name) = (&record.meta.namespace, &record.meta.name);
        let invalid = |problem: String| Error::Invalid {
            key: format!("{namespace}/{name}"),
            problem,
        };
        let object = || {
            record
                .object()
                .map(Object::into_value)
                .map_err(|e| PatchError::Invalid(e.to_string()))
        };
        let version = json!(record.meta.resource_version);
        match difference::between(from, to, object).map_err(|e| invalid(e.to_string()))? {
            Difference::Merge(patch)
                if patch.as_object().is_some_and(serde_json::Map::is_empty) =>
            {
                Ok(None)
            }
            Difference::Merge(mut patch) => {
                patch["metadata"]["resourceVersion"] = version;
                self.merge_patch(namespace, name, &patch).await.map(Some)
            }
            Difference::Operations(mut operations) => {
                // Not as a `test`: that fails as an invalid request, this as a conflict.
                operations.push(
                    json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
                );
                self.json_patch(namespace, name, &operations.into())
                    .await
                    .map(Some)
            }
        }
    }

    fn managed(&self, call: Call) -> Call {
        call.query("fieldManager", super::FIELD_MANAGER)
    }

    /// Reads, changes and writes; retries on conflict. The change is made to the latest known
    /// state; returning `false` means nothing is to be written. Only the difference is written, see
    /// [`Self::write`].
    pub async fn modify(
        &self,
        namespace: &str,
        name: &str,
        mut change: impl FnMut(&mut Object) -> Result<bool, Error>,
    ) -> Result<Arc<Record<T>>, Error> {
        let mut fresh = self.get(namespace, name);
        for attempt in 0.. {
            let record = match fresh.take() {
                Some(record) => record,
                None => {
                    self.send(Call::get(self.path(namespace, name)), namespace, name)
                        .await?
                }
            };
            let before = record.object()?;
            let mut changed = before.clone();
            if !change(&mut changed)? {
                return Ok(record);
            }
            match self
                .write(&record, &before.into_value(), &changed.into_value())
                .await
            {
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {
                    tokio::time::sleep(crate::request::backoff(
                        std::time::Duration::from_millis(4),
                        u32::try_from(attempt).unwrap_or(10).min(6),
                    ))
                    .await;
                }
                written => return written.map(|written| written.unwrap_or(record)),
            }
        }
        unreachable!("the loop ends by returning")
    }

    /// Deletes; `uid` and `propagation` may be empty. The record leaves the store when the watch
    /// reports its deletion.
    pub async fn delete(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        propagation: &str,
    ) -> Result<(), Error> {
        let mut options = json!({});
        if !uid.is_empty() {
            options["preconditions"] = json!({"uid": uid});
        }
        if !propagation.is_empty() {
            options["propagationPolicy"] = propagation.into();
        }
        self.delete_with(namespace, name, options).await
    }

    /// Deletes a record if it is unchanged since it was read.
    ///
    /// # Errors
    /// A conflict: someone has written it since.
    pub async fn delete_as_seen(&self, record: &Record<T>) -> Result<(), Error> {
        let meta = &record.meta;
        let unchanged = json!({"uid": meta.uid, "resourceVersion": meta.resource_version});
        let options = json!({"preconditions": unchanged});
        self.delete_with(&meta.namespace, &meta.name, options).await
    }

    async fn delete_with(
        &self,
        namespace: &str,
        name: &str,
        mut options: Value,
    ) -> Result<(), Error> {
        // The API server would delete the whole collection.
        if name.is_empty() {
            return Err(Error::Invalid {
                key: "metadata.name".into(),
                problem: "resource name may not be empty".into(),
            });
        }
        (options["apiVersion"], options["kind"]) = ("v1".into(), "DeleteOptions".into());
        let call = Call::new(Method::DELETE, self.path(namespace, name))
            .with_body(crate::request::JSON, options.to_string());
        let before = self.get(namespace, name);
        let answer = self.shared.cluster.http().send(&call).await;
        let answer = answer.inspect_err(|e| self.learn_gone(e, before.as_deref()))?;
        // Whoever deleted it must not be shown it any more, though the watch has not told it yet.
        let Some(raw) = std::str::from_utf8(&answer)
            .ok()
            .and_then(|text| Raw::read(text).ok())
        else {
            return Ok(());
        };
        if raw.kind() != "Status" {
            // Finalizers keep it.
            let record = Record::new(raw, &self.shared.kind).after(before.as_deref());
            self.shared.take(Arc::new(record), true);
        } else if let Some(before) = before {
            self.shared.forget(&before);
        }
        Ok(())
    }
}

/// Without the detour through `Display`, which formats it in pieces.
fn bytes_of(json: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(json).expect("a JSON map can be written as JSON")
}

impl<T: Readable> Shared<T> {
    /// From now on keeps only what `admits` accepts; the position for other namespaces is unknown.
    fn keep_only(&self, admits: Admits) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let (kept, gone) = std::mem::take(&mut records.all)
            .into_iter()
            .partition(|(key, _)| admits(&key.0));
        *records = Records {
            all: kept,
            position: 0,
            answered: HashSet::new(),
            admits,
        };
        let gone: BTreeMap<NamespacedName, Arc<Record<T>>> = gone;
        for record in gone.into_values() {
            let _ = self.changes.send(Arc::new(RecordChange {
                change_type: ChangeType::Deleted,
                before: Some(record.clone()),
                record,
            }));
        }
    }

    pub(super) fn get(&self, key: &NamespacedName) -> Option<Arc<Record<T>>> {
        self.records
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .all
            .get(key)
            .cloned()
    }

    /// Stores a newer state of a record. `write`: it is the response to our own request, which the
    /// watch may have overtaken.
    pub(super) fn take(&self, record: Arc<Record<T>>, write: bool) {
        let key = record.key();
        let version = record.version();
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        if !(records.admits)(&key.0) {
            return;
        }
        let before = records.all.get(&key).cloned();
        // The response to the removal of the last finalizer still has the previous resourceVersion.
        let ends = record.meta.is_deleting && record.meta.finalizers.is_empty();
        let stale = match &before {
            Some(b) if write && ends => b.meta.uid != record.meta.uid,
            Some(b) => version != 0 && version <= b.version(),
            None => write && version != 0 && version <= records.position,
        };
        if stale {
            return;
        }
        if write && ends {
            // It has no finalizers any more: the server has deleted it.
            records.all.remove(&key);
        } else {
            records.all.insert(key, record.clone());
            if write {
                records.answered.insert(version);
            }
        }
        // Sent under the lock, so that the feed has the store's order.
        let change_type = match (write && ends, &before) {
            (true, _) => ChangeType::Deleted,
            (false, None) => ChangeType::Added,
            (false, Some(_)) => ChangeType::Modified,
        };
        let _ = self.changes.send(Arc::new(RecordChange {
            change_type,
            record,
            before,
        }));
    }

    /// Removes an object that is gone, unless it has been created again.
    fn forget(&self, gone: &Record<T>) {
        let key = gone.key();
        let same = |r: &Arc<Record<T>>| r.meta.uid == gone.meta.uid;
        if self.get(&key).as_ref().is_some_and(same) {
            self.remove(&key, None, 0);
        }
    }

    pub(super) fn remove(&self, key: &NamespacedName, last: Option<Record<T>>, version: u64) {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let newer = |r: &Arc<Record<T>>| version != 0 && r.version() > version;
        if records.all.get(key).is_none_or(newer) {
            return;
        }
        if let Some(before) = records.all.remove(key) {
            let record = last.map_or_else(|| before.clone(), Arc::new);
            let _ = self.changes.send(Arc::new(RecordChange {
                change_type: ChangeType::Deleted,
                record,
                before: Some(before),
            }));
        }
    }
}
