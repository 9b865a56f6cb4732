//! What one render may cost.
//!
//! Main type: [`Budget`]. The executor charges steps, output and frames; functions that loop or build values charge for themselves.

use super::error::Error;
use std::cell::Cell;

/// The limits of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, loop rounds, and what functions charge.
    pub steps: u64,
    /// Bytes written, those into the results of functions included.
    pub output: u64,
    /// Bytes of values that functions made, freed or not, and of the frames of templates that wait for others.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 200_000_000, output: 256 << 20, memory: 512 << 20 }
    }
}

/// What is left of the limits.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    output: Cell<u64>,
    memory: Cell<u64>,
    limits: Limits,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Self { steps: Cell::new(limits.steps), output: Cell::new(limits.output), memory: Cell::new(limits.memory), limits }
    }

    /// Charges work.
    pub fn steps(&self, count: u64) -> Result<(), Error> {
        take(&self.steps, count).ok_or_else(|| Error::limit(format!("rendering takes more than {} steps", self.limits.steps)))
    }

    /// Charges output.
    pub fn output(&self, bytes: usize) -> Result<(), Error> {
        take(&self.output, bytes as u64).ok_or_else(|| Error::limit(format!("rendering writes more than {} bytes", self.limits.output)))
    }

    /// How much may still be written.
    pub(super) fn output_left(&self) -> usize {
        usize::try_from(self.output.get()).unwrap_or(usize::MAX)
    }

    /// Charges memory, before it is taken.
    pub fn memory(&self, bytes: usize) -> Result<(), Error> {
        take(&self.memory, bytes as u64)
            .ok_or_else(|| Error::limit(format!("rendering takes more than {} bytes of memory", self.limits.memory)))
    }

    /// Gives back what was charged for something that is gone for certain.
    pub(super) fn release(&self, bytes: usize) {
        self.memory.set(self.memory.get().saturating_add(bytes as u64));
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
