//! A terminal that does not show what is typed. Main type: [`Hidden`].

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::{
    io,
    process::exit,
    sync::{Mutex, MutexGuard, Once, PoisonError},
};
use tokio::{
    runtime::Handle,
    signal::unix::{SignalKind, signal},
};

/// How the terminal was before it was hidden; `None`: it is not. Who changes the terminal holds the
/// lock.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static WATCHED: Once = Once::new();

/// Disables the echo of the terminal while it exists. A signal must not leave it like that: the
/// user's shell would not show what is typed, either.
pub struct Hidden;

impl Hidden {
    /// `None`: standard input is no terminal.
    pub fn start() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        WATCHED.call_once(|| {
            if let Err(e) = show_before_a_signal_ends_this() {
                tracing::debug!(error = %e, "signals cannot be watched");
            }
        });
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        let mut kept = lock();
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden).ok()?;
        *kept = Some(before);
        Some(Self)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        show(&mut lock());
    }
}

fn lock() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show(before: &mut Option<Termios>) {
    if let Some(before) = before.take() {
        // It fails only if the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// Whoever waits for a line cannot be interrupted otherwise than by ending the process.
fn show_before_a_signal_ends_this() -> io::Result<()> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    runtime.spawn(async move {
        let number = tokio::select! {
            _ = hangup.recv() => 1,
            _ = interrupt.recv() => 2,
            _ = quit.recv() => 3,
            _ = terminate.recv() => 15,
        };
        // Kept until the end: nobody may hide it again.
        let mut before = lock();
        show(&mut before);
        // As a shell says of a process that a signal has ended.
        exit(128 + number);
    });
    Ok(())
}
