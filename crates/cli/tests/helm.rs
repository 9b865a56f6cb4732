//! `tiphys helm` compared with upstream `helm`: output, exit codes, and files written.
//!
//! `helm/transcript.txt` contains commands and the output of Helm 4.2.4 for the charts in
//! `helm/charts`. `HELM=<path of helm>` checks that program against it, and with
//! `UPDATE_TRANSCRIPT=1` records it again; our own program is always compared with the transcript.
//! Below an error ours also shows the line that it refers to, which is left out here.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The current folder contains the charts; output is written to `$OUT`.
const STEPS: &[&str] = &[
    "template r good",
    "template r good-1.2.3.tgz",
    "template good -f values.yaml --namespace n",
    "template r good --include-crds --no-hooks --kube-version 1.30",
    "template r good --is-upgrade --skip-tests --api-versions example.com/v1 -s templates/config.yaml",
    "template r good -s templates/*.yaml --show-only charts/part/templates/service.yaml",
    "template r good -s templates/nothing.yaml",
    "template r good --set part.enabled=false,replicas=0 --set-string extra=5",
    "template r good --set-json extra={\"b\":[1.0,2]} --set-literal image.tag=a,b=c -s templates/config.yaml -s templates/deployment.yaml",
    "template r good --set-file extra=notes.txt -s templates/config.yaml",
    "template r good --set replicas=many",
    "template r good --set replicas=many --skip-schema-validation -s templates/deployment.yaml",
    "template r good --set part=1",
    "template r good --set part.bad=1",
    "template r good --set replicas",
    "template r good --set-json extra={",
    "template r good --set-file extra=nothing",
    "template r good -f nothing.yaml",
    "template r good -f notes.txt",
    "template r good --kube-version 1.19",
    "template r good --kube-version one",
    "template r good --output-dir $OUT/a --skip-tests",
    "template r good --output-dir $OUT/b --release-name --include-crds",
    "template r good more",
    "template r good -g",
    "template r good --name-template x",
    "template good --name-template {{print(\"X\"|lower)}}-1 -s templates/config.yaml",
    "template good --name-template {{",
    "template Wrong_Name good",
    "template r ./nothing",
    "template r broken",
    "template r broken --set mode=fail",
    "template r broken --set mode=required",
    "template r broken --set mode=nil",
    "template r broken --set mode=include",
    "template r broken --set mode=tpl",
    "template r broken --set mode=yaml",
    "template r unparsed",
    "template r lacking",
    "template r library",
    "lint good",
    "lint good-1.2.3.tgz",
    "lint good --quiet",
    "lint good --with-subcharts --kube-version 1.30",
    "lint good --set replicas=many",
    "lint good --set replicas=many --skip-schema-validation",
    "lint good --set part.bad=1",
    "lint broken",
    "lint broken --quiet --strict",
    "lint broken --set mode=yaml",
    "lint unparsed",
    "lint unread",
    "lint headless",
    "template r unread",
    "template r headless",
    "lint lacking",
    "lint lacking --strict good",
    "lint library",
    "lint nothing",
    "lint notes.txt",
    "lint noted",
    "lint noted --kubeconfig none --qps 5",
    "template r noted",
    "template r noted --set a=1 --atomic --dry-run",
    "template r noted --set a=1 --hide-notes --dry-run=true --kube-version= --output-dir= --server-side=false",
    "template noted --set a=1 --name-template= --force --username u --password p --color never",
    "template r good --kube-version 01.32.0",
    "template r good --dry-run=none",
];

/// The text below errors.
const YAML: &str = "
 --> made by broken/templates/one.yaml
1 | apiVersion: extensions/v1beta1
2 |   kind: Ingress
  |       ^
";
const NIL: &str = "
 --> broken/templates/two.yaml:4
4 | name: {{ .Values.a.b.c }}
  |                 ^
";
const UNPARSED: &str = "
 --> unparsed/templates/a.yaml:2
2 | name: {{ .Values.name | quote
";
const UNREAD: &str = "
 --> values.yaml:4
2 | image:
3 |   name: x
4 |  tag: \"1\"
  |  ^
";
const HEADLESS: &str = "
 --> Chart.yaml:3
1 | apiVersion: v2
2 | name: headless
3 | description: a: b
  |               ^
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helm")
}

/// A program's output for all steps.
fn transcript(program: &str, first: &[&str]) -> String {
    let out = tempfile::tempdir().expect("a temporary folder can be made");
    let charts = fs::canonicalize(folder().join("charts")).expect("the charts are there");
    let plain = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).replace(&*out.path().to_string_lossy(), "$OUT");
        text.replace(&*charts.to_string_lossy(), "$CHARTS")
    };
    let mut all = String::new();
    for step in STEPS {
        let words: Vec<String> = step
            .split(' ')
            .map(|word| word.replace("$OUT", &out.path().to_string_lossy()))
            .collect();
        let mut command = Command::new(program);
        command
            .args(first)
            .args(&words)
            .current_dir(&charts)
            .stdin(Stdio::null())
            .env_clear()
            .env("HOME", out.path());
        let output = command.output().expect("the program starts");
        let mut stderr = plain(&output.stderr);
        let mut blank = stderr.match_indices("\n\n").map(|(at, _)| at);
        if let Some(at) = blank.find(|at| stderr[*at..].trim_start().starts_with("--> ")) {
            stderr.truncate(at + 1);
        }
        all.push_str(&format!("$ helm {step}\n{}", plain(&output.stdout)));
        stderr
            .lines()
            .for_each(|line| all.push_str(&format!("! {line}\n")));
        all.push_str(&format!("= {}\n\n", output.status.code().unwrap_or(-1)));
    }
    all + &written(out.path(), "$OUT")
}

/// The files below a folder, with what is in them.
fn written(folder: &Path, shown: &str) -> String {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    entries.sort();
    let name = |path: &Path| {
        format!(
            "{shown}/{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        )
    };
    let visible = entries.iter().filter(|path| !name(path).contains("/."));
    let texts = visible.map(|path| match path.is_dir() {
        true => written(path, &name(path)),
        false => format!(
            "# {}\n{}\n",
            name(path),
            fs::read_to_string(path).expect("it is text")
        ),
    });
    texts.collect()
}

fn compare(program: &str, got: &str, want: &str) {
    let parts = |text: &str| text.split("$ helm ").map(str::to_owned).collect::<Vec<_>>();
    let (got, want) = (parts(got), parts(want));
    let wrong: Vec<String> = got
        .iter()
        .zip(&want)
        .filter(|(got, want)| got != want)
        .map(|(got, want)| format!("want: {want}\ngot: {got}"))
        .collect();
    assert!(
        wrong.is_empty() && got.len() == want.len(),
        "{program}: {} steps differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn ours_says_what_helm_says() {
    let recorded = folder().join("transcript.txt");
    if let Ok(helm) = std::env::var("HELM") {
        let genuine = transcript(&helm, &[]);
        if std::env::var("UPDATE_TRANSCRIPT").is_ok() {
            fs::write(&recorded, &genuine).expect("the transcript can be written");
        }
        compare(
            "helm",
            &genuine,
            &fs::read_to_string(&recorded).expect("the transcript is there"),
        );
    }
    let want = fs::read_to_string(&recorded).expect("the transcript is there");
    compare(
        "ours",
        &transcript(env!("CARGO_BIN_EXE_tiphys"), &["helm"]),
        &want,
    );
}

/// Like Helm, whose log also contains these lines twice when linting.
#[test]
fn links_that_are_followed_are_named() {
    let out = tempfile::tempdir().expect("a temporary folder can be made");
    let root = fs::canonicalize(out.path()).expect("it is there");
    fs::create_dir_all(root.join("chart/templates")).expect("a folder");
    fs::write(
        root.join("chart/Chart.yaml"),
        "apiVersion: v2\nname: a\nversion: 1.0.0\n",
    )
    .expect("a file");
    fs::write(root.join("shared.yaml"), "kind: C\nmetadata: {name: x}\n").expect("a file");
    std::os::unix::fs::symlink("../../shared.yaml", root.join("chart/templates/a.yaml"))
        .expect("a link");
    let message = "found symbolic link in path. Contents of linked file included and used";
    let root = root.display();
    let line = format!(
        "level=INFO msg=\"{message}\" path={root}/chart/templates/a.yaml resolved={root}/shared.yaml\n"
    );
    for (command, want) in [("template", line.clone()), ("lint", line.repeat(2))] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tiphys"));
        let output = program
            .args(["helm", command, "chart"])
            .current_dir(out.path())
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        assert_eq!(String::from_utf8_lossy(&output.stderr), want, "{command}");
        assert!(output.status.success(), "{command}");
    }
}

#[test]
fn errors_show_the_line_that_they_are_about() {
    for (step, want) in [
        ("template r broken --set mode=yaml", YAML),
        ("template r broken --set mode=nil", NIL),
        ("lint unparsed", UNPARSED),
        ("lint unread", UNREAD),
        ("lint headless", HEADLESS),
        ("template r unread", UNREAD),
        ("template r headless", HEADLESS),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
        command
            .arg("helm")
            .args(step.split(' '))
            .current_dir(folder().join("charts"))
            .stdin(Stdio::null());
        let output = command.output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.ends_with(want), "{step}: {stderr}");
    }
}
