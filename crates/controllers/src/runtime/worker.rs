//! The loop that takes keys from a queue and reconciles them, and isolates failures of one from the
//! others.
//!
//! Main functions: [`work`], [`contain`] for panics, [`pause`] for failures.

use super::{
    queue::{Merge, Queue},
    seats::Seats,
};
use futures::FutureExt as _;
use std::{any::Any, hash::Hash, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// Maximum delay before a failed reconcile is retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Takes ready keys, as far as there are seats, until the queue of `controller` is closed; running
/// reconciles are finished.
pub async fn work<C, K, R, F>(
    controller: Arc<C>,
    queue: fn(&C) -> &Queue<K, R>,
    seats: Seats,
    reconcile: impl Fn(Arc<C>, K, R) -> F + Clone + Send + 'static,
) where
    C: Send + Sync + 'static,
    K: Clone + Eq + Hash + Send + Sync + 'static,
    R: Merge + Send + 'static,
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
            seat.with(reconcile(controller.clone(), key.clone(), reason))
                .await;
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
        .unwrap_or_else(|| "a panic without words".to_owned())
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

    #[tokio::test]
    async fn a_panic_is_a_message() {
        assert_eq!(contain(async { 1 }).await, Ok(1));
        let failed = contain(async { panic!("at {}", "last") }).await;
        assert_eq!(failed, Err::<(), _>("at last".to_owned()));
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let seconds = [0, 1, 2, 6, 7, 100].map(|failures| pause(failures).as_secs_f64());
        assert_eq!(seconds, [0.25, 0.5, 1.0, 16.0, 30.0, 30.0]);
    }
}
