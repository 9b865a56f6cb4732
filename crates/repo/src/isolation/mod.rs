//! Worker processes, which render outside content: a fault in a renderer, or a program that uses up
//! memory or never ends, costs one of them and the render.
//!
//! Main types: [`Workers`] lends a [`Worker`], which is this program under another role ([`work`]).
//! One serves one render after another, and is killed and replaced when it exceeds its limits; a
//! spare one is started before it is needed. It gets no environment, and reads files by asking for
//! them, so what it read is recorded like any other read. It renders for one project only: whoever
//! takes it over does not reach the manifests of another one.

mod answer;
mod asked;
mod json;
mod sandbox;
mod wire;
mod worker;

pub(crate) use answer::read as read_objects;
pub use sandbox::enter as restrict;
pub(crate) use wire::{
    Ahead, Answer, Known, LONGEST_EXPECTED, MOST_EXPECTED, MOST_INSIDE, Order, Question, Report,
    Task, What,
};
#[cfg(test)]
pub(crate) use worker::serve_once;
pub use worker::work;

use crate::git::Found;
use rand::RngCore as _;
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    os::unix::{net::UnixStream, process::ExitStatusExt as _},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError},
    time::{Duration, Instant},
};
use tiphys_gocompat::sprig;
use tiphys_render::RenderError;
use wire::{FROM_OWNER, FROM_WORKER, TooLarge, receive, send};

/// How workers are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// A program that calls [`work`].
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Workers that render at the same time. With two or more, one project takes half of them.
    pub workers: usize,
    /// Have a spare one ready, so that a render needs not wait for a start: neither the first one,
    /// nor that after one was ended. A spare one that nobody needs for some minutes ends, too, and
    /// the next render starts another.
    pub spare: bool,
}

/// How long a worker may take to be ready.
const START: Duration = Duration::from_secs(30);
/// How long one that waited may take to say that it is still there.
const CHECK: Duration = Duration::from_secs(3);
/// How much later than its own deadline a worker is ended: it says more than that it was late.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// A worker that has more memory than this after a render is ended: it would not give it back while
/// it waits for the next one.
const IDLE_KIB: u64 = 256 << 10;
/// Memory of all that wait.
const ALL_IDLE_KIB: u64 = 512 << 10;
/// How many may wait, besides as many as may render. Several projects take turns, and none of them
/// should have to start one for each render.
const IDLE: usize = 8;
/// The folders that are remembered of a worker: it may still have their charts.
const FOLDERS: usize = 64;

/// How a user gets more time.
pub(crate) const TIME_HINT: &str = " (raise the limit with --render-timeout-seconds)";

/// What templates take from outside.
pub(crate) fn chance() -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
    Arc::new(|| sprig::Sources {
        random: Box::new(|bytes| rand::rng().fill_bytes(bytes)),
        now: jiff::Timestamp::now(),
        zone: || jiff::tz::TimeZone::UTC,
    })
}

/// The processes. No more renders are let through than there may be, so none waits for one.
pub(crate) struct Workers {
    isolation: Isolation,
    /// Whoever starts the spare one has it, too.
    state: Arc<Mutex<State>>,
    freed: Condvar,
    warned: Once,
}

#[derive(Default)]
struct State {
    /// The one that was used last is the last one.
    idle: Vec<Worker>,
    busy: usize,
    /// One that has rendered nothing, for any project.
    spare: Option<Started>,
    /// A spare one is being started.
    is_starting: bool,
}

/// A worker, and why the kernel does not restrict it.
type Started = (Worker, Option<String>);

/// What a worker is wanted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose<'a> {
    pub project: &'a str,
    /// The Application's folder.
    pub folder: Found,
}

/// Why a worker gave no answer.
#[derive(Debug)]
pub(crate) enum Lost {
    /// Time is over.
    Late,
    /// It has exceeded another limit.
    Exceeded(&'static str),
    /// What it is sent would be too large for it.
    TooLarge(TooLarge),
    /// It is no worker, or does not keep to the rules.
    Broken(String),
    /// It ended, or cannot be started.
    Ended(String),
}

impl Lost {
    /// `limit`: of the render.
    pub fn error(self, limit: Duration) -> RenderError {
        match self {
            Self::Late => RenderError::Stopped(format!(
                "it takes more than {} seconds{TIME_HINT}",
                limit.as_secs_f64()
            )),
            Self::Exceeded(what) => RenderError::Stopped(what.to_owned()),
            Self::TooLarge(cause) => cause.into(),
            Self::Broken(why) | Self::Ended(why) => RenderError::Lost(why),
        }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Ended(format!("its process cannot be talked to: {error}")),
        }
    }
}

impl Workers {
    pub fn new(isolation: Isolation) -> Self {
        let workers = Self {
            isolation,
            state: Arc::default(),
            freed: Condvar::new(),
            warned: Once::new(),
        };
        workers.have_spare();
        workers
    }

    /// Starts a spare one if there is none, without waiting for it.
    fn have_spare(&self) {
        let mut state = self.lock();
        if !self.isolation.spare || state.is_starting || state.spare.is_some() {
            return;
        }
        state.is_starting = true;
        drop(state);
        let (isolation, shared) = (self.isolation.clone(), Arc::clone(&self.state));
        let start = move || {
            let started = Worker::start(&isolation, "");
            let mut state = lock(&shared);
            state.is_starting = false;
            // Why it does not start is said by the render that needs one.
            state.spare = started.ok();
        };
        let thread = std::thread::Builder::new().name("spare-worker".to_owned());
        if thread.spawn(start).is_err() {
            self.lock().is_starting = false;
        }
    }

    /// Blocks until one is free, for `patience` at most.
    pub fn lend(&self, purpose: Purpose<'_>, patience: Duration) -> Result<Lent<'_>, RenderError> {
        let most = self.isolation.workers.max(1);
        let deadline = Deadline {
            begun: Instant::now(),
            limit: patience,
        };
        let mut state = self.lock();
        while state.busy >= most {
            let Ok(left) = deadline.left() else {
                return Err(RenderError::Lost(format!(
                    "all {most} processes for it were busy for {} seconds",
                    patience.as_secs_f64()
                )));
            };
            state = self
                .freed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.busy += 1;
        state.forget_ended();
        let mut lent = Lent {
            workers: self,
            worker: None,
        };
        while let Some(mut worker) = state.take(purpose) {
            // One may have been ended from outside while it waited, or hang.
            drop(state);
            if worker.answers(CHECK.min(patience)) {
                worker.remember(purpose.folder);
                lent.worker = Some(worker);
                self.have_spare();
                return Ok(lent);
            }
            // It takes a moment until it has ended.
            drop(worker);
            state = self.lock();
        }
        let spare = state.spare.take();
        drop(state);
        let (mut worker, why_open) = self.unused(spare, purpose.project, patience)?;
        self.have_spare();
        if let Some(why) = why_open {
            self.warned.call_once(|| {
                tracing::warn!("processes that render have limits, but the kernel does not keep them from files and the network: {why}");
            });
        }
        worker.remember(purpose.folder);
        lent.worker = Some(worker);
        Ok(lent)
    }

    /// One that has rendered nothing: the spare one if it is still there, else a new one.
    fn unused(
        &self,
        spare: Option<Started>,
        project: &str,
        patience: Duration,
    ) -> Result<Started, RenderError> {
        if let Some((mut worker, why_open)) = spare
            && worker.answers(CHECK.min(patience))
        {
            worker.project = project.into();
            return Ok((worker, why_open));
        }
        let started = Worker::start(&self.isolation, project);
        started.map_err(|lost| lost.error(START))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The best one that waits.
    fn take(&mut self, purpose: Purpose<'_>) -> Option<Worker> {
        let of_project = |worker: &Worker| *worker.project == *purpose.project;
        let knows = |worker: &Worker| worker.folders.contains(&purpose.folder);
        let idle = &self.idle;
        let best = idle
            .iter()
            .rposition(|worker| of_project(worker) && knows(worker))
            .or_else(|| idle.iter().rposition(of_project))?;
        Some(self.idle.remove(best))
    }

    /// Those that have waited longest, if too many wait or they have too much memory.
    fn retire(&mut self, most: usize) -> Vec<Worker> {
        let mut retired = Vec::new();
        let kib = |idle: &[Worker]| idle.iter().map(|worker| worker.kib).sum::<u64>();
        while self.idle.len() > most || kib(&self.idle) > ALL_IDLE_KIB {
            retired.push(self.idle.remove(0));
        }
        retired
    }

    /// Workers end by themselves when they have had nothing to do for some minutes.
    fn forget_ended(&mut self) {
        let is_there = |worker: &mut Worker| matches!(worker.process.try_wait(), Ok(None));
        self.idle.retain_mut(is_there);
        if let Some((spare, _)) = &mut self.spare
            && !is_there(spare)
        {
            self.spare = None;
        }
    }
}

/// A worker until it is given back. One that is not is ended.
pub(crate) struct Lent<'a> {
    workers: &'a Workers,
    worker: Option<Worker>,
}

impl Lent<'_> {
    /// # Errors
    /// It has gone.
    pub fn connection(&mut self) -> Result<&mut Connection, Lost> {
        let gone = || Lost::Ended("its process has gone".to_owned());
        let worker = self.worker.as_mut().ok_or_else(gone)?;
        Ok(&mut worker.connection)
    }

    /// Other renders of its project may use it. Who names no project shares nothing.
    pub fn give_back(mut self) {
        let Some(mut worker) = self.worker.take() else {
            return;
        };
        worker.kib = worker.memory_kib();
        if worker.project.is_empty() || worker.kib > IDLE_KIB {
            return;
        }
        let most = self.workers.isolation.workers.max(IDLE);
        let mut state = self.workers.lock();
        state.idle.push(worker);
        let retired = state.retire(most);
        // It takes a moment until they have ended.
        drop(state);
        drop(retired);
    }

    /// Ends it; says more of one that had ended by itself.
    pub fn end(mut self, lost: Lost) -> Lost {
        match &mut self.worker {
            Some(worker) => worker.end(lost),
            None => lost,
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // It ends before another one begins: there may be only so many.
        drop(self.worker.take());
        self.workers.lock().busy -= 1;
        self.workers.freed.notify_one();
    }
}

/// When a render must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub begun: Instant,
    pub limit: Duration,
}

impl Deadline {
    /// # Errors
    /// The time is over.
    pub fn left(self) -> Result<Duration, Lost> {
        self.limit
            .checked_sub(self.begun.elapsed())
            .filter(|left| !left.is_zero())
            .ok_or(Lost::Late)
    }
}

/// The owner's end of the connection to a worker.
pub(crate) struct Connection(UnixStream);

impl From<UnixStream> for Connection {
    fn from(socket: UnixStream) -> Self {
        Self(socket)
    }
}

impl Connection {
    /// # Errors
    /// With [`Lost::TooLarge`] nothing was sent.
    pub fn send(&mut self, order: &Order, body: &[u8], deadline: Deadline) -> Result<(), Lost> {
        let mut timed = Timed(&self.0, deadline);
        let sent = send(&mut timed, order, body, FROM_OWNER);
        sent.map_err(|error| match TooLarge::cause(&error) {
            Some(cause) => Lost::TooLarge(cause),
            None => error.into(),
        })
    }

    pub fn receive(&mut self, deadline: Deadline) -> Result<(Report, Vec<u8>), Lost> {
        let mut timed = Timed(&self.0, deadline);
        let received = receive(&mut timed, FROM_WORKER)?;
        received.ok_or_else(|| Lost::Ended("its process has ended".to_owned()))
    }
}

pub(crate) struct Worker {
    process: Child,
    connection: Connection,
    project: Box<str>,
    folders: VecDeque<Found>,
    /// Its memory after its last render.
    kib: u64,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Worker {
    fn start(isolation: &Isolation, project: &str) -> Result<Started, Lost> {
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
        let mut worker = Self {
            process,
            connection: socket.into(),
            project: project.into(),
            folders: VecDeque::new(),
            kib: 0,
        };
        let deadline = Deadline {
            begun: Instant::now(),
            limit: START,
        };
        match worker.connection.receive(deadline) {
            Ok((Report::Ready { why_open }, _)) => Ok((worker, why_open)),
            Ok(_) => Err(Lost::Broken("its process is not a worker".to_owned())),
            Err(Lost::Late) => {
                let late = "its process does not become ready";
                Err(Lost::Broken(late.to_owned()))
            }
            Err(lost) => Err(worker.end(lost)),
        }
    }

    /// Whether it is still there. Asked of itself: an ended process is not known as such at once.
    fn answers(&mut self, patience: Duration) -> bool {
        let deadline = Deadline {
            begun: Instant::now(),
            limit: patience,
        };
        let connection = &mut self.connection;
        connection.send(&Order::Check, &[], deadline).is_ok()
            && matches!(connection.receive(deadline), Ok((Report::Ready { .. }, _)))
    }

    fn remember(&mut self, folder: Found) {
        self.folders.retain(|known| *known != folder);
        self.folders.push_back(folder);
        if self.folders.len() > FOLDERS {
            self.folders.pop_front();
        }
    }

    /// Without its program, which all of them share. 0 where that cannot be known.
    fn memory_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let own = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = own.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or_default()
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
            (Lost::Ended(_), Ok(Some(status))) => reason(status),
            (lost, _) => lost,
        }
    }
}

/// Why a process ended by itself. A program that gets no memory aborts.
fn reason(status: ExitStatus) -> Lost {
    match status
        .signal()
        .and_then(rustix::process::Signal::from_named_raw)
    {
        Some(rustix::process::Signal::ABORT) => {
            Lost::Exceeded("it needs more memory than it may have")
        }
        Some(rustix::process::Signal::XCPU) => Lost::Exceeded("it has used up its processor time"),
        Some(rustix::process::Signal::KILL) => {
            Lost::Ended("its process was killed, perhaps for want of memory".to_owned())
        }
        _ => Lost::Ended(format!("its process has ended ({status})")),
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
