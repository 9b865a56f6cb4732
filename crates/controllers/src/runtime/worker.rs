//! The loop that takes keys from a queue and reconciles them, and isolates failures of one from the
//! others.
//!
//! Main functions: [`work`], [`contain`] for panics, [`pause`] for failures.

use super::{
    queue::{Merge, Queue},
    seats::Seats,
};
use futures::FutureExt as _;
use std::{any::Any, fmt::Debug, hash::Hash, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// Maximum delay before a failed reconcile is retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Takes ready keys, as far as there are seats, until the queue of `controller` is closed; running
/// reconciles are finished. A key whose reconcile panics is reconciled again after a pause.
pub async fn work<C, K, R, F>(
    controller: Arc<C>,
    queue: fn(&C) -> &Queue<K, R>,
    seats: Seats,
    reconcile: impl Fn(Arc<C>, K, R) -> F + Clone + Send + 'static,
) where
    C: Send + Sync + 'static,
    K: Clone + Eq + Hash + Debug + Send + Sync + 'static,
    R: Merge + Copy + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let mut running = JoinSet::new();
    loop {
        let seat = seats.take().await;
        let Some((key, reason)) = queue(&controller).take().await else {
            break;
        };
        let (controller, reconcile) = (controller.clone(), reconcile.clone());
        running.spawn(async move {
            let reconcile = reconcile(controller.clone(), key.clone(), reason);
            if let Err(panic) = contain(seat.with(reconcile)).await {
                tracing::error!(?key, panic, "a reconcile panicked");
                queue(&controller).add_after(key.clone(), reason, LONGEST_PAUSE);
            }
            queue(&controller).done(&key);
        });
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

/// The result of a reconcile, or the message of its panic.
pub async fn contain<T>(reconcile: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(reconcile)
        .catch_unwind()
        .await
        .map_err(|panic| message(panic.as_ref()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// The delay after this many failures in a row.
pub fn pause(failures: u32) -> Duration {
    Duration::from_millis(250)
        .saturating_mul(1 << failures.min(8))
        .min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_panic_is_a_message() {
        assert_eq!(contain(async { 1 }).await, Ok(1));
        let failed = contain(async { panic!("at {}", "last") }).await;
        assert_eq!(failed, Err::<(), _>("at last".to_owned()));
    }

    struct Loop {
        queue: Queue<&'static str, Once>,
        begun: AtomicU32,
    }

    #[derive(Clone, Copy)]
    struct Once;

    impl Merge for Once {
        fn merge(&mut self, _: Self) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_panicked_is_reconciled_again() {
        let own = Arc::new(Loop {
            queue: Queue::default(),
            begun: AtomicU32::new(0),
        });
        own.queue.add("a", Once);
        let reconcile = |own: Arc<Loop>, _, _| async move {
            if own.begun.fetch_add(1, Ordering::Relaxed) == 0 {
                panic!("the first time");
            }
            own.queue.close();
        };
        let time = own.clone();
        let keeper = tokio::spawn(async move { time.queue.keep_time().await });
        let work = work(own.clone(), |own| &own.queue, Seats::new(1), reconcile);
        let ended = tokio::time::timeout(LONGEST_PAUSE * 2, work).await;
        assert!(ended.is_ok(), "the key was never taken again");
        assert_eq!(own.begun.load(Ordering::Relaxed), 2);
        keeper.abort();
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let seconds = [0, 1, 2, 6, 7, 100].map(|failures| pause(failures).as_secs_f64());
        assert_eq!(seconds, [0.25, 0.5, 1.0, 16.0, 30.0, 30.0]);
    }
}
