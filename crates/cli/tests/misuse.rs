//! What is printed of words that are no command line, on which stream, and the exit codes: as the
//! `argocd` command does it.

use std::process::{Command, Stdio};

/// Exit code, standard output and standard error.
fn said(line: &str) -> (Option<i32>, String, String) {
    let home = tempfile::tempdir().expect("a folder");
    let out = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(line.split(' '))
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn groups_say_on_standard_output_how_they_are_used() {
    for (line, code) in [
        ("app", 1),
        ("app nope", 1),
        ("app actions", 1),
        ("proj windows nope", 1),
        ("cluster nope", 1),
        ("admin cluster", 0),
    ] {
        let (ended, out, error) = said(line);
        assert!(out.contains("Usage: "), "{line}: {out}");
        assert_eq!((ended, error.as_str()), (Some(code), ""), "{line}");
    }
}

#[test]
fn one_fault_is_one_line_on_standard_output() {
    for (line, expected) in [
        ("app list -z", "Error: unknown shorthand flag: 'z' in -z\n"),
        (
            "app get-resource a",
            "Error: required flag(s) \"kind\" not set\n",
        ),
        (
            "app sync a --retry-backoff-duration bad",
            "Error: invalid argument \"bad\" for \"--retry-backoff-duration\" flag: time: invalid \
             duration \"bad\"\n",
        ),
        (
            "completion tcsh",
            "Invalid shell 'tcsh'. The supported shells are bash, zsh and fish.\n",
        ),
    ] {
        let (ended, out, error) = said(line);
        assert_eq!(
            (ended, out.as_str(), error.as_str()),
            (Some(1), expected, ""),
            "{line}"
        );
    }
}

/// 1 says that something differs, on which scripts rely.
#[test]
fn a_diff_that_was_not_understood_is_no_difference() {
    for line in [
        "diff --nope",
        "diff -f app --nope",
        "diff -f a.yaml --request-timeout=abc",
        "diff -f a.yaml app",
    ] {
        let (ended, out, error) = said(line);
        assert_eq!((ended, out.as_str()), (Some(2), ""), "{line}: {error}");
        assert!(error.starts_with("error: "), "{line}: {error}");
    }
    assert_eq!(said("diff --help").0, Some(0));
    assert_eq!(said("apply --nope").0, Some(1));
}

#[test]
fn a_backup_that_is_not_there_is_a_record_of_the_log() {
    let (ended, out, error) = said("admin import nope -n argocd");
    assert_eq!((ended, out.as_str()), (Some(20), ""));
    let record: serde_json::Value = serde_json::from_str(&error).expect("one line of JSON");
    assert_eq!(record["msg"], "open nope: no such file or directory");
}

#[test]
fn a_policy_is_validated_without_further_words() {
    let (ended, out, error) = said("admin settings rbac validate extra");
    assert_eq!(ended, Some(1));
    assert!(out.contains("Usage: "), "{out}");
    assert!(error.contains("\"msg\":\"too many arguments\""), "{error}");
}
