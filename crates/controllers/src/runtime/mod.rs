//! The parts of a reconcile loop: a work queue, workers that contain failures, feeds of changes,
//! and a clock.

mod feed;
mod queue;
mod seats;
mod turn;
mod worker;

/// The clock. Tests advance it together with tokio's time, which the queue and all delays use.
pub type Clock = std::sync::Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

pub use feed::next;
pub use queue::{Merge, Queue};
pub use seats::{Seats, standing};
pub use turn::{Held, Turn};
pub use worker::{contain, pause, work};
