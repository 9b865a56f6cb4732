//! `cargo xtask examples DIR`: the folders of a clone of argocd-example-apps, each deployed by
//! `tiphys up --once`, with one line for each.
//!
//! Main function: [`run`]. The clone must lie on this machine; nothing is fetched.

use anyhow::{Context, bail};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Instant,
};

/// What a genuine Argo CD deploys with nothing but the folder. The others are Applications of the
/// rest (`apps`), or lack something: a CRD and its controller (`blue-green`), a chart of the web
/// (`helm-dependency`), arguments (`jsonnet-guestbook-tla`), a plugin (`plugins`).
const FOLDERS: [&str; 8] = [
    "guestbook",
    "helm-guestbook",
    "helm-hooks",
    "jsonnet-guestbook",
    "kustomize-guestbook",
    "pre-post-sync",
    "sock-shop",
    "sync-waves",
];

/// How the line begins that `tiphys up --once` ends with; the time follows, and nothing else.
const WELL: &str = "all Synced and Healthy after ";

/// The longest reason that is printed.
const LONGEST: usize = 600;

#[derive(clap::Args)]
pub struct Args {
    /// The clone, bare or with its files
    dir: PathBuf,
    /// Only this folder; may be given again [default: those that Argo CD deploys]
    #[arg(long, value_name = "NAME")]
    folder: Vec<String>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// How long to wait for each, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

pub fn run(root: &Path, args: &Args) -> anyhow::Result<()> {
    let program = crate::bench::program(root, args.program.as_deref())?;
    let dir = args.dir.canonicalize();
    let dir = dir.with_context(|| args.dir.display().to_string())?;
    let folders: Vec<&str> = match &args.folder[..] {
        [] => FOLDERS.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let mut failed = 0;
    for folder in &folders {
        let began = Instant::now();
        let output = up(&program, &dir, folder, args.timeout)?;
        match verdict(&output) {
            Ok(()) => println!(
                "{folder}: Synced and Healthy after {:.1} s",
                began.elapsed().as_secs_f64()
            ),
            Err(why) => {
                failed += 1;
                println!("{folder}: {why}");
            }
        }
    }
    if failed > 0 {
        bail!(
            "{failed} of {} folders are not Synced and Healthy",
            folders.len()
        );
    }
    Ok(())
}

fn up(program: &Path, dir: &Path, folder: &str, timeout: u64) -> anyhow::Result<Output> {
    Command::new(program)
        .args(["up", "--once", "--ephemeral", "--port", "0", "--repo"])
        .arg(dir)
        .args(["--path", folder, "--namespace", folder, "--timeout"])
        .arg(timeout.to_string())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} does not start", program.display()))
}

/// Why a folder is not deployed, on one line.
fn verdict(output: &Output) -> Result<(), String> {
    let on_one_line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join("; ");
        line.chars().take(LONGEST).collect::<String>()
    };
    if !output.status.success() {
        let why = on_one_line(&output.stderr);
        return Err(if why.is_empty() {
            output.status.to_string()
        } else {
            why
        });
    }
    // A folder of nothing is Synced and Healthy, too, which the program adds to this line. Another
    // wording fails the task.
    let said = String::from_utf8_lossy(&output.stdout);
    let is_well = |line: &str| {
        let took = line.strip_prefix(WELL)?.strip_suffix(" s")?;
        took.parse::<f64>().ok()
    };
    if said.lines().any(|line| is_well(line).is_some()) {
        return Ok(());
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(match last {
        Some(line) => on_one_line(line.as_bytes()),
        None => "it does not say that all is Synced and Healthy".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Runs the task with a stand-in for the program, which writes its arguments down.
    fn tried(script: &str, folders: &[&str]) -> (Result<(), String>, String) {
        let place = tempfile::tempdir().expect("a folder");
        let (program, log) = (place.path().join("tiphys"), place.path().join("log"));
        let text = format!("#!/bin/sh\necho \"$*\" >> '{}'\n{script}\n", log.display());
        // Written by another process: a program that this one has open for writing, or a child that
        // another test starts at this moment, cannot be started.
        let mut sh = Command::new("sh");
        sh.args(["-c", "printf %s \"$1\" > \"$2\" && chmod +x \"$2\"", "sh"]);
        let written = sh.arg(text).arg(&program).status();
        assert!(written.expect("sh runs").success());
        let args = Args {
            dir: place.path().to_owned(),
            folder: folders.iter().map(|&name| name.to_owned()).collect(),
            program: Some(program),
            timeout: 7,
        };
        let outcome = run(place.path(), &args).map_err(|e| e.to_string());
        let real = place.path().canonicalize().expect("it is there");
        let log = fs::read_to_string(&log).expect("the program was started");
        (outcome, log.replace(&real.display().to_string(), "DIR"))
    }

    #[test]
    fn every_folder_is_deployed_by_itself() {
        let (outcome, log) = tried("echo 'all Synced and Healthy after 1.00 s'", &[]);
        assert_eq!(outcome, Ok(()));
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), FOLDERS.len());
        assert_eq!(
            lines[0],
            "up --once --ephemeral --port 0 --repo DIR --path guestbook --namespace guestbook --timeout 7"
        );
    }

    #[test]
    fn one_that_fails_fails_the_task_after_the_others() {
        let script = "case \"$*\" in *second*) echo 'error: no' >&2; exit 1;; esac; \
                      echo 'all Synced and Healthy after 1.00 s'";
        let (outcome, log) = tried(script, &["first", "second", "third"]);
        let expected = "1 of 3 folders are not Synced and Healthy";
        assert_eq!(outcome, Err(expected.to_owned()));
        assert_eq!(log.lines().count(), 3);
    }

    #[test]
    fn the_reason_is_one_line_and_nothing_is_not_enough() {
        let ended = |script: &str| {
            let mut sh = Command::new("sh");
            verdict(&sh.args(["-c", script]).output().expect("sh runs"))
        };
        assert_eq!(ended("echo 'all Synced and Healthy after 1 s'"), Ok(()));
        let why = ended("printf 'error: it does not:\\n\\n  a: Degraded\\n' >&2; exit 1");
        assert_eq!(why, Err("error: it does not:; a: Degraded".to_owned()));
        let line = "all Synced and Healthy after 1.00 s, but nothing was rendered for a: none";
        assert_eq!(ended(&format!("echo '{line}'")), Err(line.to_owned()));
        let why = ended("echo 'NAME SYNC'; echo 'it is well'; echo");
        assert_eq!(why, Err("it is well".to_owned()));
        assert!(ended("true").is_err());
        assert_eq!(ended("exit 3"), Err("exit status: 3".to_owned()));
    }
}
