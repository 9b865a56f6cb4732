//! A stored object: its JSON bytes, ready to be sent, and the few facts that lists, watches and
//! garbage collection need.
//!
//! Main type: [`Stored`]. The parsed tree is several times larger than the bytes, so it is parsed
//! on demand and only shared as long as someone holds it.

use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use tiphys_apimachinery::Object;

/// The facts that are known of an object without parsing it.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub revision: u64,
    pub labels: BTreeMap<String, String>,
    /// The uids of its owners.
    pub owners: Vec<String>,
    pub deleting: bool,
}

/// One version of one object, immutable.
#[derive(Debug)]
pub struct Stored {
    pub meta: Meta,
    pub bytes: Bytes,
    /// The form that a real server would store, if it has fewer fields: new objects, and those
    /// written in a version other than the storage version, are stored without the defaults that
    /// are filled in when they are read. The next write stores the defaults, even if it changes
    /// nothing else.
    pub bare: Option<Bytes>,
    parsed: Mutex<Weak<Object>>,
}

impl Stored {
    /// Serialises `object`, whose resourceVersion has been set to `revision`.
    pub fn new(object: &Arc<Object>, revision: u64) -> Self {
        Self {
            meta: Meta::of(object, revision),
            bytes: bytes_of(object),
            bare: None,
            parsed: Mutex::new(Arc::downgrade(object)),
        }
    }

    /// From bytes that were stored earlier.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, serde_json::Error> {
        let object: Object = serde_json::from_slice(&bytes)?;
        let revision = object.resource_version().parse().unwrap_or(0);
        Ok(Self {
            meta: Meta::of(&object, revision),
            bytes,
            bare: None,
            parsed: Mutex::new(Weak::new()),
        })
    }

    /// Whether the form that a real server would store is `bare`; none if it would store all of it.
    pub fn is_as_bare(&self, bare: Option<&Object>) -> bool {
        match (&self.bare, bare) {
            (None, None) => true,
            (Some(kept), Some(bare)) => {
                serde_json::from_slice::<Object>(kept).is_ok_and(|kept| kept == *bare)
            }
            _ => false,
        }
    }

    pub fn object(&self) -> Arc<Object> {
        let mut slot = self
            .parsed
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(object) = slot.upgrade() {
            return object;
        }
        let object: Arc<Object> = Arc::new(
            serde_json::from_slice(&self.bytes)
                .expect("these bytes were made by serialising an object"),
        );
        *slot = Arc::downgrade(&object);
        object
    }
}

/// Boxed, because a grown vector has up to twice the size it needs, for as long as the object
/// lives.
pub fn bytes_of(object: &Object) -> Bytes {
    serde_json::to_vec(object)
        .expect("a JSON tree serialises")
        .into_boxed_slice()
        .into()
}

impl Meta {
    pub fn of(object: &Object, revision: u64) -> Self {
        let owners = object.metadata("ownerReferences").and_then(Value::as_array);
        let uids = owners.map(|list| {
            list.iter()
                .filter_map(|o| o["uid"].as_str().map(str::to_owned))
                .collect()
        });
        Self {
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            revision,
            labels: object.labels(),
            owners: uids.unwrap_or_default(),
            deleting: object.deletion_timestamp().is_some(),
        }
    }
}

/// The key of an object inside its table. It sorts like etcd's keys, so lists have the order of a
/// real server.
pub fn table_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}
