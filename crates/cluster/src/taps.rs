//! Shares the events of one watch with other parts of this process that follow the same collection:
//! our own records are also objects of a cluster, and the server need not send them twice.
//!
//! Main types: [`Taps`] of a connection, and [`Tap`], the sending side of a shared watch.

use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::broadcast;

/// Events that a listener may fall behind before it has to list.
const LENGTH: usize = 1024;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

#[derive(Clone)]
pub enum Heard {
    Event(EventKind, Arc<RawValue>),
    /// Events may be missing here: the watch starts after a new list.
    Anew,
}

/// Path of the collection in all namespaces, and the watched namespace (empty: all).
type Place = (String, String);

/// The shared watches of a connection.
#[derive(Clone, Default)]
pub struct Taps {
    open: Arc<Mutex<BTreeMap<Place, Wire>>>,
}

#[derive(Clone)]
struct Wire {
    sender: broadcast::Sender<Heard>,
    /// All sent events have at most this resourceVersion.
    position: Arc<AtomicU64>,
}

/// The receiving side of a tap.
pub struct Listener {
    pub heard: broadcast::Receiver<Heard>,
    position: Arc<AtomicU64>,
}

impl Listener {
    /// Events sent before this listener existed are included in lists of this resourceVersion or
    /// later.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }
}

/// The sending side of a tap. Listeners see the end when it is dropped.
pub struct Tap {
    taps: Taps,
    place: Place,
    wire: Wire,
}

impl Taps {
    fn open(&self) -> MutexGuard<'_, BTreeMap<Place, Wire>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a watch that is about to start. If two watch the same collection and namespace,
    /// the later one is used.
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

    /// Events from now on, if there is such a watch. The listener has to list the collection first,
    /// and again on [`Heard::Anew`].
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
            // An error only means that there are no listeners.
            let _ = self
                .wire
                .sender
                .send(Heard::Event(kind, object.to_owned().into()));
        }
    }

    /// The watch starts after a list of this resourceVersion.
    pub fn anew(&self, resource_version: &str) {
        self.reach(resource_version);
        let _ = self.wire.sender.send(Heard::Anew);
    }

    fn reach(&self, resource_version: &str) {
        // A version that is not a number cannot be compared, and is not waited for.
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
