//! What the tests of the whole program are made with: the program itself, Git repositories, a client for its interfaces, a control plane.
//!
//! Main types: [`Tiphys`] (the running program), [`Repo`], [`Api`], [`ControlPlane`]. Knows the program only from outside: none of
//! our crates is imported here. Everything panics with a clear text where a test could not go on.

mod api;
mod control_plane;
pub mod differential;
mod program;
mod repo;
mod rng;
pub mod scenario;
mod skip;

pub use api::{Answer, Api, TransportError, apps_path, namespaced};
pub use control_plane::{ControlPlane, Running};
pub use program::{Ended, Options, Tiphys, output_of};
pub use repo::Repo;
pub use rng::{Rng, first_seed};
pub use skip::skip;

use std::{
    net::{Ipv4Addr, TcpListener},
    time::{Duration, Instant},
};

/// How long a test waits for what must come. Generous: only a failing test waits so long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asks again and again until the answer is `Ok`; the last `Err` says what was missing.
///
/// # Panics
/// When it did not come in time.
#[track_caller]
pub fn eventually<T>(timeout: Duration, what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_millis(20);
    loop {
        match ask() {
            Ok(value) => return value,
            Err(why) if Instant::now() >= deadline => panic!("not within {timeout:?}: {what}: {why}"),
            Err(_) => std::thread::sleep(pause),
        }
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}

/// A port of the loopback address that nobody listens on now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
