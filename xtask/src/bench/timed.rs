//! What some work in this process, or a program, takes. Main functions: [`best`] and [`program`].

use super::process;
use anyhow::{Context, bail};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Between two looks at whether a program has ended.
const PAUSE: Duration = Duration::from_micros(300);

/// The resources that a program used for one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub seconds: f64,
    pub cpu: f64,
    pub mebibytes: f64,
}

/// Seconds of the fastest run.
pub fn best(rounds: usize, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..rounds)
        .map(once)
        .min()
        .unwrap_or_default()
        .as_secs_f64()
}

/// The fastest run, the mean CPU time and the highest memory of all runs.
///
/// # Errors
/// The program does not start, or fails.
pub fn program(
    program: &Path,
    arguments: &[&str],
    rounds: usize,
    home: &Path,
) -> anyhow::Result<Used> {
    let mut used = Used {
        seconds: f64::MAX,
        ..Used::default()
    };
    let before = process::children_cpu_seconds()?;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", home);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let status = loop {
            used.mebibytes = process::peak_mebibytes(child.id())
                .unwrap_or_default()
                .max(used.mebibytes);
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(PAUSE);
        };
        used.seconds = used.seconds.min(start.elapsed().as_secs_f64());
        if !status.success() {
            bail!("{} fails: {}", program.display(), arguments.join(" "));
        }
    }
    used.cpu = (process::children_cpu_seconds()? - before) / rounds as f64;
    Ok(used)
}
