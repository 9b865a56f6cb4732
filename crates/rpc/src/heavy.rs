//! Work that outside input can make long, away from the threads that answer requests. Main
//! function: [`run`].

use std::sync::LazyLock;
use tokio::sync::Semaphore;

/// As many as there are processors: more at a time would not be ready sooner, and would take
/// memory.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    Semaphore::new(std::thread::available_parallelism().map_or(2, |n| n.get().max(2)))
});

/// Messages from this size on are written and cut elsewhere.
pub const LARGE: usize = 256 * 1024;

/// Waits for a place, then for the work. A panic in it goes on in the caller, as if the work had
/// been done there.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let place = PLACES.acquire().await.ok();
    let done = tokio::task::spawn_blocking(work).await;
    drop(place);
    match done {
        Ok(value) => value,
        Err(e) => match e.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down: nobody waits any more.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn long_work_leaves_the_thread_to_others() {
        let (send, receive) = std::sync::mpsc::channel();
        // On this one thread, the work ends only because what follows it runs meanwhile.
        let work = super::run(move || receive.recv().is_ok());
        let other = async move { send.send(()).is_ok() };
        assert_eq!(tokio::join!(work, other), (true, true));
    }
}
