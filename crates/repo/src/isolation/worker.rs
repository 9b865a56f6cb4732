//! The worker process: renders what it is sent, and can do nothing else.
//!
//! Main function: [`work`]. Its standard input is a socket to its owner, which reads the files that
//! it asks for. It has no credentials and no environment, and where the kernel has seccomp it can
//! neither open files nor connections nor start programs. Memory and processor time are limited; it
//! ends when they are used up, or when its owner does.

use super::{
    GRACE, answer,
    asked::{Asked, Line, Provided, lock},
    sandbox,
    wire::{Order, Report, Task, TooLarge, What},
};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use std::{
    io,
    os::unix::net::UnixStream,
    sync::Mutex,
    time::{Duration, Instant},
};
use tiphys_render::{JSONNET_STACK, Plugins, SourceFiles, SourceSet, details, render};

/// The stack of the thread that renders: Jsonnet is evaluated on it, on top of what leads there.
const STACK: usize = JSONNET_STACK + (16 << 20);

/// How long a worker waits for something to do. Its owner answers questions at once.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// Serves until the owner is gone, or has had nothing to do for it for some minutes. `memory`: in
/// bytes, besides the stack.
///
/// # Errors
/// The limits cannot be set, or the connection fails.
pub fn work(memory: u64) -> io::Result<()> {
    let socket = UnixStream::from(rustix::io::dup(rustix::stdio::stdin())?);
    socket.set_read_timeout(Some(IDLE))?;
    // If the machine or the container has too little memory, one worker ends instead of its owner.
    // Not where all processes of a container end together (`memory.oom.group`), as with cgroup v2
    // since Kubernetes 1.28, unless the kubelet has `singleProcessOOMKill`.
    // Where there is no such file, there is no such choice.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let limit = Some(memory.saturating_add(STACK as u64));
    setrlimit(
        Resource::Data,
        Rlimit {
            current: limit,
            maximum: limit,
        },
    )?;
    // No copy of its memory is left on disk when it is ended.
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    std::thread::Builder::new()
        .name("render".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let why_open = sandbox::enter().err();
            serve(socket, why_open)
        })?
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the worker has failed")))
}

fn serve(socket: UnixStream, why_open: Option<String>) -> io::Result<()> {
    let line = Mutex::new(Line::new(socket));
    lock(&line).send(&Report::Ready { why_open }, &[])?;
    loop {
        let received = match lock(&line).receive() {
            Err(error) if is_late(&error) => return Ok(()),
            received => received?,
        };
        let report = match received {
            None => return Ok(()),
            Some((Order::Check, _)) => (Report::Ready { why_open: None }, Vec::new()),
            Some((Order::Render(task), _)) => {
                limit_time(task.left.saturating_add(GRACE))?;
                run(*task, &line)
            }
            Some(_) => return Err(io::Error::other("that was not asked for")),
        };
        let mut line = lock(&line);
        line.forget();
        reply(&mut line, report)?;
    }
}

/// One render, in this process.
#[cfg(test)]
pub(crate) fn serve_once(socket: UnixStream) -> io::Result<()> {
    let line = Mutex::new(Line::new(socket));
    let received = lock(&line).receive()?;
    if let Some((Order::Render(task), _)) = received {
        let report = run(*task, &line);
        reply(&mut lock(&line), report)?;
    }
    Ok(())
}

/// Whether nothing came for a while.
fn is_late(error: &io::Error) -> bool {
    let kind = error.kind();
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn reply(line: &mut Line, (report, body): (Report, Vec<u8>)) -> io::Result<()> {
    let Err(error) = line.send(&report, &body) else {
        return Ok(());
    };
    match TooLarge::cause(&error) {
        Some(cause) => line.send(&Report::Failed(cause.into()), &[]),
        None => Err(error),
    }
}

fn run(task: Task, line: &Mutex<Line>) -> (Report, Vec<u8>) {
    let begun = Instant::now();
    let count = 1 + task.refs.len() + task.fetched.len();
    let files: Vec<Asked<'_>> = (0..count).map(|files| Asked { files, line }).collect();
    let mut all = files.iter().map(|files| files as &dyn SourceFiles);
    let sources = SourceSet {
        files: all.next().expect("a source has files"),
        refs: task.refs.into_iter().zip(all.by_ref()).collect(),
        fetched: task.fetched.into_iter().zip(all.by_ref()).collect(),
        // Their answers are read by the owner.
        plugins: Plugins::default(),
        several: task.several,
    };
    let charts = Provided {
        line,
        files: &files,
        begun,
        limit: task.limit,
        left: task.left,
    };
    let outcome = match task.what {
        What::Manifests(prepared) => {
            render(&sources, &prepared, &charts, &task.budget).and_then(|rendered| {
                let body = answer::write(&rendered.objects)?;
                let report = Report::Manifests {
                    objects: rendered.objects.len(),
                    errors: rendered.errors,
                    warnings: rendered.warnings,
                };
                Ok((report, body))
            })
        }
        What::Details(params) => details(&sources, &params, &charts, &task.budget).map(|details| {
            let report = Report::Details {
                helm: details.helm,
                images: details.images,
            };
            (report, Vec::new())
        }),
    };
    outcome.unwrap_or_else(|error| (Report::Failed(error), Vec::new()))
}

/// The process is ended when it has used clearly more of the processor: its owner may no longer be
/// there to do it.
fn limit_time(time: Duration) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let used = u64::try_from(used).unwrap_or_default();
    let limit = used.saturating_add(time.as_secs()).saturating_add(2);
    let maximum = getrlimit(Resource::Cpu).maximum;
    Ok(setrlimit(
        Resource::Cpu,
        Rlimit {
            current: Some(limit),
            maximum,
        },
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_worker_with_nothing_to_do_ends() {
        let (mut owner, its) = UnixStream::pair().expect("a pair");
        let short = Some(Duration::from_millis(10));
        its.set_read_timeout(short).expect("a time limit");
        serve(its, None).expect("it ends in peace");
        let mut said = Vec::new();
        owner.read_to_end(&mut said).expect("its end");
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("Ready"), "{said}");
    }
}
