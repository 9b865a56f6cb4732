//! Runs work whose duration depends on external input away from the threads that answer requests.
//! Main function: [`run`].

use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

/// One permit per processor: running more at a time would not finish sooner, and would use more
/// memory.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism();
    Arc::new(Semaphore::new(processors.map_or(2, |n| n.get().max(2))))
});

/// Messages of this size or more are encoded and filtered with [`run`].
pub const LARGE: usize = 256 * 1024;

/// Waits for a permit, then runs the work. A panic in it is propagated to the caller.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    run_in(&PLACES, work).await
}

async fn run_in<T: Send + 'static>(
    places: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let place = Arc::clone(places).acquire_owned().await.ok();
    let work = move || {
        // Work goes on where nobody waits for it any more, and takes its place as long.
        let _place = place;
        work()
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(e) => match e.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, so nobody waits for the result.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_keeps_its_place() {
        let places = Arc::new(Semaphore::new(1));
        let (begin, has_begun) = tokio::sync::oneshot::channel();
        let (end, is_to_end) = std::sync::mpsc::channel::<()>();
        let work = run_in(&places, move || {
            let _ = begin.send(());
            is_to_end.recv().is_ok()
        });
        tokio::select! {
            _ = work => panic!("nothing has ended it"),
            begun = has_begun => begun.expect("it has begun"),
        }
        assert_eq!(places.available_permits(), 0);
        drop(end);
        assert!(places.acquire().await.is_ok());
    }

    #[tokio::test]
    async fn long_work_leaves_the_thread_to_others() {
        let (send, receive) = std::sync::mpsc::channel();
        // The runtime has one thread, so the work can only finish if the other future runs
        // meanwhile.
        let work = run(move || receive.recv().is_ok());
        let other = async move { send.send(()).is_ok() };
        assert_eq!(tokio::join!(work, other), (true, true));
    }
}
