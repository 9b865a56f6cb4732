//! Advice for a user at a terminal, who has configured nothing. Only of Linux is it known that a
//! terminal keeps what was written to it before its end.

use crate::password_prompt::terminal;
use std::{
    fs::File,
    io::Read as _,
    process::{Command, Stdio},
};
use tiphys_testkit::{Options, PATIENCE, Tiphys, eventually};

/// What a command that fails writes to a terminal.
fn told(words: &[&str]) -> String {
    let home = tempfile::tempdir().expect("a folder");
    let (user, program) = terminal();
    let status = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(words)
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(program)
        .status()
        .expect("it starts");
    assert!(!status.success(), "{words:?}");
    let (mut terminal, mut text, mut part) = (File::from(user), Vec::new(), [0; 4096]);
    // A terminal that nobody writes to any more ends with an error.
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        text.extend_from_slice(&part[..count]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn without_a_cluster_it_is_said_how_one_is_named() {
    for words in [
        &["admin", "initial-password"][..],
        &["app", "list", "--core"],
        &["app", "list", "--port-forward"],
    ] {
        let text = told(words);
        assert!(
            text.contains("no configuration has been provided"),
            "{text}"
        );
        assert!(text.contains("hint: set KUBECONFIG"), "{words:?}: {text}");
    }
}

#[test]
fn without_tls_where_there_is_some_it_is_said_which_flag_to_leave_out() {
    let tiphys = Tiphys::start(&Options {
        program: env!("CARGO_BIN_EXE_tiphys").into(),
        arguments: vec!["--tls".into()],
        ..Options::default()
    });
    eventually(PATIENCE, "the introduction is printed", || {
        let out = tiphys.stdout();
        let is_whole = out.contains("Ctrl-C stops.");
        if is_whole { Ok(()) } else { Err(out) }
    });
    let address = tiphys.url.trim_start_matches("http://");
    let who = ["--username", "admin", "--password", "any"];
    for how in [&["--plaintext"][..], &["--plaintext", "--grpc-web"]] {
        let text = told(&[&["login", address][..], how, &who].concat());
        assert!(text.contains("hint: if the server speaks TLS"), "{text}");
    }
}
