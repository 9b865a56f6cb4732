//! What a worker process can still do. A program of its own: nothing is given back to a process.
#![cfg(target_os = "linux")]

use rustix::{
    io::Errno,
    process::{Resource, getppid, getrlimit, prlimit, setrlimit},
};
use std::{
    collections::HashMap,
    fs::File,
    io::ErrorKind,
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::net::UnixStream,
    process::Command,
    thread,
};

#[test]
fn a_worker_opens_no_file_and_no_connection_and_starts_nothing() {
    let listening = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listening.local_addr().expect("bound");
    assert!(File::open("/etc/passwd").is_ok(), "it could before");
    let parent = Some(getppid().expect("a parent"));
    tiphys_repo::restrict_process().expect("a kernel with seccomp");

    let kind = |outcome: std::io::Result<()>| outcome.map_err(|e| e.kind());
    for (what, outcome) in [
        ("read", File::open("/etc/passwd").map(drop)),
        ("write", File::create("/tmp/tiphys-sandbox").map(drop)),
        ("connect", TcpStream::connect(address).map(drop)),
        ("listen", TcpListener::bind("127.0.0.1:0").map(drop)),
        ("send", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("talk", UnixStream::connect("/run/a.sock").map(drop)),
        ("accept", listening.accept().map(drop)),
        ("list", std::fs::read_dir("/").map(drop)),
    ] {
        assert_eq!(kind(outcome), Err(ErrorKind::PermissionDenied), "{what}");
    }
    assert!(Command::new("/bin/true").status().is_err());
    assert!(thread::Builder::new().spawn(|| {}).is_err());

    let limit = getrlimit(Resource::Nofile);
    let of_parent = prlimit(parent, Resource::Nofile, limit).map(drop);
    assert_eq!(of_parent, Err(Errno::PERM), "another process");
    assert_eq!(setrlimit(Resource::Nofile, limit), Ok(()), "its own");

    // What a render needs is left: memory and randomness.
    let large = vec![1_u8; 64 << 20];
    let known: HashMap<usize, u8> = large.iter().copied().enumerate().step_by(4096).collect();
    assert_eq!(known.len(), large.len() / 4096);
}
