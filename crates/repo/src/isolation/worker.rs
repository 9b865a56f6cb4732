//! The worker process: evaluates what it is sent, and can do nothing else.
//!
//! Main function: [`work`]. Its standard input is a socket to its owner, which reads the files that
//! it asks for. It has no credentials and no environment, and where the kernel has seccomp it can
//! neither open files nor connections nor start programs. Memory and processor time are limited; it
//! ends when they are used up, or when its owner does.

use super::wire::{Order, PathKind, Report, receive, send};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use std::{io, os::unix::net::UnixStream, sync::Mutex};
use tiphys_render::{
    FileEntry, FileError, FileKind, JSONNET_STACK, JsonnetError, JsonnetFile, RenderError,
    SourceFiles, evaluate_jsonnet_here,
};

/// Serves until the owner is gone. `memory`: bytes besides the stack.
///
/// # Errors
/// The limits cannot be set, or the connection fails.
pub fn work(memory: u64) -> io::Result<()> {
    let socket = UnixStream::from(rustix::io::dup(rustix::stdio::stdin())?);
    let limit = Some(memory + JSONNET_STACK as u64);
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
        .name("jsonnet".to_owned())
        .stack_size(JSONNET_STACK)
        .spawn(move || {
            let why_open = sandbox::enter().err();
            serve(socket, why_open)
        })?
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the worker has failed")))
}

fn serve(mut socket: UnixStream, why_open: Option<String>) -> io::Result<()> {
    send(&mut socket, &Report::Ready { why_open }, &[])?;
    while let Some((order, content)) = receive(&mut socket)? {
        if matches!(order, Order::Check) {
            send(&mut socket, &Report::Ready { why_open: None }, &[])?;
            continue;
        }
        let Order::Jsonnet {
            folder,
            path,
            options,
            limits,
            seconds,
        } = order
        else {
            return Err(io::Error::other("that was not asked for"));
        };
        limit_time(seconds)?;
        let files = Asked(Mutex::new(&mut socket));
        let file = JsonnetFile {
            folder: &folder,
            path: &path,
            content: &content,
            options: &options,
            limits: &limits,
        };
        let (report, body) = match evaluate_jsonnet_here(&files, file) {
            Ok(value) => (Report::Value, serde_json::to_vec(&value)?),
            Err(JsonnetError::Program(message)) => (Report::Program(message), Vec::new()),
            Err(JsonnetError::Render(RenderError::File(_))) => (Report::Unreadable, Vec::new()),
            Err(JsonnetError::Render(error)) => (Report::Source(error.to_string()), Vec::new()),
        };
        send(&mut socket, &report, &body)?;
    }
    Ok(())
}

/// The process is ended when it has used so much more: its owner may no longer be there to do it.
fn limit_time(seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let limit = u64::try_from(used).unwrap_or_default() + seconds + 1;
    let maximum = getrlimit(Resource::Cpu).maximum;
    Ok(setrlimit(
        Resource::Cpu,
        Rlimit {
            current: Some(limit),
            maximum,
        },
    )?)
}

/// The owner's files.
struct Asked<'a>(Mutex<&'a mut UnixStream>);

impl Asked<'_> {
    fn ask(&self, path: &str, question: &Report) -> Result<(Order, Vec<u8>), FileError> {
        let unreadable = |reason: String| FileError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let mut socket = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        send(&mut **socket, question, &[]).map_err(|e| unreadable(e.to_string()))?;
        receive(&mut **socket)
            .map_err(|e| unreadable(e.to_string()))?
            .ok_or_else(|| unreadable("nobody answers".to_owned()))
    }

    fn unexpected<T>(path: &str) -> Result<T, FileError> {
        Err(FileError::Unreadable {
            path: path.to_owned(),
            reason: "no answer".to_owned(),
        })
    }
}

impl SourceFiles for Asked<'_> {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        let question = Report::Kind {
            path: path.to_owned(),
        };
        match self.ask(path, &question)?.0 {
            Order::Kind(kind) => Ok(kind.map(|kind| match kind {
                PathKind::File { size } => FileKind::File { size },
                PathKind::Folder => FileKind::Dir,
                PathKind::Other => FileKind::Other,
            })),
            _ => Self::unexpected(path),
        }
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        let question = Report::Read {
            path: path.to_owned(),
        };
        match self.ask(path, &question)? {
            (Order::Content { exists }, content) => Ok(exists.then_some(content)),
            _ => Self::unexpected(path),
        }
    }

    /// No program lists folders.
    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        Self::unexpected(path)
    }
}

#[cfg(target_os = "linux")]
mod sandbox {
    //! The calls of the kernel that are left.

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};
    use std::collections::BTreeMap;

    /// What memory, locks, time, randomness and the socket need. A thread cannot be started and a
    /// file or a connection cannot be opened.
    const CALLS: [i64; 30] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_recvfrom,
        libc::SYS_sendto,
        libc::SYS_close,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_getrandom,
        libc::SYS_prlimit64,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_rseq,
    ];

    pub(super) fn enter() -> Result<(), String> {
        let calls: BTreeMap<_, _> = CALLS.into_iter().map(|call| (call, Vec::new())).collect();
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = std::env::consts::ARCH
            .try_into()
            .map_err(|e| format!("{e}"))?;
        let filter = SeccompFilter::new(calls, refused, SeccompAction::Allow, arch)
            .map_err(|e| e.to_string())?;
        let filter: BpfProgram = filter.try_into().map_err(|e| format!("{e}"))?;
        apply_filter_all_threads(&filter).map_err(|e| e.to_string())
    }
}

#[cfg(not(target_os = "linux"))]
mod sandbox {
    pub(super) fn enter() -> Result<(), String> {
        Err("this system has no seccomp".to_owned())
    }
}
