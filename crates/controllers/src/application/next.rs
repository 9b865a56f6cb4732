//! When an Application is reconciled again, and how far a reconcile got with an operation.
//!
//! Main type: [`Next`].

use super::refresh::Reason;
use std::time::Duration;

/// When to reconcile an Application again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// When the Application or one of its resources changes.
    Event,
    /// After this time if nothing happens before.
    After { wait: Duration, reason: Reason },
}

impl Next {
    pub fn after(wait: Duration) -> Self {
        Self::with(Reason::RECONCILE, wait)
    }

    pub fn with(reason: Reason, wait: Duration) -> Self {
        Self::After { wait, reason }
    }

    /// The earlier of two; the first of equal ones.
    #[must_use]
    pub fn or_sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::After { wait: a, .. }, Self::After { wait: b, .. }) if b < a => other,
            (Self::Event, other) => other,
            (own, _) => own,
        }
    }
}

impl From<Option<Duration>> for Next {
    /// `None`: nothing to wait for.
    fn from(wait: Option<Duration>) -> Self {
        wait.map_or(Self::Event, Self::after)
    }
}

/// The state of an operation after one reconcile.
pub enum Driven {
    /// Its result is stored.
    Ended,
    Waits(Next),
}

/// Whether a reconcile works on an operation.
pub enum Begun {
    Active,
    /// There is nothing more to do now.
    Not(Driven),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_reconcile_wins() {
        let at = |seconds| Next::after(Duration::from_secs(seconds));
        for (a, b, sooner) in [
            (at(1), at(2), at(1)),
            (at(2), at(1), at(1)),
            (Next::Event, at(1), at(1)),
            (at(1), Next::Event, at(1)),
            (Next::Event, Next::Event, Next::Event),
        ] {
            assert_eq!(a.or_sooner(b), sooner);
        }
    }
}
