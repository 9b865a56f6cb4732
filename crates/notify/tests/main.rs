//! The integration tests of this crate, in one program.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

mod awssqs;
mod broken;
mod catalog;
mod messages;
mod recorded;
mod reports;
mod requests;
mod slack;
mod times;
