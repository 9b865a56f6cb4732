//! What users' programs may take of one whole comparison: each has its own limits, but there may be
//! many objects, and many programs.
//!
//! Main type: [`Spending`]. Whoever may write an Application may write jq expressions for any
//! number of objects.

use std::cell::{Cell, RefCell};

/// Steps of jq and Lua that every comparison has, and those for each object.
const STEPS: u64 = 20_000_000;
const STEPS_OF_AN_OBJECT: u64 = 20_000;

/// The steps that are left of a comparison's.
#[derive(Debug)]
pub struct Spending {
    all: u64,
    left: Cell<u64>,
    /// The program for which too few were left.
    refused: RefCell<Option<String>>,
}

impl Spending {
    pub fn new(steps: u64) -> Self {
        Self {
            all: steps,
            left: Cell::new(steps),
            refused: RefCell::default(),
        }
    }

    pub fn of_objects(objects: usize) -> Self {
        Self::new(STEPS + STEPS_OF_AN_OBJECT.saturating_mul(objects as u64))
    }

    /// What a program may have that would have `wanted` by itself.
    pub fn grant(&self, wanted: u64) -> u64 {
        wanted.min(self.left.get())
    }

    pub fn spend(&self, steps: u64) {
        self.left.set(self.left.get().saturating_sub(steps));
    }

    /// Notes that a program could not be run to its end; what else there is of this comparison will
    /// not be run either.
    pub fn refuse(&self, program: impl FnOnce() -> String) -> String {
        self.left.set(0);
        let text = format!(
            "{}: the programs of this comparison take more than {} steps together",
            program(),
            self.all
        );
        self.refused.replace(Some(text.clone()));
        text
    }

    /// The refusal since this was asked last.
    pub fn take_refusal(&self) -> Option<String> {
        self.refused.take()
    }
}
