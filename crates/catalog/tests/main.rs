//! The integration tests of this crate, in one program.

mod postgres;
mod release;
mod reports;
mod sync;
mod world;
