//! A sandbox for users' Lua scripts: Lua 5.1 as Argo CD's scripts expect it, without access to the
//! machine and with strict limits.
//!
//! Main function: [`run`]. It must not know anything about Kubernetes, does not read the clock by
//! itself and does no IO: scripts have no `io`, processes, files or bytecode, and only the time
//! functions of `os`. Each thread keeps one virtual machine with its compiled scripts; each run
//! gets its own globals.

mod call;
mod chunk;
mod convert;
mod format;
mod library;
mod meter;
mod number;
mod os;
mod pattern;
mod strings;
mod worker;

pub use number::text as number_text;
pub use pattern::{Capture, Found, Pattern, PatternError};

use jiff::Timestamp;
use serde_json::Value;
use std::{fmt, time::Duration};

/// Returns the current time.
pub type Clock = fn() -> Timestamp;

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instructions, plus a charge by library functions for the bytes they process. This is the
    /// main limit, because it does not depend on the machine.
    pub steps: u64,
    /// Memory of the whole virtual machine in bytes.
    pub memory: usize,
    /// Wall-clock time, because a few instructions can move a lot of memory.
    pub time: Duration,
    pub clock: Clock,
}

impl Limits {
    /// Ten million steps, 64 MiB, one second.
    pub const fn new(clock: Clock) -> Self {
        Self {
            steps: 10_000_000,
            memory: 64 << 20,
            time: Duration::from_secs(1),
            clock,
        }
    }
}

/// A script and its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub script: &'a str,
    /// Also provide `coroutine`, `math` and `string`, in addition to the base library, `table` and
    /// `os`.
    pub open_libs: bool,
    /// Becomes the global `obj`.
    pub object: &'a Value,
    /// Becomes the global `actionParams`.
    pub parameters: &'a [(String, String)],
}

/// The last return value of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    Nil,
    /// A table, as JSON. An empty table becomes an empty list, because Lua does not distinguish
    /// them.
    Table(Value),
    /// Any other value, by the name of its type.
    Other(&'static str),
}

/// The limit that a script reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    #[error("the script was stopped: it takes too many steps")]
    Steps,
    #[error("the script was stopped: it needs too much memory")]
    Memory,
    #[error("context deadline exceeded")]
    Time,
}

/// The error of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LuaError {
    /// It could not be parsed, failed, or returned a value that is not JSON; Lua's message, with
    /// the line.
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

/// Runs a script and returns the steps it took, too.
pub fn run_counted(run: &Run<'_>, limits: &Limits) -> (Result<Returned, LuaError>, u64) {
    worker::run(run, limits)
}
