//! Runs work whose duration depends on external input away from the threads that answer requests.
//! Main function: [`run`].

use std::sync::LazyLock;
use tokio::sync::Semaphore;

/// One permit per processor: running more at a time would not finish sooner, and would use more
/// memory.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    Semaphore::new(std::thread::available_parallelism().map_or(2, |n| n.get().max(2)))
});

/// Messages of this size or more are encoded and filtered with [`run`].
pub const LARGE: usize = 256 * 1024;

/// Waits for a permit, then runs the work. A panic in it is propagated to the caller.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let place = PLACES.acquire().await.ok();
    let done = tokio::task::spawn_blocking(work).await;
    drop(place);
    match done {
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
    #[tokio::test]
    async fn long_work_leaves_the_thread_to_others() {
        let (send, receive) = std::sync::mpsc::channel();
        // The runtime has one thread, so the work can only finish if the other future runs
        // meanwhile.
        let work = super::run(move || receive.recv().is_ok());
        let other = async move { send.send(()).is_ok() };
        assert_eq!(tokio::join!(work, other), (true, true));
    }
}
