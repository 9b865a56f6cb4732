//! Feeds of changes that trigger reconciles.

use tokio::sync::broadcast::{Receiver, error::RecvError};

/// The next value of a feed; `Some(None)` if some were missed, `None` at its end.
pub async fn next<T: Clone>(feed: &mut Receiver<T>) -> Option<Option<T>> {
    match feed.recv().await {
        Ok(value) => Some(Some(value)),
        Err(RecvError::Lagged(_)) => Some(None),
        Err(RecvError::Closed) => None,
    }
}
