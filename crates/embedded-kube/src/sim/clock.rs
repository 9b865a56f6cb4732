//! The clock of the simulated cluster.
//!
//! Main type: [`Clock`]. [`SystemClock`] is the real time; [`VirtualClock`] stands still until a
//! test advances it.

use jiff::{SignedDuration, Timestamp};
use std::{future::Future, pin::Pin, time::Duration};
use tokio::sync::watch;

/// Gives the time and waits for a time.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Completes when `now()` is `until` or later. May be dropped before that.
    fn sleep_until(&self, until: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The computer's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep_until(&self, until: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // A clock change (time zone daemon, suspended laptop) must not prolong the wait: check
            // again at least once a minute.
            loop {
                let left = until.duration_since(self.now());
                if left <= SignedDuration::ZERO {
                    return;
                }
                tokio::time::sleep(left.unsigned_abs().min(Duration::from_secs(60))).await;
            }
        })
    }
}

/// A clock that only moves when a test advances it. Clones share the time.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    time: watch::Sender<Timestamp>,
}

impl VirtualClock {
    pub fn starting_at(time: Timestamp) -> Self {
        Self {
            time: watch::Sender::new(time),
        }
    }

    /// Advances the time and wakes everything that waited for it.
    pub fn advance(&self, by: Duration) {
        self.time
            .send_modify(|t| *t = t.saturating_add(by).unwrap_or(Timestamp::MAX));
    }

    /// Advances the time to `time`; never moves it back.
    pub fn advance_to(&self, time: Timestamp) {
        self.time.send_modify(|t| *t = (*t).max(time));
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        *self.time.borrow()
    }

    fn sleep_until(&self, until: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut time = self.time.subscribe();
        Box::pin(async move {
            // The sender lives as long as self, so waiting cannot end early.
            let _ = time.wait_for(|t| *t >= until).await;
        })
    }
}
