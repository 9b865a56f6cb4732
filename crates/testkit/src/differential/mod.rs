//! The differential test: one script of requests, two API servers, and the differences between
//! their responses.
//!
//! A [`Script`] is data. [`play`] runs it against a [`Server`] and returns a [`Transcript`],
//! [`normalise`] replaces what a server generates (uids, times, revisions, addresses), [`compare`]
//! reports the remaining differences. [`generate`] creates scripts, [`shrink`] makes them smaller.
//! Nothing here knows which of the two servers is ours.

pub mod case;
pub mod compare;
pub mod endings;
pub mod generate;
pub mod normalise;
pub mod play;
mod quoted;
pub mod rules;
pub mod script;
pub mod server;
pub mod shrink;

pub use case::Case;
pub use compare::{Difference, differences};
pub use normalise::normalise;
pub use play::{Reply, Transcript, play};
pub use script::{Script, Step};
pub use server::{Remote, Server};
