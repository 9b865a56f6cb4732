//! The integration tests of this crate, in one binary: linking many takes longer than running most
//! of the tests.

mod access;
mod applications;
mod auth;
mod certificates;
mod common;
mod connections;
mod gpgkeys;
mod notifications;
mod permissions;
mod policy;
mod remote;
mod secrets;
mod sessions;
mod templates;
mod traces;
mod webhook;
