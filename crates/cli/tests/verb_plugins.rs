//! Programs in PATH as verbs of the command line.

use crate::scenarios::world::program;
use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

#[test]
fn a_program_in_path_is_a_verb() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let plugin = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its own");
    };
    plugin("argocd-greet", "#!/bin/sh\necho \"$# $1\"\nexit 7\n", 0o755);
    plugin("argocd-version", "#!/bin/sh\necho never\n", 0o755);
    plugin("argocd-app", "#!/bin/sh\necho this plugin ran\n", 0o755);
    plugin("argocd-help", "#!/bin/sh\necho this plugin ran\n", 0o755);
    plugin("argocd-plain", "#!/bin/sh\necho never\n", 0o644);
    let run = |path: &str, words: &[&str]| {
        let path = path.replace("<DIR>", &folder.path().display().to_string());
        let mut command = Command::new(program());
        let ended = command
            .args(words)
            .env("PATH", path)
            .current_dir(folder.path());
        let ended = ended.output().expect("it starts");
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        (ended.status.code(), text)
    };
    let path = "<DIR>:/usr/bin:/bin";
    let greeted = "2 --server\nError: exit status 7\n".to_owned();
    assert_eq!(run(path, &["greet", "--server", "x y"]), (Some(7), greeted));
    let (code, text) = run(path, &["version", "--client", "--short"]);
    assert!(
        code == Some(0) && !text.contains("never"),
        "ours come first: {text}"
    );
    // It is the word after our command that nobody knows.
    for words in [["app", "nope"], ["help", "nope"]] {
        let (code, text) = run(path, &words);
        assert!(
            code == Some(1) && !text.contains("this plugin ran"),
            "{words:?}: {text}"
        );
    }
    for (path, words) in [
        (path, ["plain"]),
        (path, ["nobody"]),
        (path, ["../argocd-greet"]),
        // What a relative folder holds depends on where one is.
        (".:/usr/bin:/bin", ["greet"]),
    ] {
        let (code, text) = run(path, &words);
        assert!(
            code == Some(1) && !text.contains("never"),
            "{words:?}: {text}"
        );
    }
}
