//! The output of `tiphys completion`, in real shells: what bash's function answers, and what each
//! shell makes of what is typed, on a terminal.

use std::{
    io::Write as _,
    path::Path,
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

/// The script for a shell.
fn printed(shell: &str) -> String {
    let printed = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["completion", shell])
        .output()
        .expect("the program starts");
    assert!(printed.status.success(), "{printed:?}");
    String::from_utf8(printed.stdout).expect("a script is text")
}

#[test]
fn bash_completes_verbs_and_names() {
    let printed = printed("bash");
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

/// A shell that sources the script and has, as a function in its language, a program that knows some
/// names and writes down with which arguments it is called.
struct Shell {
    name: &'static str,
    /// The command that reads `rc`, in the folder of [`Self::rc`].
    command: &'static str,
    /// The file that it reads when it starts.
    rc: &'static str,
    /// Before the script.
    begin: &'static str,
    /// After it.
    end: &'static str,
}

const FUNCTION: &str = r#"
tiphys() {
    case "$*" in
        "app list -o name") printf '%s\n' argocd/shop argocd/web ;;
        "proj list -o name") printf '%s\n' shop ;;
        "cluster list -o server") ;;
        "repo list -o url")
            printf '%s\n' https://git.example/r 'plain$(touch ran)' 'semi;touch ran' 'back`touch ran`' "quote's \"b\" c" ;;
        completion*) "$TIPHYS_BIN" "$@" ;;
        *) printf '%s\n' "$#" "$@" >> "$RECORD" ;;
    esac
}
"#;

const BASH: Shell = Shell {
    name: "bash",
    command: "bash --noprofile --rcfile ../rc -i",
    rc: "rc",
    begin: "",
    end: FUNCTION,
};

const ZSH: Shell = Shell {
    name: "zsh",
    command: "ZDOTDIR=.. zsh -d -i",
    rc: ".zshrc",
    begin: "autoload -Uz compinit && compinit -u -D\n",
    end: FUNCTION,
};

const FISH: Shell = Shell {
    name: "fish",
    command: "fish --no-config --init-command 'source ../rc'",
    rc: "rc",
    begin: "",
    end: r#"
function tiphys
    switch "$argv"
        case "app list -o name"
            printf '%s\n' argocd/shop argocd/web
        case "proj list -o name"
            printf '%s\n' shop
        case "cluster list -o server"
        case "repo list -o url"
            printf '%s\n' https://git.example/r 'plain$(touch ran)' 'semi;touch ran' 'back`touch ran`' 'quote\'s "b" c'
        case "completion*"
            $TIPHYS_BIN $argv
        case "*"
            printf '%s\n' (count $argv) $argv >> $RECORD
    end
end
"#,
};

/// What is typed before the tabulator, and the arguments with which the program is called then.
const TYPED: [(&str, &[&str]); 11] = [
    ("app sy", &["app", "sync"]),
    ("app get argocd/w", &["app", "get", "argocd/web"]),
    (
        "app sync --project s",
        &["app", "sync", "--project", "shop"],
    ),
    ("app sync --project=s", &["app", "sync", "--project=shop"]),
    ("repo rm ht", &["repo", "rm", "https://git.example/r"]),
    // Names that would run if they were not quoted.
    ("repo rm pl", &["repo", "rm", "plain$(touch ran)"]),
    ("repo rm se", &["repo", "rm", "semi;touch ran"]),
    ("repo rm ba", &["repo", "rm", "back`touch ran`"]),
    ("repo rm qu", &["repo", "rm", "quote's \"b\" c"]),
    // The server knows none.
    ("cluster rm x", &["cluster", "rm", "x"]),
    // Where no name is wanted, files are still completed.
    (
        "app create -f man",
        &["app", "create", "-f", "manifest.yaml"],
    ),
];

/// What a shell on a terminal calls the program with when all is typed; `folder` becomes its own.
fn typed(shell: &Shell, folder: &Path) -> String {
    let script = [shell.begin, &printed(shell.name), shell.end].concat();
    std::fs::write(folder.join(shell.rc), script).expect("a file");
    let work = folder.join("work");
    std::fs::create_dir(&work).expect("a folder");
    std::fs::write(work.join("manifest.yaml"), "").expect("a file");
    let record = folder.join("record");
    // A terminal of its own; `timeout` ends a shell that does not end.
    let mut terminal = Command::new("timeout")
        .args(["300", "script", "-qec", shell.command, "/dev/null"])
        .current_dir(&work)
        .env("TIPHYS_BIN", env!("CARGO_BIN_EXE_tiphys"))
        .env("RECORD", &record)
        .env("HOME", folder)
        .env("TERM", "dumb")
        .env("SHELL", "/bin/sh")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`timeout` is here");
    // It stays open: its end would end the terminal while the shell still reads.
    let mut keys = terminal.stdin.take().expect("a pipe");
    for (line, _) in TYPED {
        keys.write_all(format!("tiphys {line}\t\n").as_bytes())
            .expect("it reads");
    }
    keys.write_all(b"exit\n").expect("it reads");
    let shown = terminal.wait_with_output().expect("it ends");
    let called = std::fs::read_to_string(&record).unwrap_or_default();
    let ran = work.join("ran").exists();
    assert!(
        !ran,
        "a name is no command: {called}\n{}",
        String::from_utf8_lossy(&shown.stdout)
    );
    called
}

fn completes_what_is_typed(shell: &Shell) {
    let lacks = |program: &str| Command::new(program).arg("--version").output().is_err();
    if let Some(program) = ["script", shell.name].into_iter().find(|p| lacks(p)) {
        return tiphys_testkit::skip(program, &format!("there is no {program} here"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let called = typed(shell, folder.path());
    let expected: String = TYPED
        .iter()
        .map(|(_, arguments)| format!("{}\n{}\n", arguments.len(), arguments.join("\n")))
        .collect();
    assert_eq!(called, expected, "{}", shell.name);
}

#[test]
fn bash_completes_what_is_typed() {
    completes_what_is_typed(&BASH);
}

#[test]
fn zsh_completes_what_is_typed() {
    completes_what_is_typed(&ZSH);
}

#[test]
fn fish_completes_what_is_typed() {
    completes_what_is_typed(&FISH);
}
