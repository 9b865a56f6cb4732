//! Which faults are injected on the wire.

use std::time::Duration;
use tiphys_testkit::Rng;

/// Whether a write had been done when the process died of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    Before,
    After,
}

/// What becomes of an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is never seen, and the watch is told that its history is gone.
    Dropped,
    /// It is seen only as a part of what the same object became next.
    Merged,
    /// The connection breaks in the middle of it.
    Broken,
}

/// The faults that are injected.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// At which writes, counted over all processes, the process dies.
    pub deaths: Vec<(usize, Moment)>,
    /// The write that is refused because somebody else has written meanwhile.
    pub conflict: Option<usize>,
    /// Which event meets which fate.
    pub event: Option<(usize, Fate)>,
    /// Watches are so many events behind.
    pub lag: usize,
    /// A process that was started again first sees the lists whose path has this part as the one
    /// before it saw them.
    pub old_lists: Option<&'static str>,
    pub errors: Option<Errors>,
    /// Requests that are always refused: a part of `METHOD path` (with `$`: its end), and the
    /// answer.
    pub refusals: Vec<(String, u16, String)>,
    /// Requests that take so long to arrive: a part of `METHOD path`, and the time.
    pub slow: Vec<(String, Duration)>,
    /// Writes of more bytes are refused as too large.
    pub largest: Option<usize>,
}

/// Every request meets a fault with this probability.
#[derive(Clone, Debug)]
pub struct Errors {
    pub rng: Rng,
    pub percent: u64,
}
