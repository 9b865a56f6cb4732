//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod changes;
mod hosts;
mod integrity;
mod refs;
