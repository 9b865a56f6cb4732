//! `tiphys kustomize build` compared with `kustomize`: output, exit codes, and files written.
//!
//! `kustomize/transcript.txt` contains commands and the output of kustomize 5.8.1 for the folders in
//! `kustomize/folders`. `KUSTOMIZE=<path of kustomize>` checks that program against it, and with
//! `UPDATE_TRANSCRIPT=1` records it again (`helm` must be beside it or in the PATH); our own program is always
//! compared with the transcript. Of an error only the exit code is compared.

#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The current folder contains the kustomizations; output is written to `$OUT`.
const STEPS: &[&str] = &[
    "build base",
    "build overlay",
    "build overlay --output $OUT/overlay.yaml",
    "build overlay --as-current-user --load-restrictor LoadRestrictionsNone",
    "build chart",
    "build chart --enable-helm",
    "build nothing",
    "build base overlay",
    "build base --load-restrictor none",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kustomize")
}

/// A program's output for all steps.
fn transcript(program: &str, first: &[&str]) -> String {
    let out = tempfile::tempdir().expect("a temporary folder can be made");
    // The real one starts a helm.
    let beside = Path::new(program)
        .parent()
        .expect("a program is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", beside.display());
    let mut all = String::new();
    for step in STEPS {
        let place = out.path().to_string_lossy();
        let words = step.split(' ').map(|word| word.replace("$OUT", &place));
        let mut command = Command::new(program);
        command
            .args(first)
            .args(words)
            .current_dir(folder().join("folders"))
            .env("PATH", &path)
            .stdin(Stdio::null());
        let output = command.output().expect("the program starts");
        let stdout = String::from_utf8_lossy(&output.stdout);
        let code = output.status.code().unwrap_or(-1);
        assert_eq!(code == 0, output.stderr.is_empty(), "{step}: {output:?}");
        // Shown when the test fails: of an error only the exit code is compared.
        println!("{step}: {}", String::from_utf8_lossy(&output.stderr));
        all.push_str(&format!("$ kustomize {step}\n{stdout}= {code}\n\n"));
    }
    let written = fs::read_to_string(out.path().join("overlay.yaml")).expect("it is written");
    all + "# $OUT/overlay.yaml\n" + &written
}

#[test]
fn ours_builds_what_kustomize_builds() {
    let recorded = folder().join("transcript.txt");
    if let Ok(kustomize) = std::env::var("KUSTOMIZE") {
        let genuine = transcript(&kustomize, &[]);
        if std::env::var("UPDATE_TRANSCRIPT").is_ok() {
            fs::write(&recorded, &genuine).expect("the transcript can be written");
        }
        let want = fs::read_to_string(&recorded).expect("the transcript is there");
        compare(&genuine, &want);
    }
    let want = fs::read_to_string(&recorded).expect("the transcript is there");
    compare(
        &transcript(env!("CARGO_BIN_EXE_tiphys"), &["kustomize"]),
        &want,
    );
}

fn compare(got: &str, want: &str) {
    let steps = |text: &str| {
        text.split("$ kustomize ")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (got, want) = (steps(got), steps(want));
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        assert_eq!(got, want);
    }
}

const SEVERAL: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a.b, namespace: One}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
---
apiVersion: v1
kind: Namespace
metadata: {name: one}
";

/// The names are those that kustomize 5.8.1 gives.
#[test]
fn a_folder_gets_a_file_for_each_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let kustomization = folder.path().join("kustomization.yaml");
    let build = |texts: &str, out: &Path| {
        fs::write(folder.path().join("all.yaml"), texts).expect("written");
        fs::write(&kustomization, "resources: [all.yaml]\n").expect("written");
        let words = [folder.path(), out].map(|path| path.to_str().expect("UTF-8"));
        let words = ["kustomize", "build", words[0], "-o", words[1]];
        tiphys_testkit::output_of(env!("CARGO_BIN_EXE_tiphys").as_ref(), &words)
    };
    let out = tempfile::tempdir().expect("a folder");
    let ended = build(SEVERAL, out.path());
    assert_eq!((ended.code, &*ended.stdout), (Some(0), ""), "{ended:?}");
    let mut names: Vec<String> = fs::read_dir(out.path())
        .expect("it is there")
        .map(|entry| entry.expect("a file").file_name().into_string())
        .collect::<Result<_, _>>()
        .expect("UTF-8");
    names.sort();
    assert_eq!(
        names,
        [
            "default_apps_v1_deployment_d.yaml",
            "one_v1_configmap_a.b.yaml",
            "v1_namespace_one.yaml"
        ]
    );
    let namespace = fs::read_to_string(out.path().join(&names[2])).expect("a file");
    assert_eq!(
        namespace,
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one\n"
    );
    // A name must not lead out of the folder.
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \
                ../../x}\n";
    let refused = build(role, out.path());
    assert!(
        refused.code == Some(1) && refused.stderr.contains("cannot be written to the file"),
        "{refused:?}"
    );
    let nowhere = build(SEVERAL, &out.path().join("no/file"));
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert!(
        nowhere.stderr.contains("no/file: no such file"),
        "{nowhere:?}"
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["kustomize", "build", "base"])
        .current_dir(folder().join("folders"))
        .stdin(Stdio::null())
        .stdout(writer)
        .output()
        .expect("the program starts");
    let error = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), &*error), (Some(0), ""));
}

/// Links are followed before the file is judged.
#[test]
fn files_outside_of_the_folder_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let over = folder.path().join("over");
    std::fs::create_dir(&over).expect("a folder");
    std::fs::write(folder.path().join("secret.txt"), "x").expect("written");
    std::fs::write(over.join("real.txt"), "x").expect("written");
    let build = |file: &str, target: &str| {
        let link = over.join(file);
        std::os::unix::fs::symlink(target, link).expect("a link");
        let text = format!("configMapGenerator:\n- {{name: made, files: [{file}]}}\n");
        std::fs::write(over.join("kustomization.yaml"), text).expect("written");
        let words = ["kustomize", "build", over.to_str().expect("UTF-8")];
        tiphys_testkit::output_of(env!("CARGO_BIN_EXE_tiphys").as_ref(), &words)
    };
    let within = build("within.txt", "real.txt");
    assert!(within.stdout.contains("within.txt: x"), "{within:?}");
    for (file, target) in [("above.txt", "../secret.txt"), ("far.txt", "/etc/hostname")] {
        let refused = build(file, target);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("security; file") && refused.stdout.is_empty(),
            "{refused:?}"
        );
    }
}

/// Builds a folder; what it prints, or what it says of an error.
fn built(folder: &Path) -> Result<String, String> {
    let mut tiphys = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    tiphys.args(["kustomize", "build", "--enable-helm"]);
    let output = tiphys.arg(folder).stdin(Stdio::null()).output();
    let output = output.expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// What people reported (`../shared/cases/reports/sources`), byte for byte. Where the genuine program
/// is wrong, what it prints is right, too.
#[test]
fn reports() {
    let Some(root) = tiphys_testkit::shared("cases/reports/sources") else {
        return;
    };
    let read = |path: &Path| fs::read_to_string(path);
    let folders = fs::read_dir(&root).expect("cases").flatten();
    let mut numbers = Vec::new();
    let mut wrong = String::new();
    for case in folders.map(|folder| folder.path()) {
        let name = case.file_name().expect("a name").to_string_lossy();
        let number = name.split('-').next().unwrap_or_default().to_owned();
        if !case.join("in/kustomization.yaml").is_file() {
            continue;
        }
        let right = ["expected.yaml", "genuine.yaml"].map(|file| read(&case.join(file)).ok());
        let built = built(&case.join("in"));
        if !right.contains(&built.clone().ok()) {
            wrong.push_str(&format!("{name}: {built:?}\n"));
        }
        numbers.push(number);
    }
    assert_eq!(wrong, "");
    numbers.sort();
    let all = "01 03 05 07 08 10 12 15 17 19 20 22 23 24 27 31";
    assert_eq!(numbers.join(" "), all);

    let out = tempfile::tempdir().expect("a temporary folder can be made");
    let anchors = root.join("13-yaml-anchors");
    let copy = out.path().join("29");
    let mut cp = Command::new("cp");
    cp.arg("-r")
        .arg(root.join("29-files-outside-the-root"))
        .arg(&copy);
    assert!(cp.status().expect("cp runs").success());
    let made = Command::new("sh").arg(copy.join("setup.sh")).status();
    assert!(made.expect("sh runs").success());
    for (folder, expected) in [
        (anchors.join("a"), anchors.join("expected-a.yaml")),
        (anchors.join("b"), anchors.join("expected-b.yaml")),
        (copy.join("c/over"), copy.join("expected-c.yaml")),
        (copy.join("d/over"), copy.join("expected-d.yaml")),
    ] {
        let built = built(&folder).expect("built");
        assert_eq!(built, read(&expected).expect("a file"), "{folder:?}");
    }
    for (folder, expected) in [
        (anchors.join("c"), anchors.join("expected-error-c.txt")),
        (copy.join("a/over"), copy.join("expected-error.txt")),
        (copy.join("b/over"), copy.join("expected-error.txt")),
    ] {
        let failed = built(&folder).expect_err("it must not be built");
        for line in read(&expected).expect("a file").lines() {
            assert!(failed.contains(line), "{folder:?}: {failed}");
        }
    }
}
