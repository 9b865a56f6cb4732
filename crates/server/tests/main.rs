//! The integration tests of this crate, in one program: linking many takes longer than most tests
//! run.

mod access;
mod applications;
mod auth;
mod common;
mod connections;
mod permissions;
mod remote;
mod secrets;
mod sessions;
mod traces;
mod webhook;
