//! Evaluation in worker processes, for what can use up memory or never end: Jsonnet.
//!
//! Main type: [`Workers`]. A worker is this program under another role ([`work`]). It is started
//! when it is first needed, serves one evaluation after another, and is killed and replaced when it
//! exceeds its limits. It gets no environment, and reads files by asking for them, so what it read
//! is recorded like any other read.
//!
//! Helm, Kustomize and plain manifests are rendered in this process: every step of theirs is
//! counted ([`tiphys_render::Budget`]), and parsed charts are shared between renders.

mod wire;
mod worker;

pub use worker::work;

use serde_json::Value;
use std::{
    io::{self, Read, Write},
    os::unix::{net::UnixStream, process::ExitStatusExt as _},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Condvar, Mutex, MutexGuard, Once, PoisonError},
    time::{Duration, Instant},
};
use tiphys_render::{FileError, FileKind, JsonnetError, JsonnetFile, RenderError, SourceFiles};
use wire::{Order, PathKind, Report, receive, send};

/// How workers are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// A program that calls [`work`].
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Workers at the same time.
    pub workers: usize,
}

/// How long a worker may take to be ready.
const START: Duration = Duration::from_secs(30);

/// The processes. Evaluations wait while all of them are busy.
pub(crate) struct Workers {
    isolation: Isolation,
    state: Mutex<State>,
    freed: Condvar,
    warned: Once,
}

#[derive(Default)]
struct State {
    idle: Vec<Worker>,
    busy: usize,
}

/// Why a worker gave no answer.
enum Lost {
    /// Time is over.
    Late,
    /// It ended, or cannot be started.
    Ended(String),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Ended(error.to_string()),
        }
    }
}

impl Workers {
    pub fn new(isolation: Isolation) -> Self {
        Self {
            isolation,
            state: Mutex::default(),
            freed: Condvar::new(),
            warned: Once::new(),
        }
    }

    /// Blocks until `deadline` at most.
    pub fn evaluate(
        &self,
        files: &dyn SourceFiles,
        file: JsonnetFile<'_>,
        deadline: Deadline,
    ) -> Result<Value, JsonnetError> {
        let failed = |lost: Lost| match lost {
            Lost::Late => JsonnetError::Program(format!(
                "the evaluation has not ended after {} s (raise the limit with \
                 --render-timeout-seconds)",
                deadline.limit.as_secs_f64()
            )),
            Lost::Ended(why) => JsonnetError::Program(format!("the evaluation has failed: {why}")),
        };
        let mut worker = self.take(deadline).map_err(failed)?;
        match worker.evaluate(files, file, deadline) {
            Ok(answer) => {
                self.give_back(Some(worker));
                answer
            }
            Err(lost) => {
                let lost = worker.end(lost);
                self.give_back(None);
                Err(failed(lost))
            }
        }
    }

    fn take(&self, deadline: Deadline) -> Result<Worker, Lost> {
        let mut state = self.lock();
        while state.busy >= self.isolation.workers.max(1) {
            let left = deadline.left()?;
            state = self
                .freed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.busy += 1;
        while let Some(mut worker) = state.idle.pop() {
            // One may have been ended from outside while it waited.
            drop(state);
            if worker.answers() {
                return Ok(worker);
            }
            state = self.lock();
        }
        drop(state);
        let (worker, why_open) = Worker::start(&self.isolation).inspect_err(|_| {
            self.give_back(None);
        })?;
        if let Some(why) = why_open {
            self.warned.call_once(|| {
                tracing::warn!("processes that evaluate Jsonnet have limits, but the kernel does not keep them from files and the network: {why}");
            });
        }
        Ok(worker)
    }

    /// `None`: it has been ended.
    fn give_back(&self, worker: Option<Worker>) {
        let mut state = self.lock();
        state.busy -= 1;
        state.idle.extend(worker);
        drop(state);
        self.freed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When an evaluation must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub begun: Instant,
    pub limit: Duration,
}

impl Deadline {
    fn left(self) -> Result<Duration, Lost> {
        self.limit
            .checked_sub(self.begun.elapsed())
            .filter(|left| !left.is_zero())
            .ok_or(Lost::Late)
    }
}

struct Worker {
    process: Child,
    socket: UnixStream,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Worker {
    /// The worker, and why the kernel does not restrict it.
    fn start(isolation: &Isolation) -> Result<(Self, Option<String>), Lost> {
        let cannot = |e: io::Error| Lost::Ended(format!("no process can be started for it: {e}"));
        let (socket, its) = UnixStream::pair().map_err(cannot)?;
        let process = Command::new(&isolation.program)
            .args(&isolation.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(its)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot)?;
        let mut worker = Self { process, socket };
        let deadline = Deadline {
            begun: Instant::now(),
            limit: START,
        };
        match worker.receive(deadline) {
            Ok((Report::Ready { why_open }, _)) => Ok((worker, why_open)),
            Ok(_) => Err(Lost::Ended("its process is not a worker".to_owned())),
            Err(lost) => Err(worker.end(lost)),
        }
    }

    /// Whether it is still there. Asked of itself: an ended process is not known as such at once.
    fn answers(&mut self) -> bool {
        let deadline = Deadline {
            begun: Instant::now(),
            limit: START,
        };
        self.send(&Order::Check, &[], deadline).is_ok()
            && matches!(self.receive(deadline), Ok((Report::Ready { .. }, _)))
    }

    /// The answer; a worker that gave none cannot be used any more.
    fn evaluate(
        &mut self,
        files: &dyn SourceFiles,
        file: JsonnetFile<'_>,
        deadline: Deadline,
    ) -> Result<Result<Value, JsonnetError>, Lost> {
        let order = Order::Jsonnet {
            folder: file.folder.to_owned(),
            path: file.path.to_owned(),
            options: file.options.clone(),
            limits: *file.limits,
            seconds: deadline.left()?.as_secs() + 1,
        };
        self.send(&order, file.content, deadline)?;
        let mut unreadable = None;
        loop {
            let (report, body) = self.receive(deadline)?;
            match report {
                Report::Kind { path } => {
                    let order = match files.kind(&path) {
                        Ok(kind) => Order::Kind(kind.map(shown)),
                        Err(error) => unreadable_now(&mut unreadable, error),
                    };
                    self.send(&order, &[], deadline)?;
                }
                Report::Read { path } => {
                    let (order, content) = match files.read(&path) {
                        Ok(content) => {
                            let exists = content.is_some();
                            (Order::Content { exists }, content.unwrap_or_default())
                        }
                        Err(error) => (unreadable_now(&mut unreadable, error), Vec::new()),
                    };
                    self.send(&order, &content, deadline)?;
                }
                Report::Value => {
                    let value = serde_json::from_slice(&body).map_err(|e| {
                        JsonnetError::Program(format!("the result cannot be read: {e}"))
                    });
                    return Ok(value);
                }
                Report::Program(message) => return Ok(Err(JsonnetError::Program(message))),
                Report::Source(message) => {
                    return Ok(Err(JsonnetError::Render(RenderError::Source(message))));
                }
                Report::Unreadable => {
                    let error = unreadable
                        .ok_or_else(|| Lost::Ended("nothing was unreadable".to_owned()))?;
                    return Ok(Err(error.into()));
                }
                Report::Ready { .. } => return Err(Lost::Ended("it began anew".to_owned())),
            }
        }
    }

    fn send(&mut self, order: &Order, body: &[u8], deadline: Deadline) -> Result<(), Lost> {
        let mut timed = Timed(&self.socket, deadline);
        Ok(send(&mut timed, order, body)?)
    }

    fn receive(&mut self, deadline: Deadline) -> Result<(Report, Vec<u8>), Lost> {
        let mut timed = Timed(&self.socket, deadline);
        receive(&mut timed)?.ok_or_else(|| Lost::Ended("its process has ended".to_owned()))
    }

    /// Ends the process; says more of one that had ended by itself.
    fn end(&mut self, lost: Lost) -> Lost {
        // Its connection is closed a moment before it has ended.
        let patience = Instant::now() + Duration::from_secs(1);
        let ended = loop {
            match self.process.try_wait() {
                Ok(None) if matches!(lost, Lost::Ended(_)) && Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                other => break other,
            }
        };
        let _ = self.process.kill();
        match (lost, ended) {
            (Lost::Ended(_), Ok(Some(status))) => Lost::Ended(reason(status)),
            (lost, _) => lost,
        }
    }
}

/// Why a process ended by itself. A program that gets no memory aborts.
fn reason(status: ExitStatus) -> String {
    match status
        .signal()
        .and_then(rustix::process::Signal::from_named_raw)
    {
        Some(rustix::process::Signal::ABORT) => "it needs more memory than it may have".to_owned(),
        Some(rustix::process::Signal::XCPU) => "it has used up its processor time".to_owned(),
        Some(rustix::process::Signal::KILL) => {
            "its process was killed, perhaps for want of memory".to_owned()
        }
        _ => format!("its process has ended ({status})"),
    }
}

/// The worker hears of the error, and the one who asked for the evaluation gets it.
fn unreadable_now(unreadable: &mut Option<FileError>, error: FileError) -> Order {
    *unreadable = Some(error);
    Order::Unreadable
}

fn shown(kind: FileKind) -> PathKind {
    match kind {
        FileKind::File { size } => PathKind::File { size },
        FileKind::Dir => PathKind::Folder,
        FileKind::Symlink | FileKind::Other => PathKind::Other,
    }
}

/// A socket until a deadline.
struct Timed<'a>(&'a UnixStream, Deadline);

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.1.left().map_err(|_| io::ErrorKind::TimedOut)?;
        Ok(Some(left))
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.set_read_timeout(self.left()?)?;
        self.0.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set_write_timeout(self.left()?)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
