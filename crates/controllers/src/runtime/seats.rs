//! Limits concurrent work, without counting work that waits for a remote server.
//!
//! Main type: [`Seats`]; main function: [`standing`]. There are few workers, and a Git server that
//! accepts connections but never responds would otherwise occupy one until the timeout.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A response that arrives sooner is waited for in the seat, because giving it up is not worth it.
const SOON: Duration = Duration::from_millis(250);

tokio::task_local! {
    static SEAT: Arc<Seat>;
}

/// The seats.
#[derive(Clone)]
pub struct Seats(Arc<Semaphore>);

/// One seat, occupied or not.
pub struct Seat {
    seats: Seats,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Seats {
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Waits for a seat.
    pub async fn take(&self) -> Arc<Seat> {
        Arc::new(Seat {
            seats: self.clone(),
            permit: Mutex::new(self.permit().await),
        })
    }

    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.0.clone().acquire_owned().await.ok()
    }
}

impl Seat {
    /// Runs work that occupies this seat.
    pub async fn with<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        SEAT.scope(self, work).await
    }

    fn put(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}

/// Waits for a remote response; if it takes long, others use the seat meanwhile.
pub async fn standing<T>(answer: impl Future<Output = T>) -> T {
    let Ok(seat) = SEAT.try_with(Arc::clone) else {
        return answer.await;
    };
    let mut answer = std::pin::pin!(answer);
    if let Ok(answer) = tokio::time::timeout(SOON, answer.as_mut()).await {
        return answer;
    }
    seat.put(None);
    let answer = answer.await;
    seat.put(seat.seats.permit().await);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test(start_paused = true)]
    async fn who_waits_lets_others_sit_and_comes_back() {
        let seats = Seats::new(1);
        let (tell, told) = oneshot::channel::<()>();
        let slow = tokio::spawn({
            let seat = seats.take().await;
            seat.with(async move { standing(told).await.is_ok() })
        });
        // There is one seat, and it is free although the first has not got its response.
        let seat = seats.take().await;
        assert!(!slow.is_finished());
        tell.send(()).expect("it waits");
        tokio::task::yield_now().await;
        assert!(!slow.is_finished(), "it sits down again first");
        drop(seat);
        assert!(slow.await.expect("no panic"));
        drop(seats.take().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_answer_keeps_the_seat() {
        let seats = Seats::new(1);
        let seat = seats.take().await;
        seat.with(async {
            standing(tokio::time::sleep(SOON / 2)).await;
            assert_eq!(seats.0.available_permits(), 0);
        })
        .await;
        assert_eq!(seats.0.available_permits(), 1);
    }

    #[tokio::test]
    async fn work_without_a_seat_waits_as_it_is() {
        assert_eq!(standing(async { 7 }).await, 7);
    }
}
