//! The output of `tiphys completion bash`, in a real bash.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// Replaces the program that asks the server for names.
const SERVER: &str =
    r#"tiphys() { [[ "$*" == "app list -o name" ]] && printf 'argocd/shop\nargocd/web\n'; }"#;

#[test]
fn bash_completes_verbs_and_names() {
    let printed = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["completion", "bash"])
        .output()
        .expect("the program starts");
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).expect("a script is text");
    let rows = [
        ("tiphys app sy", "sync"),
        ("tiphys app sync argocd/w", "argocd/web"),
        ("tiphys app sync --pru", "--prune"),
    ];
    for (line, expected) in rows {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words.len() - 1, words[words.len() - 2]);
        let script = format!(
            "{printed}\n{SERVER}\nCOMP_WORDS=({line}); COMP_CWORD={last}\n_tiphys_names tiphys '{}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words[last],
        );
        let mut bash = Command::new("bash")
            .arg("-s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash is here");
        bash.stdin
            .take()
            .expect("a pipe")
            .write_all(script.as_bytes())
            .expect("it reads");
        let answer = bash.wait_with_output().expect("it ends");
        let answers = String::from_utf8_lossy(&answer.stdout);
        assert!(
            answers.lines().any(|a| a.trim() == expected),
            "{line}: {answers}"
        );
    }
}
