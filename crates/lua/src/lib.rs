//! Users' Lua in a box: Lua 5.1 as Argo CD's scripts expect it, that cannot see the machine and
//! cannot outlast its limits.
//!
//! Main function: [`run`]. It must not know any Kubernetes word, reads no clock of its own and does
//! no IO: there is no `io`, no process, no file, no bytecode, and of `os` only the time. Each
//! thread keeps one machine with its compiled scripts; each run gets globals of its own.

mod convert;
mod format;
mod library;
mod meter;
mod os;
mod pattern;
mod strings;
mod worker;

pub use pattern::{Capture, Found, Pattern, PatternError};

use jiff::Timestamp;
use serde_json::Value;
use std::{fmt, time::Duration};

/// Where the time comes from.
pub type Clock = fn() -> Timestamp;

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instructions, plus what library functions count for the bytes they handle. The main bound:
    /// it does not depend on the machine.
    pub steps: u64,
    /// Bytes, of the whole machine.
    pub memory: usize,
    /// Wall time. Few instructions can move much memory; this bounds them.
    pub time: Duration,
    pub clock: Clock,
}

impl Limits {
    /// Ten million steps, 64 MiB, a second.
    pub const fn new(clock: Clock) -> Self {
        Self {
            steps: 10_000_000,
            memory: 64 << 20,
            time: Duration::from_secs(1),
            clock,
        }
    }
}

/// A script and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub script: &'a str,
    /// `coroutine`, `math` and `string` besides the base, `table` and `os`.
    pub open_libs: bool,
    /// Becomes the global `obj`.
    pub object: &'a Value,
    /// Becomes the global `actionParams`.
    pub parameters: &'a [(String, String)],
}

/// What a script returned last.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    Nil,
    /// A table, as JSON. An empty one is an empty list: Lua cannot tell.
    Table(Value),
    /// Anything else, by the name of its type.
    Other(&'static str),
}

/// Which limit a script reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    #[error("the script was stopped: it takes too many steps")]
    Steps,
    #[error("the script was stopped: it needs too much memory")]
    Memory,
    #[error("context deadline exceeded")]
    Time,
}

/// Why a script has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LuaError {
    /// It does not parse, failed, or returned what is no JSON; in Lua's words, with the line.
    #[error("{0}")]
    Script(String),
    #[error(transparent)]
    Limit(#[from] Limit),
}

impl fmt::Display for Returned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nil => "nil",
            Self::Table(_) => "table",
            Self::Other(name) => name,
        })
    }
}

/// Runs a script.
pub fn run(run: &Run<'_>, limits: &Limits) -> Result<Returned, LuaError> {
    worker::run(run, limits).0
}

/// Runs a script; with the steps that it took.
pub fn run_counted(run: &Run<'_>, limits: &Limits) -> (Result<Returned, LuaError>, u64) {
    worker::run(run, limits)
}
