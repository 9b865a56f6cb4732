//! The integration tests of this crate, in one program.

mod addresses;
mod asset_syncer;
mod bad_input;
mod postgres;
mod registries;
mod release;
mod reports;
mod schemas;
mod search;
mod sync;
mod world;
