//! The budget that users' programs share in one comparison: each program has its own limits, but
//! there may be many objects and many programs.
//!
//! Main type: [`Spending`]. Anyone who can edit an Application can write jq expressions for any
//! number of objects.

use std::cell::{Cell, RefCell};

/// Steps of jq and Lua that every comparison has, plus those for each object.
const STEPS: u64 = 20_000_000;
const STEPS_OF_AN_OBJECT: u64 = 20_000;

/// The remaining steps of a comparison.
#[derive(Debug)]
pub struct Spending {
    all: u64,
    left: Cell<u64>,
    /// The program for which the remaining steps did not suffice.
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

    /// The steps granted to a program whose own limit is `wanted`.
    pub fn grant(&self, wanted: u64) -> u64 {
        wanted.min(self.left.get())
    }

    pub fn spend(&self, steps: u64) {
        self.left.set(self.left.get().saturating_sub(steps));
    }

    /// Records that a program could not finish; the remaining programs of this comparison will not
    /// run either.
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

    /// The refusal since the last call.
    pub fn take_refusal(&self) -> Option<String> {
        self.refused.take()
    }
}
