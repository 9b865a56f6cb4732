//! The connections of a server: how many there are, from which peers, and which has waited longest.
//! Main type: [`Connections`].

use crate::Limits;
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Refused connections are logged as a warning at most once in this many seconds.
const WARN_EVERY: u64 = 60;

/// A cheap handle.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    table: Mutex<Table>,
    begun: Instant,
    /// The time of the last warning, in seconds after `begun`, plus one.
    warned: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    all: BTreeMap<u64, Arc<Place>>,
    peers: HashMap<IpAddr, usize>,
}

/// One connection in the table.
#[derive(Debug)]
pub struct Place {
    pub id: u64,
    pub peer: IpAddr,
    /// Cancelled to close the connection and make room for another.
    pub end: CancellationToken,
    state: Mutex<State>,
}

/// The side that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The client must send the rest of the body.
    Receiving,
    /// We are computing, or have nothing to report.
    Ours,
    /// Part of the response is ready, and the client has not read it yet.
    Sending,
}

#[derive(Debug)]
struct State {
    requests: BTreeMap<u64, (Turn, Instant)>,
    next: u64,
    /// Since when there has been no open request.
    idle: Instant,
    /// When the client last accepted data.
    taken: Instant,
}

impl Connections {
    /// Caps the total to leave file descriptors for everything else.
    pub fn new(limits: Limits) -> Self {
        let files = rlimit::Resource::NOFILE.get_soft().unwrap_or(1024);
        let quarter = usize::try_from(files / 4).unwrap_or(usize::MAX).max(1);
        let limits = Limits {
            total: limits.total.clamp(1, quarter),
            per_peer: limits.per_peer.max(1),
            ..limits
        };
        let shared = Shared {
            limits,
            table: Mutex::default(),
            begun: Instant::now(),
            warned: AtomicU64::new(0),
        };
        Self(Arc::new(shared))
    }

    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.lock().all.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place in the table, closing a waiting connection if necessary; `None` if all
    /// connections that could make room are in use.
    pub(crate) fn admit(&self, peer: IpAddr) -> Option<Seat> {
        let (mut table, limits) = (self.lock(), self.0.limits);
        if table
            .peers
            .get(&peer)
            .is_some_and(|count| *count >= limits.per_peer)
            && !table.end_one(Some(peer))
        {
            return None;
        }
        if table.all.len() >= limits.total && !table.end_one(None) {
            return None;
        }
        let now = Instant::now();
        let state = State {
            requests: BTreeMap::new(),
            next: 0,
            idle: now,
            taken: now,
        };
        table.next += 1;
        let place = Arc::new(Place {
            id: table.next,
            peer,
            end: CancellationToken::new(),
            state: Mutex::new(state),
        });
        table.all.insert(place.id, place.clone());
        *table.peers.entry(peer).or_default() += 1;
        Some(Seat {
            connections: self.clone(),
            place,
        })
    }

    /// Closes the connection that has waited longest, if any is waiting.
    pub(crate) fn make_room(&self) -> bool {
        self.lock().end_one(None)
    }

    pub(crate) fn refused(&self, peer: IpAddr) {
        let now = self.0.begun.elapsed().as_secs() + 1;
        let last = self.0.warned.load(Ordering::Relaxed);
        if last != 0 && now < last + WARN_EVERY {
            tracing::debug!(%peer, "a connection was refused");
        } else {
            self.0.warned.store(now, Ordering::Relaxed);
            tracing::warn!(%peer, open = self.open(), "a connection was refused: all that are allowed are in use");
        }
    }
}

impl Table {
    /// Closes the longest waiting connection. Its place is free immediately; its file descriptor is
    /// closed once its task notices.
    fn end_one(&mut self, peer: Option<IpAddr>) -> bool {
        let of_peer = self
            .all
            .values()
            .filter(|place| peer.is_none_or(|peer| place.peer == peer));
        let longest = of_peer
            .filter_map(|place| Some((place.waiting_since()?, place.id)))
            .min();
        let Some((_, id)) = longest else { return false };
        if let Some(place) = self.remove(id) {
            tracing::debug!(peer = %place.peer, "a connection that was not in use makes room");
            place.end.cancel();
        }
        true
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Place>> {
        let place = self.all.remove(&id)?;
        if let Some(count) = self.peers.get_mut(&place.peer) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&place.peer);
            }
        }
        Some(place)
    }
}

/// Frees the place when the connection ends.
pub(crate) struct Seat {
    connections: Connections,
    pub place: Arc<Place>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.lock().remove(self.place.id);
    }
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new request and returns its number.
    pub fn begin(&self, turn: Turn) -> u64 {
        let mut state = self.state();
        state.next += 1;
        let id = state.next;
        state.requests.insert(id, (turn, Instant::now()));
        id
    }

    pub fn set(&self, request: u64, turn: Turn) {
        if let Some(known) = self.state().requests.get_mut(&request)
            && known.0 != turn
        {
            *known = (turn, Instant::now());
        }
    }

    /// Records that another part of the response is ready; its waiting time starts now, even if the
    /// client was slow with the previous part.
    pub fn sending(&self, request: u64) {
        if let Some(known) = self.state().requests.get_mut(&request) {
            *known = (Turn::Sending, Instant::now());
        }
    }

    pub fn finish(&self, request: u64) {
        let mut state = self.state();
        state.requests.remove(&request);
        if state.requests.is_empty() {
            state.idle = Instant::now();
        }
    }

    pub fn took(&self) {
        self.state().taken = Instant::now();
    }

    /// Since when the connection has been waiting only for the client.
    fn waiting_since(&self) -> Option<Instant> {
        let state = self.state();
        if state.requests.is_empty() {
            return Some(state.idle);
        }
        let ours = state.requests.values().any(|(turn, _)| *turn == Turn::Ours);
        if ours {
            None
        } else {
            state.requests.values().map(|(_, since)| *since).max()
        }
    }

    /// When the client exceeds a limit if nothing changes. Bodies have their own limit.
    pub fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let state = self.state();
        if state.requests.is_empty() {
            let limit = if state.next == 0 {
                limits.headers
            } else {
                limits.idle
            };
            return Some(state.idle.max(state.taken) + limit);
        }
        let sending = state
            .requests
            .values()
            .filter(|(turn, _)| *turn == Turn::Sending)
            .map(|(_, since)| *since)
            .min();
        sending.map(|since| since.max(state.taken) + limits.stalled)
    }
}
