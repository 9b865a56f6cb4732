//! The output of `tiphys completion bash`, in a real bash.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// The program, but for the names that the server would tell.
const SERVER: &str = r#"tiphys() {
    case "$*" in
        "app list -o name") printf 'argocd/shop\nargocd/web\n' ;;
        "proj role list shop -o name") printf 'deployer\n' ;;
        "cluster list -o server") printf 'https://10.0.0.1\n' ;;
        "app list -o name --argocd-context other") printf 'argocd/other\n' ;;
        "proj list -o name") printf 'shop\n' ;;
        "repo list -o url") printf 'https://git.example/r\nhttps://g/$(echo${IFS}x>ran)\n' ;;
        *) "$TIPHYS_BIN" "$@" ;;
    esac
}"#;

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
        ("tiphys app sync --project x argocd/s", "argocd/shop"),
        ("tiphys app sync --pru", "--prune"),
        ("tiphys proj role get shop d", "deployer"),
        ("tiphys cluster rm h", "https://10.0.0.1"),
        // The names of the server that the command is for.
        ("tiphys app get --argocd-context other a", "argocd/other"),
        ("tiphys --argocd-context other app delete a", "argocd/other"),
        ("tiphys app sync --project=s", "shop"),
        // readline replaces what is behind the colon.
        ("tiphys repo rm https://gi", "//git.example/r"),
        ("tiphys repo rm https:", "//git.example/r"),
        (
            "tiphys repo rm h",
            "https://g/\\$\\(echo\\$\\{IFS\\}x\\>ran\\)",
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (line, expected) in rows {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words.len() - 1, words[words.len() - 2]);
        let script = format!(
            "{printed}\n{SERVER}\nCOMP_WORDS=({line}); COMP_CWORD={last}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}\n_tiphys_names tiphys '{}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words[last],
        );
        let mut bash = Command::new("bash")
            .arg("-s")
            .current_dir(folder.path())
            .env("TIPHYS_BIN", env!("CARGO_BIN_EXE_tiphys"))
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
    let ran = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(ran, 0, "a name is no command");
}
