//! What is printed of words that are no command line, on which stream, and the exit codes: as the
//! `argocd` command does it.

use std::{
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

/// Exit code, standard output and standard error.
fn said(line: &str) -> (Option<i32>, String, String) {
    said_as("tiphys", line)
}

/// The same of the program under another name.
fn said_as(name: &str, line: &str) -> (Option<i32>, String, String) {
    let home = tempfile::tempdir().expect("a folder");
    let program = home.path().join(name);
    symlink(env!("CARGO_BIN_EXE_tiphys"), &program).expect("a link");
    let out = Command::new(program)
        .args(line.split_whitespace())
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

/// Where words stand in the line says nothing: values and names may be those of commands.
#[test]
fn a_misuse_ends_with_the_code_of_the_command_that_is_meant() {
    for (line, code) in [
        ("app diff", 2),
        ("app diff a b", 2),
        ("--server h:1 app diff", 2),
        ("--plaintext --server=app app diff", 2),
        // As `argocd` does it.
        ("app diff a --nope", 1),
        ("app diff a --exit-code=maybe", 1),
        ("appset plan", 2),
        ("appset plan a b", 2),
        ("appset plan a --nope", 2),
        ("appset plan a -z", 2),
        ("appset plan a --diff-exit-code x", 2),
        ("--server app appset plan --nope", 2),
        ("--server diff app list --nope", 1),
        ("app list --selector diff --nope", 1),
        ("app get diff b", 1),
        ("appset get plan --nope", 1),
        ("version --nope", 1),
    ] {
        let (ended, out, error) = said(line);
        assert_eq!((ended, error.as_str()), (Some(code), ""), "{line}: {out}");
        assert!(!out.is_empty(), "{line}");
    }
    // Not Argo CD's: an error is for standard error.
    for (line, code) in [
        ("--server app diff --nope", 2),
        ("helm template app . --nope", 1),
        ("kustomize build app --nope", 1),
        ("catalog install app --nope", 1),
    ] {
        let (ended, out, error) = said(line);
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{line}: {error}");
        assert!(error.starts_with("error: "), "{line}: {error}");
    }
}

#[test]
fn no_failure_of_a_comparison_is_a_difference() {
    for line in ["app diff a", "appset plan a", "appset plan a -o nope"] {
        let (ended, out, error) = said(line);
        assert_eq!((ended, out.as_str()), (Some(20), ""), "{line}: {error}");
    }
}

#[test]
fn the_name_of_the_program_changes_no_code() {
    for (name, line, code, on_output) in [
        ("argocd", "app diff", 2, true),
        ("argocd", "appset plan --nope", 2, true),
        ("argocd", "diff --nope", 2, false),
        ("argocd", "--nope", 1, true),
        ("argocd", "-z", 1, true),
        ("argocd", "", 0, true),
        // The word after `help` is what nobody knows.
        ("argocd", "help nope", 1, true),
        ("tiphys", "--nope", 1, false),
        ("kubectl", "diff --nope", 2, false),
        ("kubectl", "apply --nope", 1, false),
        ("kubectl", "app diff", 2, true),
        ("helm", "template app --nope", 1, false),
        ("helm", "diff --nope", 2, false),
    ] {
        let (ended, out, error) = said_as(name, line);
        assert_eq!(ended, Some(code), "{name} {line}: {out}{error}");
        let is_empty = (out.is_empty(), error.is_empty());
        assert_eq!(is_empty, (!on_output, on_output), "{name} {line}: {error}");
    }
}

#[test]
fn a_command_for_a_cluster_that_nobody_named_cannot_be_carried_out() {
    let why = "invalid configuration: no configuration has been provided, ";
    for (line, code, before) in [
        ("app list --port-forward", 1, ""),
        ("app list --core", 1, "error creating client config: "),
        ("app diff a --core", 20, "error creating client config: "),
        ("admin export", 20, ""),
        ("admin import -", 20, ""),
    ] {
        let (ended, out, error) = said(line);
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{line}");
        let record: serde_json::Value = serde_json::from_str(&error).expect("one line of JSON");
        let message = record["msg"].as_str().unwrap_or_default();
        assert!(message.starts_with(&format!("{before}{why}")), "{error}");
    }
}

#[test]
fn an_unknown_command_is_followed_by_similar_ones() {
    for (word, alike) in [
        ("clustr", "\nDid you mean this?\n\tcluster\n\n"),
        ("appsetx", "\nDid you mean this?\n\tappset\n\n"),
        ("nope", ""),
    ] {
        let (ended, out, _) = said_as("argocd", word);
        let expected = format!(
            "Error: unknown command \"{word}\" for \"argocd\"\n{alike}Run 'argocd --help' for \
             usage.\n"
        );
        assert_eq!((ended, out), (Some(1), expected.clone()));
        let flagged = said_as("argocd", &format!("--server {word} {word}"));
        assert_eq!((flagged.0, flagged.1), (Some(1), expected));
    }
}

#[test]
fn a_usage_names_the_program_as_it_was_called() {
    for name in ["argocd", "tiphys"] {
        let (ended, out, error) = said_as(name, "proj create");
        assert_eq!((ended, error.as_str()), (Some(1), ""));
        let usage = format!("Usage: {name} proj create ");
        assert!(out.contains(&usage), "{out}");
    }
}

#[test]
fn a_backup_that_is_not_there_is_a_record_of_the_log() {
    let (ended, out, error) = said("admin import nope -n argocd");
    assert_eq!((ended, out.as_str()), (Some(20), ""));
    let record: serde_json::Value = serde_json::from_str(&error).expect("one line of JSON");
    assert_eq!(record["msg"], "open nope: no such file or directory");
}

#[test]
fn a_file_of_notifications_that_is_not_there_is_named_in_gos_words() {
    let (ended, out, error) = said("admin notifications template get --config-map nope");
    assert_eq!((ended, out.as_str()), (Some(1), ""));
    let record: serde_json::Value = serde_json::from_str(&error).expect("one line of JSON");
    assert_eq!(record["msg"], "file 'nope': no such file or directory");
}

#[test]
fn a_policy_is_validated_without_further_words() {
    let (ended, out, error) = said("admin settings rbac validate extra");
    assert_eq!(ended, Some(1));
    assert!(out.contains("Usage: "), "{out}");
    assert!(error.contains("\"msg\":\"too many arguments\""), "{error}");
}

#[test]
fn a_file_without_its_flag_is_followed_by_the_command_that_was_meant() {
    for (command, code) in [("apply", 1), ("diff", 2)] {
        let (ended, _, error) = said(&format!("{command} web.yaml"));
        assert_eq!(ended, Some(code), "{error}");
        let meant = format!("tiphys {command} -f web.yaml`");
        assert!(error.contains(&meant), "{error}");
        let (_, _, error) = said(&format!("{command} --nope"));
        assert!(!error.contains("hint: "), "{error}");
    }
}

#[test]
fn a_namespace_that_can_never_be_is_refused_before_anything_starts() {
    let long = "a".repeat(64);
    for name in ["Bad_NS", "-a", "a-", long.as_str()] {
        let (ended, _, error) = said(&format!("up --ephemeral --repo . --namespace={name}"));
        assert_eq!(ended, Some(1), "{error}");
        let refused = format!("invalid value '{name}' for '--namespace <N>'");
        assert!(error.contains(&refused), "{error}");
    }
}
