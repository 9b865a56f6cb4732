//! Changes, which go on while nobody waits for them any more, and for which the end of the server
//! waits. Main type: [`Work`].

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

/// What runs, by numbers of its own.
type Names = Arc<Mutex<BTreeMap<u64, String>>>;

#[derive(Default)]
pub(crate) struct Work {
    tasks: TaskTracker,
    names: Names,
    next: AtomicU64,
    cut: CancellationToken,
}

/// Takes the name away when the work is done, or has panicked.
struct Named(Names, u64);

impl Drop for Named {
    fn drop(&mut self) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&self.1);
    }
}

impl Work {
    /// Runs to its end, even where nobody waits for it any more: what changes something must
    /// neither be cut in half nor go unrecorded because a client's deadline has passed or its
    /// connection is gone. `name` is for the log.
    pub async fn unstopped<T: Send + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.begun(name, work).await {
            Ok(done) => done,
            Err(e) => match e.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, so nobody waits for the result.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// The same for what need not be waited for here.
    pub fn begun<T: Send + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let named = self.named(name);
        let work = async move {
            let done = work.await;
            drop(named);
            done
        };
        self.tasks.spawn(work.in_current_span())
    }

    fn named(&self, name: &str) -> Named {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(number, name.to_owned());
        drop(names);
        Named(Arc::clone(&self.names), number)
    }

    /// What runs, each name once.
    fn running(&self) -> String {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running: Vec<&str> = names.values().map(String::as_str).collect();
        running.sort_unstable();
        running.dedup();
        running.join(", ")
    }

    /// Waits until nothing runs any more. What still runs after this time is cut off, and has the
    /// time of `recording` to say so in the audit log.
    pub async fn end(&self, limit: Duration, recording: Duration) {
        self.tasks.close();
        let running = self.running();
        if !running.is_empty() {
            let seconds = limit.as_secs();
            tracing::info!(
                calls = running,
                seconds,
                "The server ends after these changes"
            );
        }
        let done = tokio::time::timeout(limit, self.tasks.wait()).await;
        if done.is_ok() {
            return;
        }
        let cut = self.running();
        tracing::warn!(
            calls = cut,
            "The server ends before these changes, which may be done in part"
        );
        self.cut.cancel();
        let recorded = tokio::time::timeout(recording, self.tasks.wait()).await;
        if recorded.is_err() {
            let lost = self.running();
            tracing::error!(
                calls = lost,
                "The server ends before these changes were recorded in the audit log"
            );
        }
    }

    /// Returns when what still runs is to stop.
    pub async fn cut_off(&self) {
        self.cut.cancelled().await;
    }
}
