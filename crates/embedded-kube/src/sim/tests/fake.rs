//! An in-memory store with the API server rules that the controllers rely on.

use super::super::{
    fields::rfc3339,
    kind::Kind,
    store::{Change, ChangeFeed, DeleteRequest, SimStore, StoreError},
};
use jiff::Timestamp;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};
use tiphys_apimachinery::Object;

type Id = (Kind, String, String);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<Id, Arc<Object>>,
    version: u64,
    writes: usize,
    now: Timestamp,
    feeds: Vec<Arc<Mutex<VecDeque<Change>>>>,
    /// The error for creating a pod, if that is to fail.
    refuse_pods: Option<String>,
}

#[derive(Clone, Default)]
pub struct FakeStore(Arc<Mutex<Inner>>);

pub struct FakeFeed(Arc<Mutex<VecDeque<Change>>>);

impl ChangeFeed for FakeFeed {
    fn try_next(&mut self) -> Option<Change> {
        self.0.lock().expect("no panics hold it").pop_front()
    }

    async fn next(&mut self) -> Option<Change> {
        self.try_next()
    }
}

fn id(object: &Object) -> Id {
    (
        Kind::of(object).expect("a simulated kind"),
        object.namespace().to_owned(),
        object.name().to_owned(),
    )
}

impl Inner {
    fn put(&mut self, mut object: Object) -> Arc<Object> {
        self.version += 1;
        self.writes += 1;
        object
            .metadata_mut()
            .insert("resourceVersion".into(), self.version.to_string().into());
        if object.deletion_timestamp().is_some()
            && object.finalizers().is_empty()
            && grace(&object) == 0
        {
            return self.drop(&id(&object));
        }
        let object = Arc::new(object);
        self.objects.insert(id(&object), object.clone());
        self.tell(Change::Applied(object.clone()));
        object
    }

    fn drop(&mut self, id: &Id) -> Arc<Object> {
        let object = self.objects.remove(id).expect("it exists");
        self.tell(Change::Deleted(object.clone()));
        // Background garbage collection.
        let mine = |o: &&Arc<Object>| o.owner_references().iter().any(|r| r.uid == object.uid());
        let dependents: Vec<Arc<Object>> = self.objects.values().filter(mine).cloned().collect();
        for dependent in dependents {
            self.delete(&dependent, None);
        }
        object
    }

    fn delete(&mut self, object: &Object, grace_seconds: Option<i64>) {
        let mut marked = object.clone();
        let running = object.kind() == "Pod"
            && !object.str_at("/spec/nodeName").is_empty()
            && !super::super::workload::pods::is_ended(object);
        let grace = if running {
            grace_seconds.unwrap_or(30)
        } else {
            0
        };
        let now = rfc3339(self.now);
        marked
            .metadata_mut()
            .entry("deletionTimestamp")
            .or_insert_with(|| now.into());
        marked
            .metadata_mut()
            .insert("deletionGracePeriodSeconds".into(), grace.into());
        if marked != *object {
            self.put(marked);
        }
    }

    fn tell(&mut self, change: Change) {
        for feed in &self.feeds {
            feed.lock()
                .expect("no panics hold it")
                .push_back(change.clone());
        }
    }
}

fn grace(object: &Object) -> i64 {
    object
        .metadata("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

impl FakeStore {
    pub fn new(now: Timestamp) -> Self {
        let store = Self::default();
        store.lock().now = now;
        store
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panics hold it")
    }

    pub fn now(&self) -> Timestamp {
        self.lock().now
    }

    pub fn set_time(&self, now: Timestamp) {
        self.lock().now = now;
    }

    pub fn writes(&self) -> usize {
        self.lock().writes
    }

    pub fn refuse_pods(&self, message: Option<&str>) {
        self.lock().refuse_pods = message.map(str::to_owned);
    }

    /// The current object, if `object` has its resourceVersion.
    fn current(inner: &Inner, object: &Object) -> Result<Arc<Object>, StoreError> {
        let current = inner
            .objects
            .get(&id(object))
            .cloned()
            .ok_or_else(|| StoreError::NotFound(object.name().to_owned()))?;
        if current.resource_version() != object.resource_version() {
            return Err(StoreError::Conflict(format!(
                "{} has been modified",
                object.name()
            )));
        }
        Ok(current)
    }
}

impl SimStore for FakeStore {
    type Feed = FakeFeed;

    fn get(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Object>>, StoreError> {
        Ok(self
            .lock()
            .objects
            .get(&(kind, namespace.to_owned(), name.to_owned()))
            .cloned())
    }

    fn list(&self, kind: Kind) -> Result<Vec<Arc<Object>>, StoreError> {
        Ok(self
            .lock()
            .objects
            .values()
            .filter(|o| Kind::of(o) == Some(kind))
            .cloned()
            .collect())
    }

    fn count(&self, group: &str, resource: &str, namespace: &str) -> usize {
        let is_one = |o: &&Arc<Object>| {
            Kind::of(o).is_some_and(|k| (k.names().0, k.names().3) == (group, resource))
                && o.namespace() == namespace
        };
        self.lock().objects.values().filter(is_one).count()
    }

    fn create(&self, mut object: Object) -> Result<Arc<Object>, StoreError> {
        let mut inner = self.lock();
        if let (Some(message), "Pod") = (&inner.refuse_pods, object.kind()) {
            return Err(StoreError::Refused(message.clone()));
        }
        if object.name().is_empty() {
            let name = format!("{}{:05}", object.generate_name(), inner.version);
            object.set_name(&name);
        }
        if inner.objects.contains_key(&id(&object)) {
            return Err(StoreError::AlreadyExists(object.name().to_owned()));
        }
        let (uid, now) = (format!("uid-{}", inner.version), rfc3339(inner.now));
        let metadata = object.metadata_mut();
        metadata.insert("uid".into(), uid.into());
        metadata.insert("creationTimestamp".into(), now.into());
        metadata.insert("generation".into(), 1.into());
        if object.kind() != "Pod" {
            object.0.remove("status");
        }
        Ok(inner.put(object))
    }

    fn update(&self, mut object: Object) -> Result<Arc<Object>, StoreError> {
        let mut inner = self.lock();
        let current = Self::current(&inner, &object)?;
        match current.0.get("status") {
            Some(status) => object.0.insert("status".into(), status.clone()),
            None => object.0.remove("status"),
        };
        if object == *current {
            return Ok(current);
        }
        if object.0.get("spec") != current.0.get("spec") {
            let generation = current.generation() + 1;
            object
                .metadata_mut()
                .insert("generation".into(), generation.into());
        }
        Ok(inner.put(object))
    }

    fn update_status(&self, object: Object) -> Result<Arc<Object>, StoreError> {
        let mut inner = self.lock();
        let current = Self::current(&inner, &object)?;
        let mut new = Object::clone(&current);
        new.0.insert(
            "status".into(),
            object.0.get("status").cloned().unwrap_or(Value::Null),
        );
        if let Some(annotations) = object.metadata("annotations") {
            new.metadata_mut()
                .insert("annotations".into(), annotations.clone());
        }
        Ok(if new == *current {
            current
        } else {
            inner.put(new)
        })
    }

    fn delete(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        request: DeleteRequest,
    ) -> Result<Option<Arc<Object>>, StoreError> {
        let mut inner = self.lock();
        let id = (kind, namespace.to_owned(), name.to_owned());
        let current = inner
            .objects
            .get(&id)
            .cloned()
            .ok_or_else(|| StoreError::NotFound(name.to_owned()))?;
        if request.uid.is_some_and(|u| u != current.uid()) {
            return Err(StoreError::Conflict(name.to_owned()));
        }
        inner.delete(&current, request.grace_seconds);
        Ok(inner.objects.get(&id).cloned())
    }

    fn feed(&self) -> FakeFeed {
        let queue = Arc::new(Mutex::new(VecDeque::new()));
        self.lock().feeds.push(queue.clone());
        FakeFeed(queue)
    }
}
