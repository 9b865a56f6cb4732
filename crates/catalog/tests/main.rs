//! The integration tests of this crate, in one program.

mod reports;
mod sync;
mod world;
