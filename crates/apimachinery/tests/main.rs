//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod properties;
mod schema_source;
