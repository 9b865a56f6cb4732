//! The integration tests of this crate, in one binary: linking many binaries takes longer than most
//! tests run.

mod regressions;
mod server;
mod simulation;
