//! The integration tests of this crate, in one binary: linking many takes longer than running most
//! of the tests.

mod hostile;
mod patterns;
mod semantics;
