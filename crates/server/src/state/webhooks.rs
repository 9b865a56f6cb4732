//! What requests to `/api/webhook` share: how much of their content is held, and how many of their
//! refreshes run, at a time. Main type: [`Webhooks`].

use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of pushes whose Applications are being refreshed.
const QUEUE: usize = 10_000;
/// Maximum number of concurrent refresh requests.
const REFRESHES: usize = 20;

pub(crate) struct Webhooks {
    /// A permit for each byte of the payloads that are held.
    pub memory: Arc<Semaphore>,
    pub queue: Arc<Semaphore>,
    pub refreshes: Semaphore,
}

impl Webhooks {
    /// Maximum total size of the payloads held at a time, and so the maximum size of one.
    pub const MEMORY: usize = 128 << 20;
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            memory: Arc::new(Semaphore::new(Self::MEMORY)),
            queue: Arc::new(Semaphore::new(QUEUE)),
            refreshes: Semaphore::new(REFRESHES),
        }
    }
}
