//! What every reconcile loop needs: a queue of keys.

mod queue;

pub use queue::{Merge, Queue};
