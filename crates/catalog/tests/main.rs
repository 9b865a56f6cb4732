//! The integration tests of this crate, in one program.

mod addresses;
mod bad_input;
mod postgres;
mod registries;
mod release;
mod reports;
mod schemas;
mod search;
mod sync;
mod world;
