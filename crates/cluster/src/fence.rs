//! The permission to write that comes with a lease and ends with it.
//!
//! Main type: [`Fence`]. Work done under a fence ([`Fence::scope`]) can still read, but every
//! request that may change something is refused once the fence is closed, and one in flight is
//! cancelled. A closed fence stays closed, even if the same replica gets the lease again, because
//! the work may have missed changes in between.

use crate::error::Error;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

tokio::task_local! {
    static FENCE: Fence;
}

/// How long a lease may be relied on, as far as its holder knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tenure {
    /// Increases whenever the lease is acquired again.
    pub epoch: u64,
    /// `None`: not held.
    pub until: Option<Instant>,
}

impl Tenure {
    pub fn holds(self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// The permission to write. Cheap to clone.
#[derive(Clone)]
pub struct Fence {
    epoch: u64,
    tenure: watch::Receiver<Tenure>,
}

impl Fence {
    /// `None`: the lease is not held now.
    pub(crate) fn of(tenure: watch::Receiver<Tenure>) -> Option<Self> {
        let now = *tenure.borrow();
        now.holds(Instant::now()).then_some(Self {
            epoch: now.epoch,
            tenure,
        })
    }

    pub fn is_open(&self) -> bool {
        let tenure = *self.tenure.borrow();
        tenure.epoch == self.epoch && tenure.holds(Instant::now())
    }

    /// Waits until it is closed.
    pub async fn closed(&self) {
        let mut changes = self.tenure.clone();
        while self.is_open() {
            let until = changes
                .borrow_and_update()
                .until
                .unwrap_or_else(Instant::now);
            tokio::select! {
                () = sleep_until(until) => {}
                changed = changes.changed() => if changed.is_err() {
                    // No one renews the lease any more.
                    sleep_until(until).await;
                },
            }
        }
    }

    /// Runs work under the fence.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        FENCE.scope(self, work).await
    }

    /// The fence that the current task runs under, if any.
    pub fn current() -> Option<Self> {
        FENCE.try_with(Self::clone).ok()
    }

    /// Sends a request that may change something; `what` describes it. The fence is checked on
    /// every poll and not only by a timer: after the whole process was paused, a poll may run
    /// before the timers fire.
    pub(crate) async fn during<T>(
        &self,
        what: impl Fn() -> String,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let (mut closed, mut request) = (pin!(self.closed()), pin!(request));
        poll_fn(|cx| {
            if !self.is_open() || closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(Error::Fenced { what: what() }));
            }
            request.as_mut().poll(cx)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };
    use tokio::{sync::Notify, task::yield_now};

    #[tokio::test]
    async fn a_process_that_was_stopped_takes_no_further_step_of_a_request() {
        let lasts = Duration::from_millis(200);
        let (_held, tenure) = watch::channel(Tenure {
            epoch: 1,
            until: Some(Instant::now() + lasts),
        });
        let fence = Fence::of(tenure).expect("it is held");
        let (steps, go) = (AtomicU32::new(0), Notify::new());
        let request = async {
            steps.fetch_add(1, Ordering::Relaxed);
            go.notified().await;
            steps.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let stop = async {
            yield_now().await;
            // The request can proceed now, and is woken before any timer of the runtime.
            go.notify_one();
            std::thread::sleep(lasts * 2);
        };
        let (sent, ()) = tokio::join!(fence.during(|| "a request".to_owned(), request), stop);
        assert!(matches!(sent, Err(Error::Fenced { .. })));
        assert_eq!(steps.into_inner(), 1, "it had begun, and went no further");
    }
}
