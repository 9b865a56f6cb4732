//! `tiphys kustomize build` compared with `kustomize`: output, exit codes, and files written.
//!
//! `kustomize/transcript.txt` contains commands and the output of kustomize 5.8.1 for the folders in
//! `kustomize/folders`. `KUSTOMIZE=<path of kustomize>` checks that program against it, and with
//! `UPDATE_TRANSCRIPT=1` records it again (`helm` must be beside it or in the PATH); our own program is always
//! compared with the transcript. Of an error only the exit code is compared.

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
