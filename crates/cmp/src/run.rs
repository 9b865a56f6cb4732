//! Runs a command of the plugin, and ends it with all that it started when the time is over or
//! nobody waits for it any more.
//!
//! Main function: [`run`].

use crate::config::Command;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_gocompat::text;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Child,
    sync::oneshot,
    time::Instant,
};

/// How long a command may take to end by itself after it was told to.
const LAST_WORK: Duration = Duration::from_secs(5);
/// How long the caller waits for its end, so that the answer has its last words.
const LAST_WORDS: Duration = Duration::from_millis(80);
/// Bytes of standard error that are kept.
const MAX_ERRORS: usize = 1 << 20;

/// Where and with what a command runs.
#[derive(Clone)]
pub struct Place {
    /// The folder of the call, which stays as long as a command may use it.
    pub root: Arc<TempDir>,
    /// The Application's folder in it.
    pub folder: std::path::PathBuf,
    /// Besides those of this process.
    pub env: Vec<(String, String)>,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Bytes of output.
    pub max_output: usize,
}

/// Ends a command when it is dropped before the command is done.
struct Cancel(Option<oneshot::Sender<()>>);

/// The standard output of a command, without the last line break.
///
/// # Errors
/// It could not be started, failed, was ended, or prints too much.
pub async fn run(command: &Command, place: &Place) -> Result<Vec<u8>, String> {
    let Some((program, first)) = command.command.split_first() else {
        return Err("Command is empty".to_owned());
    };
    let args: Vec<&str> = first
        .iter()
        .chain(&command.args)
        .map(String::as_str)
        .collect();
    let shown = shown(program, &args);
    tracing::info!(dir = %place.folder.display(), "{shown}");
    let mut started = tokio::process::Command::new(found(program, &place.folder));
    started
        .args(&args)
        .envs(place.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&place.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = started.spawn().map_err(|e| unstarted(program, &e))?;
    let (mut cancel, outcome) = supervise(child, place);
    let (mut outcome, begun) = (std::pin::pin!(outcome), Instant::now());
    let in_time = match place.deadline {
        None => outcome.as_mut().await.ok(),
        Some(deadline) => match tokio::time::timeout_at(deadline, outcome.as_mut()).await {
            Ok(outcome) => outcome.ok(),
            Err(_) => {
                cancel.now();
                let last = tokio::time::timeout(LAST_WORDS, outcome.as_mut()).await;
                last.ok().and_then(Result::ok)
            }
        },
    };
    tracing::debug!(seconds = begun.elapsed().as_secs_f64(), "{shown} is done");
    let Some(outcome) = in_time else {
        return Err(format!("`{shown}` failed signal: terminated"));
    };
    cancel.0 = None;
    printed(&shown, outcome)
}

/// The output of a command that has ended; the error if it failed.
fn printed(shown: &str, (out, errors, status): Outcome) -> Result<Vec<u8>, String> {
    let failed = |cause: String, errors: &[u8]| {
        let errors = String::from_utf8_lossy(errors);
        match errors.trim() {
            "" => format!("`{shown}` failed {cause}"),
            errors => format!("`{shown}` failed {cause}: {errors}"),
        }
    };
    let errors = errors.unwrap_or_default();
    let mut out = out.map_err(|cause| failed(cause, &errors))?;
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(failed(cause(status), &errors)),
        Err(e) => return Err(failed(e.to_string(), &errors)),
    }
    let errors = String::from_utf8_lossy(&errors);
    match errors.trim() {
        "" => {}
        errors => tracing::info!("{shown} printed to standard error: {errors}"),
    }
    if out.is_empty() {
        tracing::warn!("Plugin command returned zero output: {shown}");
    }
    out.pop_if(|last| *last == b'\n');
    Ok(out)
}

/// What a command printed, and how it ended.
type Outcome = (
    Result<Vec<u8>, String>,
    Result<Vec<u8>, String>,
    io::Result<ExitStatus>,
);

/// Reads what a command prints until it ends, or ends it. By itself, so that this is done properly
/// whatever becomes of the caller.
fn supervise(mut child: Child, place: &Place) -> (Cancel, oneshot::Receiver<Outcome>) {
    let group = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let (max, root) = (place.max_output, Arc::clone(&place.root));
    let (cancel, cancelled) = oneshot::channel::<()>();
    let (done, outcome) = oneshot::channel();
    tokio::spawn(async move {
        let work = async {
            let out = async {
                let out = read(out, max, true).await;
                if out.is_err() {
                    // It still prints.
                    end(group, Signal::KILL);
                }
                out
            };
            tokio::join!(out, read(errors, MAX_ERRORS, false))
        };
        let mut work = std::pin::pin!(work);
        let (out, errors) = tokio::select! {
            read = &mut work => read,
            _ = cancelled => {
                end(group, Signal::TERM);
                match tokio::time::timeout(LAST_WORK, &mut work).await {
                    Ok(read) => read,
                    Err(_) => {
                        end(group, Signal::KILL);
                        let last = tokio::time::timeout(LAST_WORK, work).await;
                        // A process that left the group may keep the output open.
                        last.unwrap_or_else(|_| (Ok(Vec::new()), Ok(Vec::new())))
                    }
                }
            }
        };
        let status = match tokio::time::timeout(LAST_WORK, child.wait()).await {
            Ok(status) => status,
            // It closed its output and went on.
            Err(_) => {
                end(group, Signal::KILL);
                child.wait().await
            }
        };
        // What it left behind would work in a folder that is gone.
        end(group, Signal::KILL);
        drop(root);
        let _ = done.send((out, errors, status));
    });
    (Cancel(Some(cancel)), outcome)
}

impl Cancel {
    fn now(&mut self) {
        if let Some(cancel) = self.0.take() {
            let _ = cancel.send(());
        }
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        self.now();
    }
}

/// Reads all, or as much as is allowed: the rest is an error, or left out.
async fn read(
    from: Option<impl AsyncRead + Unpin>,
    max: usize,
    is_all: bool,
) -> Result<Vec<u8>, String> {
    let (mut all, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    let Some(mut from) = from else {
        return Ok(all);
    };
    loop {
        let read = from.read(&mut chunk).await.map_err(|e| e.to_string())?;
        if read == 0 {
            return Ok(all);
        }
        let left = max - all.len();
        if read > left && is_all {
            return Err(format!("with more than {max} bytes of output"));
        }
        all.extend_from_slice(&chunk[..read.min(left)]);
    }
}

fn end(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = kill_process_group(group, signal);
    }
}

/// A path is relative to the Application's folder, a name is looked for.
fn found(program: &str, folder: &Path) -> std::path::PathBuf {
    if program.contains('/') {
        folder.join(program)
    } else {
        program.into()
    }
}

/// As Go prints it.
fn unstarted(program: &str, e: &std::io::Error) -> String {
    let text = e.to_string();
    let reason = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_lowercase();
    if e.kind() == std::io::ErrorKind::NotFound && !program.contains('/') {
        format!("exec: {program:?}: executable file not found in $PATH")
    } else {
        format!("fork/exec {program}: {reason}")
    }
}

fn cause(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(15)) => "signal: terminated".to_owned(),
        (None, Some(9)) => "signal: killed".to_owned(),
        (None, Some(signal)) => format!("signal: {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}

/// The command line, with quotes around what has blanks.
fn shown(program: &str, args: &[&str]) -> String {
    let word = |word: &&str| match *word {
        "" => "\"\"".to_owned(),
        word if word.contains(text::is_space) => text::quote(word),
        word => word.to_owned(),
    };
    let words: Vec<String> = std::iter::once(&program).chain(args).map(word).collect();
    words.join(" ")
}
