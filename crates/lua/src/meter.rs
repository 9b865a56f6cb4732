//! The remaining budget of a run. Main type: [`Meter`].

use crate::{Clock, Limit, Limits};
use jiff::{SignedDuration, Timestamp};
use std::cell::Cell;

/// Steps between two checks of the clock.
const LOOK: u64 = 1 << 14;

/// Instructions available for unwinding after a limit was reached, before the error is raised
/// again.
const LEAVING: u32 = 1 << 16;

/// Counts down; once a limit is reached, it stays reached until the next run.
pub(crate) struct Meter {
    steps: Cell<u64>,
    memory: Cell<usize>,
    until_look: Cell<u64>,
    clock: Cell<Clock>,
    now: Cell<Timestamp>,
    deadline: Cell<Timestamp>,
    reached: Cell<Option<Limit>>,
    leaving: Cell<u32>,
}

impl Meter {
    pub fn new(clock: Clock) -> Self {
        let epoch = Cell::new(Timestamp::UNIX_EPOCH);
        let cell = Cell::new(0);
        Self {
            steps: cell.clone(),
            memory: Cell::new(0),
            until_look: cell,
            clock: Cell::new(clock),
            now: epoch.clone(),
            deadline: epoch,
            reached: Cell::new(None),
            leaving: Cell::new(0),
        }
    }

    pub fn start(&self, limits: &Limits) {
        let now = (limits.clock)();
        self.steps.set(limits.steps);
        self.memory.set(limits.memory / 4 * 3);
        self.until_look.set(LOOK);
        self.clock.set(limits.clock);
        self.now.set(now);
        self.deadline.set(
            now.saturating_add(
                SignedDuration::try_from(limits.time).unwrap_or(SignedDuration::MAX),
            )
            .unwrap_or(Timestamp::MAX),
        );
        self.reached.set(None);
        self.leaving.set(0);
    }

    /// The start of the run, which scripts see as the current time.
    pub fn now(&self) -> Timestamp {
        self.now.get()
    }

    pub fn steps_left(&self) -> u64 {
        self.steps.get()
    }

    pub fn reached(&self) -> Option<Limit> {
        self.reached.get()
    }

    pub fn reach(&self, limit: Limit) -> Limit {
        self.reached.set(Some(self.reached.get().unwrap_or(limit)));
        limit
    }

    /// Whether the run is unwinding after a limit: then only the prelude runs, and raising the
    /// error again would only cost time.
    pub fn is_leaving(&self, instructions: u32) -> bool {
        if self.reached.get().is_none() {
            return false;
        }
        let left = self.leaving.get().checked_sub(instructions);
        self.leaving.set(left.unwrap_or(LEAVING));
        left.is_some()
    }

    /// Charges `steps`; work proportional to a number of bytes charges a fraction of it.
    pub fn charge(&self, steps: u64) -> Result<(), Limit> {
        if let Some(limit) = self.reached.get() {
            return Err(limit);
        }
        let Some(left) = self.steps.get().checked_sub(steps) else {
            return Err(self.reach(Limit::Steps));
        };
        self.steps.set(left);
        match self.until_look.get().checked_sub(steps) {
            Some(left) => {
                self.until_look.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Ends the run shortly before the machine's hard memory limit, at which scripts could catch
    /// failed allocations and retry.
    pub fn check_memory(&self, used: usize) -> Result<(), Limit> {
        if used > self.memory.get() {
            Err(self.reach(Limit::Memory))
        } else {
            Ok(())
        }
    }

    /// Maximum size of one value in bytes.
    pub fn memory(&self) -> usize {
        self.memory.get() / 2
    }

    /// Checks the clock.
    pub fn look(&self) -> Result<(), Limit> {
        self.until_look.set(LOOK);
        if self.clock.get()() > self.deadline.get() {
            Err(self.reach(Limit::Time))
        } else {
            Ok(())
        }
    }
}
