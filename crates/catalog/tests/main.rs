//! The integration tests of this crate, in one program.

mod postgres;
mod reports;
mod sync;
mod world;
