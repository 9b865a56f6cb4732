//! Which faults are injected on the wire.

use super::gate::Gate;
use std::time::Duration;
use tiphys_testkit::Rng;

/// Whether a write was executed before the process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    Before,
    After,
}

/// What happens to an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is never seen, and the watch fails because its history is gone.
    Dropped,
    /// It is seen only as part of the object's next event.
    Merged,
    /// The connection breaks in the middle of it.
    Broken,
}

/// The faults that are injected.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The writes at which the process dies, counted over all processes.
    pub deaths: Vec<(usize, Moment)>,
    /// The write that fails with a conflict.
    pub conflict: Option<usize>,
    /// Which event meets which fate.
    pub event: Option<(usize, Fate)>,
    /// No watch ever tells of the deletion of an object with this name.
    pub lost_deletion: Option<&'static str>,
    /// Watches lag this many events behind.
    pub lag: usize,
    /// A restarted process first sees the lists whose path contains this as its predecessor saw
    /// them.
    pub old_lists: Option<&'static str>,
    pub errors: Option<Errors>,
    /// Requests that are always refused: a part of `METHOD path` (with `$`: its end), and the
    /// response.
    pub refusals: Vec<(String, u16, String)>,
    /// API groups whose server nobody reaches: discovery still lists those that end like this, but
    /// not what is in them.
    pub stale: Option<&'static str>,
    /// Requests that arrive with a delay: a part of `METHOD path`, and the delay.
    pub slow: Vec<(String, Duration)>,
    /// Requests that wait until the test lets them through: a part of `METHOD path` (with `$`: its
    /// end), and what they wait for.
    pub gates: Vec<(String, Gate)>,
    /// Larger writes, in bytes, are refused as too large.
    pub largest: Option<usize>,
}

/// Every request meets a fault with this probability.
#[derive(Clone, Debug)]
pub struct Errors {
    pub rng: Rng,
    pub percent: u64,
}
