//! Tools for tests of the whole program: the program itself, Git repositories, a client for its
//! interfaces, a control plane.
//!
//! Main types: [`Tiphys`] (the running program), [`Repo`], [`Api`], [`ControlPlane`]. It knows the
//! program only from outside: none of our crates is imported here. Everything panics with a clear
//! message when a test cannot continue.

mod api;
pub mod archive;
pub mod browser;
pub mod charts;
mod control_plane;
pub mod dex;
pub mod differential;
pub mod docker_registry;
pub mod git_server;
mod gpg;
pub mod nats_server;
pub mod postgres;
mod program;
pub mod redis;
pub mod registry;
mod repo;
mod rng;
pub mod scenario;
mod shared;
pub mod signed;
mod skip;
pub mod sshd;

pub use api::{Answer, Api, TransportError, apps_path, namespaced};
pub use control_plane::{ControlPlane, Running};
pub use gpg::{Gpg, ssh_keygen};
pub use program::{Ended, Options, Tiphys, output_of};
pub use repo::Repo;
pub use rng::{Rng, first_seed};
pub use shared::shared;
pub use skip::skip;

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// How long a test waits for something. Generous: only a failing test waits this long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until the result is `Ok`; the last `Err` says what was missing.
///
/// # Panics
/// On timeout.
#[track_caller]
pub fn eventually<T>(
    timeout: Duration,
    what: &str,
    mut ask: impl FnMut() -> Result<T, String>,
) -> T {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_millis(20);
    loop {
        match ask() {
            Ok(value) => return value,
            Err(why) if Instant::now() >= deadline => {
                panic!("not within {timeout:?}: {what}: {why}")
            }
            Err(_) => std::thread::sleep(pause),
        }
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}

/// A port of the loopback address that is currently free, a different one for each call. It is
/// below the system's ephemeral ports (from 32768), one of which could be taken before the test
/// listens on it.
///
/// # Panics
/// If all are taken.
pub fn free_port() -> u16 {
    const FIRST: u32 = 21_000;
    const NUMBER: u32 = 10_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // Concurrent processes start at different ports.
    let begin = std::process::id().wrapping_mul(97);
    let next = || FIRST + begin.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed)) % NUMBER;
    let ports = (0..NUMBER).filter_map(|_| u16::try_from(next()).ok());
    let mut free = ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().expect("a free port")
}
