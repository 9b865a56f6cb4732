//! A password that is asked for at a terminal.

use rustix::{
    fs::{Mode, OFlags, open},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};
use std::{
    io::Read as _,
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

/// Both ends; a process has the second one as its terminal.
pub fn terminal() -> (OwnedFd, OwnedFd) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
    let user = user.expect("a terminal");
    grantpt(&user).expect("it is ours");
    unlockpt(&user).expect("it is ours");
    let name = ptsname(&user, Vec::new()).expect("a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let program = open(name.as_c_str(), flags, Mode::empty()).expect("it opens");
    (user, program)
}

fn is_shown(terminal: &OwnedFd) -> bool {
    let modes = tcgetattr(terminal).expect("a terminal").local_modes;
    modes.contains(LocalModes::ECHO)
}

/// Else the user's shell would not show what is typed, either.
#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    for (signal, code) in [
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
        (Signal::TERM, 143),
    ] {
        let (_user, program) = terminal();
        let input = program.try_clone().expect("a second one");
        assert!(is_shown(&program), "it is a new one");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tiphys"))
            .args(["account", "bcrypt"])
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut out = child.stdout.take().expect("it is piped");
        let (mut asked, mut part) = (Vec::new(), [0; 64]);
        while !asked.ends_with(b": ") {
            let read = out.read(&mut part).expect("it can be read");
            assert_ne!(read, 0, "it asks: {}", String::from_utf8_lossy(&asked));
            asked.extend_from_slice(&part[..read]);
        }
        assert!(!is_shown(&program), "a password is not shown");
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("an id"), signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        assert!(is_shown(&program), "as it was");
    }
}
