//! The calls of the kernel that are left to a worker.
//!
//! Main function: [`enter`].

#[cfg(target_os = "linux")]
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter_all_threads,
};
#[cfg(target_os = "linux")]
use std::collections::BTreeMap;

/// What memory, locks, time, randomness and the socket need. A thread or a program cannot be
/// started, and a file or a connection cannot be opened.
#[cfg(target_os = "linux")]
const CALLS: [i64; 27] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_close,
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
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rseq,
];

/// Those with which a process could also reach others of its user, with the process that is left as
/// their first argument: to set its own limits, and to abort.
#[cfg(target_os = "linux")]
fn calls_on_itself() -> [(i64, u64); 2] {
    [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_tgkill, u64::from(std::process::id())),
    ]
}

/// What may be said of a mapping: that it is this process's own, and has a fixed size. The limit on
/// memory does not count shared mappings and those that grow like a stack.
#[cfg(target_os = "linux")]
fn own_memory() -> Result<SeccompRule, BackendError> {
    const FLAGS: u8 = 3;
    let mask = (libc::MAP_TYPE | libc::MAP_GROWSDOWN).unsigned_abs();
    let is_private = SeccompCondition::new(
        FLAGS,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(mask.into()),
        libc::MAP_PRIVATE.unsigned_abs().into(),
    )?;
    SeccompRule::new(vec![is_private])
}

/// Takes all calls from this process but those that a render needs, for good.
///
/// # Errors
/// Why the kernel cannot do that; nothing is taken then.
#[cfg(target_os = "linux")]
pub fn enter() -> Result<(), String> {
    let only = |process: u64| {
        let (length, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
        let first = SeccompCondition::new(0, length, equal, process)?;
        Ok::<_, BackendError>(vec![SeccompRule::new(vec![first])?])
    };
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, process) in calls_on_itself() {
        calls.insert(call, only(process).map_err(|e| e.to_string())?);
    }
    let own_memory = own_memory().map_err(|e| e.to_string())?;
    calls.insert(libc::SYS_mmap, vec![own_memory]);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|e| format!("{e}"))?;
    let filter = SeccompFilter::new(calls, refused, SeccompAction::Allow, arch)
        .map_err(|e| e.to_string())?;
    let filter: BpfProgram = filter.try_into().map_err(|e| format!("{e}"))?;
    apply_filter_all_threads(&filter).map_err(|e| e.to_string())
}

/// # Errors
/// Always: only Linux has such calls.
#[cfg(not(target_os = "linux"))]
pub fn enter() -> Result<(), String> {
    Err("this system has no seccomp".to_owned())
}
