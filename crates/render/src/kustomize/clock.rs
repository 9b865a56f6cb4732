//! The time that a build may take.
//!
//! Main type: [`Clock`]. What is done for each patch, object or field counts its steps there: no
//! limit of sizes bounds their product.

use super::fault::Res;
use crate::{RenderError, helm::Deadline};
use std::cell::Cell;

/// Steps between two looks at the deadline.
const LOOK: usize = 64;

/// Counts steps, and fails once the time is over. Without a deadline it never fails.
#[derive(Debug, Default)]
pub(super) struct Clock {
    deadline: Option<Deadline>,
    until_look: Cell<usize>,
}

impl Clock {
    pub fn until(deadline: Option<Deadline>) -> Self {
        Self {
            deadline,
            until_look: Cell::default(),
        }
    }

    /// The deadline, which charts in the build have too.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline.clone()
    }

    /// Fails if the time is over. Afterwards each step fails: some failures only mean that something
    /// else is tried.
    pub fn look(&self) -> Res<()> {
        self.until_look.set(0);
        if let Some(deadline) = &self.deadline {
            // The message does not say where: that differs from build to build.
            deadline.check().map_err(RenderError::Source)?;
        }
        self.until_look.set(LOOK);
        Ok(())
    }

    /// Counts steps, at least one, and looks at the deadline now and then.
    pub fn spend(&self, steps: usize) -> Res<()> {
        match self.until_look.get().checked_sub(steps) {
            Some(left) => {
                self.until_look.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    #[test]
    fn the_deadline_is_looked_at_now_and_then_and_stays_over() {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        let clock = Clock::until(Some(Deadline {
            limit: Duration::from_secs(7),
            hint: "",
            passed: Arc::new(move || counted.fetch_add(1, Ordering::Relaxed) >= 2),
        }));
        for _ in 0..2 * LOOK {
            assert!(clock.spend(1).is_ok());
        }
        assert_eq!(looks.load(Ordering::Relaxed), 2, "most steps only count");
        assert!(clock.spend(2 * LOOK).is_err());
        assert!(clock.spend(1).is_err() && clock.look().is_err());
        assert!(Clock::default().spend(usize::MAX).is_ok());
    }
}
