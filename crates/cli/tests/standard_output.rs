//! What commands do when their output cannot be written.

use std::{
    fs::File,
    process::{Command, Stdio},
};

fn version() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.args(["version", "--client"]).stdin(Stdio::null());
    command
}

/// A script must not go on with a file of which a part is missing.
#[test]
fn a_command_whose_output_is_lost_fails() {
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let out = version().stdout(full).output().expect("it starts");
    let error = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(
        error.contains("write /dev/stdout: no space left on device"),
        "{error}"
    );
}

/// As with `| head`.
#[test]
fn a_closed_pipe_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let out = version().stdout(writer).output().expect("it starts");
    let error = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), &*error), (Some(0), ""));
}
