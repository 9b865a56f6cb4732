//! `tiphys admin settings rbac`: verdicts about the policy of a file.

use serde_json::Value;
use std::{fs, process::Command};
use tempfile::TempDir;

/// The exit code, what is printed, and the messages.
fn run(folder: &TempDir, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["admin", "settings", "rbac"])
        .args(args)
        .current_dir(folder)
        // No cluster of somebody's.
        .env("KUBECONFIG", folder.path().join("none"))
        .output()
        .expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

#[test]
fn policies_are_tried_before_they_are_used() {
    let folder = folder(&[
        (
            "p.csv",
            "p, role:dev, applications, *, web/*, allow\ng, alice, role:dev\n",
        ),
        ("bad.csv", "# a comment\np, a, b\n"),
        (
            "cm.yaml",
            "kind: ConfigMap\ndata:\n  policy.default: role:readonly\n  policy.more.csv: |\n    p, bob, clusters, create, *, allow\n",
        ),
    ]);
    for (args, code, out, err) in [
        (
            "can alice sync app web/a --policy-file p.csv",
            0,
            "Yes\n",
            "",
        ),
        ("can alice sync app db/a --policy-file p.csv", 1, "No\n", ""),
        (
            "can alice sync app web/a --policy-file p.csv --quiet",
            0,
            "",
            "",
        ),
        (
            "can bob create cluster x --policy-file cm.yaml",
            0,
            "Yes\n",
            "",
        ),
        ("can carl get proj x --policy-file cm.yaml", 0, "Yes\n", ""),
        ("can carl get proj x --policy-file p.csv", 1, "No\n", ""),
        (
            "can alice fly app web/a --policy-file p.csv",
            1,
            "",
            "'fly' is not a valid action",
        ),
        ("can alice get app web/a --policy-file none", 1, "", "none"),
        ("validate --policy-file p.csv", 0, "Policy is valid.\n", ""),
        (
            "validate --policy-file bad.csv",
            1,
            "Policy is invalid: line 2: invalid RBAC policy: p, a, b\n",
            "",
        ),
    ] {
        let words: Vec<&str> = args.split(' ').collect();
        let (got, stdout, stderr) = run(&folder, &words);
        assert_eq!((got, stdout.as_str()), (code, out), "{args}: {stderr}");
        assert!(stderr.contains(err), "{args}: {stderr}");
    }
}

/// The command line's cases of suite `rbac`. Where Argo CD crashes or prints `<nil>`, ours answers.
#[test]
fn recorded_answers_are_given() {
    let Some(cases) = tiphys_testkit::shared("cases/rbac.jsonl") else {
        return;
    };
    let cases = fs::read_to_string(cases).expect("the cases");
    let mut compared = 0;
    let all = cases
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    for case in all.filter(|case| case["kind"] == "cli") {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in case["files"].as_object().into_iter().flatten() {
            fs::write(folder.path().join(name), text.as_str().unwrap_or_default())
                .expect("written");
        }
        let args: Vec<&str> = case["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let (code, stdout, stderr) = run(&folder, &args);
        let want = case["stdout"].as_str().unwrap_or_default();
        let id = &case["id"];
        match case["exit"].as_i64() {
            // A crash.
            Some(2) => assert_eq!(
                (code, stdout.as_str()),
                (0, "Yes\n"),
                "{id} {args:?}: {stderr}"
            ),
            Some(0) => assert_eq!(
                (code, stdout.as_str()),
                (0, want),
                "{id} {args:?}: {stderr}"
            ),
            _ => {
                assert_ne!(code, 0, "{id} {args:?}");
                if matches!(want, "No\n" | "") {
                    assert_eq!(stdout, want, "{id} {args:?}: {stderr}");
                }
            }
        }
        compared += 1;
    }
    assert_eq!(compared, 47);
}
