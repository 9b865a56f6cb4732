//! What every reconcile loop needs: a work queue, and a clock.

mod queue;
mod seats;

/// The clock. Tests advance it together with tokio's time, which the queue and all delays use.
pub type Clock = std::sync::Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

pub use queue::{Merge, Queue};
pub use seats::{Seats, standing};
