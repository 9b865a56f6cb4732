//! What every reconcile loop needs: a queue of keys, and the time.

mod queue;
mod seats;

/// Tells the time. Tests move it together with tokio's, which the queue and every pause go by.
pub type Clock = std::sync::Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

pub use queue::{Merge, Queue};
pub use seats::{Seats, standing};
