//! The limits of one render.
//!
//! Main type: [`Budget`]. The executor charges steps, output and frames; functions that loop or
//! build values charge for themselves.

use super::error::Error;
use std::{cell::Cell, fmt, sync::Arc, time::Duration};

/// Steps between two checks of the deadline.
const LOOK: u64 = 1 << 14;

/// The deadline of a render. Steps are the main limit, but they take different times on different
/// machines.
#[derive(Clone)]
pub struct Deadline {
    /// For the message.
    pub limit: Duration,
    /// How to raise it, for the message; empty if there is no way.
    pub hint: &'static str,
    pub passed: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Deadline {
    /// # Errors
    /// The time is over, and what can be done about it.
    pub fn check(&self) -> Result<(), String> {
        if !(self.passed)() {
            return Ok(());
        }
        Err(format!(
            "rendering takes more than {} seconds{}",
            self.limit.as_secs(),
            self.hint
        ))
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deadline").field(&self.limit).finish()
    }
}

/// The limits of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, loop rounds, and what functions charge.
    pub steps: u64,
    /// Bytes written, those into the results of functions included.
    pub output: u64,
    /// Bytes of values that functions created, freed or not, and of the frames of waiting
    /// templates.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 200_000_000,
            output: 256 << 20,
            memory: 512 << 20,
        }
    }
}

/// The remaining limits.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    output: Cell<u64>,
    memory: Cell<u64>,
    limits: Limits,
    deadline: Option<Deadline>,
    until_look: Cell<u64>,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        let (steps, output, memory) = (
            Cell::new(limits.steps),
            Cell::new(limits.output),
            Cell::new(limits.memory),
        );
        Self {
            steps,
            output,
            memory,
            limits,
            deadline: None,
            until_look: Cell::new(0),
        }
    }

    /// The same with a deadline.
    pub fn until(self, deadline: Option<Deadline>) -> Self {
        Self { deadline, ..self }
    }

    /// Charges work.
    #[inline]
    pub fn steps(&self, count: u64) -> Result<(), Error> {
        take(&self.steps, count).ok_or_else(|| {
            Error::limit(format!(
                "rendering takes more than {} steps",
                self.limits.steps
            ))
        })?;
        match (take(&self.until_look, count), &self.deadline) {
            (None, Some(deadline)) => {
                self.until_look.set(LOOK);
                deadline.check().map_err(Error::limit)
            }
            _ => Ok(()),
        }
    }

    /// Charges output.
    #[inline]
    pub fn output(&self, bytes: usize) -> Result<(), Error> {
        take(&self.output, bytes as u64).ok_or_else(|| {
            Error::limit(format!(
                "rendering writes more than {} bytes",
                self.limits.output
            ))
        })
    }

    /// How much may still be written.
    pub(super) fn output_left(&self) -> usize {
        usize::try_from(self.output.get()).unwrap_or(usize::MAX)
    }

    /// Charges memory, before it is taken.
    pub fn memory(&self, bytes: usize) -> Result<(), Error> {
        take(&self.memory, bytes as u64).ok_or_else(|| {
            Error::limit(format!(
                "rendering takes more than {} bytes of memory",
                self.limits.memory
            ))
        })
    }

    /// Returns what was charged for something that is certainly freed.
    pub(super) fn release(&self, bytes: usize) {
        self.memory
            .set(self.memory.get().saturating_add(bytes as u64));
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

fn take(left: &Cell<u64>, count: u64) -> Option<()> {
    left.set(left.get().checked_sub(count)?);
    Some(())
}
