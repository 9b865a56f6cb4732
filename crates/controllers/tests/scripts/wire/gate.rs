//! Where requests wait until a test lets them through. Main type: [`Gate`].

use std::sync::Arc;
use tokio::sync::watch;

/// It opens once, and stays open. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gate {
    has_request: Arc<watch::Sender<bool>>,
    is_open: Arc<watch::Sender<bool>>,
}

impl Gate {
    pub fn closed() -> Self {
        let no = || Arc::new(watch::Sender::new(false));
        Self {
            has_request: no(),
            is_open: no(),
        }
    }

    /// Returns when a request waits here, or has waited.
    pub async fn reached(&self) {
        true_of(&self.has_request).await;
    }

    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        self.has_request.send_replace(true);
        true_of(&self.is_open).await;
    }
}

async fn true_of(sender: &watch::Sender<bool>) {
    let mut now = sender.subscribe();
    let _ = now.wait_for(|is_so| *is_so).await;
}
