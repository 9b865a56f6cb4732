//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod clusters;
mod common;
mod connect;
mod dynamic;
mod faults;
mod kube_client;
mod leases;
mod scenarios;
mod scopes;
#[path = "common/step.rs"]
mod step;
mod taps;
