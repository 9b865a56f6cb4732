//! The limits of a run: steps, allocated bytes, and saved state. No clock is needed.
//!
//! Main types: [`Limits`] and [`Budget`].

use super::{
    fault::{Fault, ended},
    value::{MAX_DEPTH, Val},
};

/// The limits for one run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps of the machine; an expensive function counts as many.
    pub steps: u64,
    /// Bytes of all values created, including those already freed.
    pub bytes: usize,
    /// Calls, bindings and alternatives saved at a time.
    pub kept: usize,
    /// Number of results.
    pub outputs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 4_000_000,
            bytes: 24 << 20,
            kept: 150_000,
            outputs: 100_000,
        }
    }
}

pub const TOO_DEEP: &str = "the expression makes a value that is nested too deeply";

/// Maximum weight of a value.
const MAX_WEIGHT: u64 = 16 << 20;

pub struct Budget {
    limits: Limits,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    pub fn steps_left(&self) -> u64 {
        self.limits.steps
    }

    pub fn steps(&mut self, steps: u64) -> Result<(), Fault> {
        match self.limits.steps.checked_sub(steps) {
            Some(left) => {
                self.limits.steps = left;
                Ok(())
            }
            None => ended("the expression takes too many steps"),
        }
    }

    pub fn bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.limits.bytes.checked_sub(bytes) {
            Some(left) => {
                self.limits.bytes = left;
                Ok(())
            }
            None => ended("the expression makes too much data"),
        }
    }

    pub fn output(&mut self) -> Result<(), Fault> {
        match self.limits.outputs.checked_sub(1) {
            Some(left) => {
                self.limits.outputs = left;
                Ok(())
            }
            None => ended("the expression gives too many results"),
        }
    }

    pub fn kept(&self, kept: usize) -> Result<(), Fault> {
        if kept > self.limits.kept {
            ended("the expression calls itself too deeply")
        } else {
            Ok(())
        }
    }

    /// Charges a traversal of the whole value.
    pub fn walk(&mut self, value: &Val) -> Result<(), Fault> {
        self.steps(value.weight() / 128)
    }

    /// Charges a new value, and refuses one that is too deep or too large.
    pub fn made(&mut self, value: &Val) -> Result<(), Fault> {
        self.made_from(value)?;
        self.bytes(value.size())
    }

    /// The same for a value derived from one that was already charged.
    pub fn made_from(&self, value: &Val) -> Result<(), Fault> {
        if value.depth() > MAX_DEPTH {
            return ended(TOO_DEEP);
        }
        if value.weight() > MAX_WEIGHT {
            return ended("the expression makes too much data");
        }
        Ok(())
    }
}
