//! What probes were told, for the log. Main type: [`Told`].

use std::sync::{Mutex, PoisonError};

/// What the log was told last: probes ask again and again. Empty: that all is well.
#[derive(Default)]
pub(crate) struct Told(Mutex<String>);

impl Told {
    /// Logs it if it is something new.
    pub(crate) fn tell(&self, why: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == why {
            return;
        }
        if why.is_empty() {
            tracing::info!(component = "healthcheck", "Health checks succeed again");
        } else {
            tracing::error!(
                component = "healthcheck",
                error = why,
                "Error serving health check request"
            );
        }
        why.clone_into(&mut told);
    }
}
