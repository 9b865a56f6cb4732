//! What one watch hears, for others in this process that follow the same collection: our own
//! records are objects of a cluster, too, and the server need not tell us of them twice.
//!
//! Main types: [`Taps`] of a connection, and [`Tap`], which the watch holds that others listen to.

use crate::watch::EventKind;
use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::broadcast;

/// Events that a listener may be behind before it has to list.
const LENGTH: usize = 1024;

#[derive(Clone)]
pub enum Heard {
    Event(EventKind, Arc<RawValue>),
    /// Events may be missing here: the watch begins after a new list.
    Anew,
}

/// Path of the collection in all namespaces, and the namespace that is watched (empty: all).
type Place = (String, String);

/// The watches of a connection that can be listened to.
#[derive(Clone, Default)]
pub struct Taps {
    open: Arc<Mutex<BTreeMap<Place, Wire>>>,
}

#[derive(Clone)]
struct Wire {
    sender: broadcast::Sender<Heard>,
    /// All that was told has at most this resourceVersion.
    position: Arc<AtomicU64>,
}

/// One end of a tap.
pub struct Listener {
    pub heard: broadcast::Receiver<Heard>,
    position: Arc<AtomicU64>,
}

impl Listener {
    /// What may have been told without being heard is in lists of this resourceVersion or a later
    /// one.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }
}

/// Tells those who listen. They are told that it is over when this is dropped.
pub struct Tap {
    taps: Taps,
    place: Place,
    wire: Wire,
}

impl Taps {
    fn open(&self) -> MutexGuard<'_, BTreeMap<Place, Wire>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch that is about to begin. Of two of one place the later one is listened to.
    pub fn tap(&self, collection: &str, namespace: &str) -> Tap {
        let place = (collection.to_owned(), namespace.to_owned());
        let wire = Wire {
            sender: broadcast::Sender::new(LENGTH),
            position: Arc::default(),
        };
        self.open().insert(place.clone(), wire.clone());
        Tap {
            taps: self.clone(),
            place,
            wire,
        }
    }

    /// The namespaces in which a collection is watched.
    pub fn namespaces(&self, collection: &str) -> Vec<String> {
        self.open()
            .keys()
            .filter(|(path, _)| path == collection)
            .map(|(_, namespace)| namespace.clone())
            .collect()
    }

    /// What is heard from now on, if there is such a watch. Who listens has to list the collection
    /// first, and whenever it is told so.
    pub fn listen(&self, collection: &str, namespace: &str) -> Option<Listener> {
        let listener = |wire: &Wire| Listener {
            heard: wire.sender.subscribe(),
            position: wire.position.clone(),
        };
        self.open()
            .get(&(collection.to_owned(), namespace.to_owned()))
            .map(listener)
    }
}

impl Tap {
    pub fn event(&self, kind: EventKind, object: &RawValue, resource_version: &str) {
        self.reach(resource_version);
        if self.wire.sender.receiver_count() > 0 {
            // Nobody listening any more is fine.
            let _ = self
                .wire
                .sender
                .send(Heard::Event(kind, object.to_owned().into()));
        }
    }

    /// The watch begins after a list of this resourceVersion.
    pub fn anew(&self, resource_version: &str) {
        self.reach(resource_version);
        let _ = self.wire.sender.send(Heard::Anew);
    }

    fn reach(&self, resource_version: &str) {
        // What is no number cannot be compared, and is not waited for.
        self.wire
            .position
            .fetch_max(resource_version.parse().unwrap_or(0), Ordering::Release);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let mut open = self.taps.open();
        if open
            .get(&self.place)
            .is_some_and(|wire| wire.sender.same_channel(&self.wire.sender))
        {
            open.remove(&self.place);
        }
    }
}
