//! The process of Dex. Main type: [`Dex`].

use crate::private;
use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

const PROGRAM: &str = "dex";
/// How long Dex may continue after it was asked to end.
const LAST_WORK: Duration = Duration::from_secs(10);
/// Whoever runs this long has not failed at its start.
const STEADY: Duration = Duration::from_secs(60);

/// Dex with its configuration. There is no `Debug`, because it has secrets.
pub struct Dex {
    program: PathBuf,
    file: PathBuf,
    /// What is to be run; `None`: nothing.
    text: Option<String>,
    child: Option<Child>,
    started: Instant,
    failures: u32,
    /// When it may be started again after it has ended by itself.
    not_before: Option<Instant>,
}

/// The program in a folder of PATH that is not relative to where this process happens to be.
fn found() -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(PROGRAM))
        .find(is_program)
}

/// How long to wait after some failures in a row.
pub fn pause(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.saturating_sub(1).min(5))
}

impl Dex {
    /// `file`: where its configuration is written.
    ///
    /// # Errors
    /// The program is not there.
    pub fn new(file: PathBuf) -> anyhow::Result<Self> {
        let program = found().context("there is no program dex in PATH")?;
        Ok(Self {
            program,
            file,
            text: None,
            child: None,
            started: Instant::now(),
            failures: 0,
            not_before: None,
        })
    }

    /// Whether it is to run with this.
    pub fn has(&self, text: Option<&str>) -> bool {
        self.text.as_deref() == text
    }

    /// Ends it if it runs with something else. [`Dex::go_on`] starts it.
    pub async fn take(&mut self, text: Option<String>) {
        if self.text != text {
            self.stop().await;
            (self.text, self.failures, self.not_before) = (text, 0, None);
        }
    }

    /// Starts it unless it runs, nothing is to be run, or its [pause](Self::pause) is not over.
    pub async fn go_on(&mut self) -> anyhow::Result<()> {
        let may_start = self.child.is_none() && self.rest().is_none();
        let Some(text) = self.text.clone().filter(|_| may_start) else {
            return Ok(());
        };
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || private::replace(&file, text.as_bytes()))
            .await?
            .with_context(|| format!("cannot write {}", self.file.display()))?;
        let child = Command::new(&self.program)
            .arg("serve")
            .arg(&self.file)
            // Dex replaces variables and has no way to write a dollar sign: `$$`, of which its
            // configuration is full, is the variable of this name.
            .env("$", "$")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        (self.child, self.started) = (Some(child), Instant::now());
        Ok(())
    }

    /// Waits until it ends by itself; for ever if it does not run.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else {
            return std::future::pending().await;
        };
        let status = child.wait().await;
        self.child = None;
        status
    }

    /// How long to wait before it is started again after it has ended by itself. Until then only
    /// another configuration starts it.
    pub fn pause(&mut self) -> Duration {
        self.failures = match self.started.elapsed() < STEADY {
            true => self.failures.saturating_add(1),
            false => 1,
        };
        let pause = pause(self.failures);
        self.not_before = Some(Instant::now() + pause);
        pause
    }

    /// What is left of the pause; `None`: nothing.
    pub fn rest(&self) -> Option<Duration> {
        let at = self.not_before.filter(|_| self.text.is_some())?;
        let rest = at.saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some(rest)
    }

    /// Ends it, and waits until it has ended.
    pub async fn stop(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        // There is no id any more if its end was already noticed: another process may have it.
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(id, Signal::TERM);
        }
        if tokio::time::timeout(LAST_WORK, child.wait()).await.is_err() {
            tracing::warn!("dex does not end; it is killed");
            if let Err(error) = child.kill().await {
                tracing::warn!(%error, "dex cannot be killed");
            }
        }
        self.child = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_another_configuration_ends_a_pause() {
        let scratch = tempfile::tempdir().expect("a folder");
        let mut dex = Dex {
            program: "true".into(),
            file: scratch.path().join("dex.yaml"),
            text: None,
            child: None,
            started: Instant::now(),
            failures: 0,
            not_before: None,
        };
        dex.take(Some("one".to_owned())).await;
        dex.go_on().await.expect("started");
        assert!(dex.ended().await.expect("it ends").success());
        // The longest pause: this test is over before.
        dex.failures = u32::MAX;
        dex.pause();

        dex.take(Some("one".to_owned())).await;
        dex.go_on().await.expect("it waits");
        assert!(dex.child.is_none() && dex.rest().is_some());
        dex.take(Some("two".to_owned())).await;
        assert_eq!(dex.rest(), None);
        dex.go_on().await.expect("started");
        assert!(dex.child.is_some());
        dex.stop().await;
        assert!(dex.child.is_none());
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        let seconds = [0, 1, 2, 3, 6, 7, u32::MAX].map(|failures| pause(failures).as_secs());
        assert_eq!(seconds, [1, 1, 2, 4, 32, 32, 32]);
    }
}
