//! The signals that end `tiphys up`. Main types: [`Signals`] and [`Interrupted`].

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT (Ctrl-C) and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// `--once` was ended by a signal before everything was Synced and Healthy.
#[derive(Debug, thiserror::Error)]
#[error("{name} before everything was Synced and Healthy{left}")]
pub struct Interrupted {
    number: u8,
    name: &'static str,
    left: String,
}

/// Which one was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    number: u8,
    name: &'static str,
}

impl Signals {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub async fn came(&mut self) -> Came {
        tokio::select! {
            _ = self.interrupt.recv() => Came { number: 2, name: "SIGINT" },
            _ = self.terminate.recv() => Came { number: 15, name: "SIGTERM" },
        }
    }
}

impl Came {
    /// `left`: one line for each Application that was not Synced and Healthy.
    pub fn before(self, left: &str) -> Interrupted {
        let left = if left.is_empty() {
            String::new()
        } else {
            format!(":\n{left}")
        };
        Interrupted {
            number: self.number,
            name: self.name,
            left,
        }
    }
}

impl Interrupted {
    /// The exit code that shells use for a process ended by a signal.
    pub fn exit_code(&self) -> u8 {
        128 + self.number
    }
}
