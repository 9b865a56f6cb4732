//! A session of an unmodified kubectl, command by command, compared with the output of the same
//! commands on a real control plane.
//!
//! `session/commands.txt` has the commands, `session/transcript.txt` the real output, and
//! `session/differences.txt` the commands whose output differs here, each with the reason; a listed
//! command that no longer differs is a failure too. Skipped if kubectl is not installed in the
//! recorded version (`KUBECTL` sets another path). `RECORD_SESSION=<kubeconfig>` plays the session
//! on that cluster, which must be a fresh one with nodes and controllers, and writes the
//! transcript.

use crate::server::support::start;
use regex::Regex;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tiphys_embedded_kube::Data;
use tokio::net::TcpListener;

const KUBECTL_VERSION: &str = "v1.36";
/// One command may take this long, in seconds.
const PATIENCE: &str = "120";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("a file of the session")
}

/// What differs from run to run, in the order in which it is replaced.
const VARYING: [(&str, &str); 17] = [
    (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "UID",
    ),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (
        r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
        "TIME",
    ),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "IP"),
    (r#"resourceVersion: "\d+""#, "resourceVersion: RV"),
    (r"pod-template-hash=[a-z0-9]+", "pod-template-hash=HASH"),
    (
        r"\b(web|shell|again|manual|once)-[bcdf0-9ghjklmnpqrstvwxz]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
        "$1-HASH-RANDOM",
    ),
    (r"\b(web)-[bcdf0-9ghjklmnpqrstvwxz]{8,10}\b", "$1-HASH"),
    (
        r"\b(once|again|manual|web)-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
        "$1-RANDOM",
    ),
    (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b|<invalid>|\b\d+m\b", "AGE"),
    // Before the ports: a process id may look like one.
    (r"\b[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\]", "LOG"),
    (r"\b3\d{4}\b", "PORT"),
    (r"/tmp/[\w./-]+", "PATH"),
    (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-RANDOM"),
    (r"node-[12]\b", "NODE"),
    (r"[ \t]{2,}", "  "),
];

struct Player {
    patterns: Vec<(Regex, &'static str)>,
    folder: tempfile::TempDir,
}

impl Player {
    fn new(program: &str, kubeconfig: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for entry in std::fs::read_dir(super::session::folder().join("files")).expect("the files") {
            let entry = entry.expect("a file");
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("a copy");
        }
        std::fs::create_dir(folder.path().join("bin")).expect("a folder");
        let program = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .output()
            .expect("sh runs");
        let program = String::from_utf8_lossy(&program.stdout).trim().to_owned();
        std::os::unix::fs::symlink(program, folder.path().join("bin/kubectl")).expect("a link");
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).expect("a file");
        let patterns = VARYING
            .iter()
            .map(|(pattern, to)| (Regex::new(pattern).expect("a pattern"), *to))
            .collect();
        Self { patterns, folder }
    }

    /// Exit code and output of a command, without what varies.
    fn run(&self, command: &str) -> String {
        let home = self.folder.path();
        let path = format!(
            "{}/bin:{}",
            home.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let output = Command::new("timeout")
            .args([PATIENCE, "sh", "-c", command])
            .current_dir(home)
            .env("LC_ALL", "C")
            .envs([
                ("KUBECONFIG", home.join("kubeconfig").as_os_str()),
                ("HOME", home.as_os_str()),
                ("PATH", path.as_ref()),
            ])
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        for (pattern, to) in &self.patterns {
            text = pattern.replace_all(&text, *to).into_owned();
        }
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        // How often a rollout reports on its way is chance.
        lines.retain(|l| !l.starts_with("Waiting for deployment") && !l.is_empty());
        format!(
            "[{}]\n{}",
            output.status.code().unwrap_or(-1),
            lines.iter().fold(String::new(), |all, l| all + l + "\n")
        )
    }

    fn play(&self) -> Vec<(String, String)> {
        let mut played = Vec::new();
        for line in read("commands.txt")
            .lines()
            .filter(|l| !l.starts_with('#') && !l.is_empty())
        {
            match line.strip_prefix("wait: ") {
                Some(command) => drop(self.run(command)),
                None => played.push((line.to_owned(), self.run(line))),
            }
        }
        played
    }
}

/// Blocks that start with `$ command`.
fn transcript(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push((command.to_owned(), String::new())),
            (None, Some((_, answer))) => answer.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    all
}

fn record(program: &str, kubeconfig: &str) {
    let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig is there");
    let mut out = String::new();
    for (command, answer) in Player::new(program, &text).play() {
        let _ = write!(out, "$ {command}\n{answer}");
    }
    std::fs::write(folder().join("transcript.txt"), out).expect("the transcript is written");
}

fn compare(program: &str, kubeconfig: &str) {
    let wanted = transcript(&read("transcript.txt"));
    let notes = read("differences.txt");
    let known: Vec<&str> = notes.lines().filter_map(|l| l.strip_prefix("$ ")).collect();
    let played = Player::new(program, kubeconfig).play();
    let (mut equal, mut wrong) = (0, String::new());
    assert_eq!(
        played.len(),
        wanted.len(),
        "the transcript is of other commands: record it again"
    );
    for ((command, answer), (recorded, real)) in played.iter().zip(&wanted) {
        assert_eq!(
            command, recorded,
            "the transcript is of other commands: record it again"
        );
        match (real == answer, known.contains(&command.as_str())) {
            (true, false) => equal += 1,
            (false, true) => {}
            (true, true) => wrong.push_str(&format!(
                "$ {command}\nis the same now: take it out of differences.txt\n"
            )),
            (false, false) => wrong.push_str(&format!(
                "$ {command}\n--- real\n{real}--- here\n{answer}\n"
            )),
        }
    }
    println!(
        "{equal} of {} commands are equal, {} differ for a known cause",
        played.len(),
        known.len()
    );
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_prints_what_it_prints_on_a_real_cluster() {
    let program = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    // Every version of kubectl has its own words.
    let version = Command::new(&program)
        .args(["version", "--client"])
        .output();
    if !version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).contains(KUBECTL_VERSION)) {
        return tiphys_testkit::skip(
            "kubectl-1.36",
            "there is no kubectl 1.36 here (KUBECTL names one)",
        );
    }
    if let Ok(real) = std::env::var("RECORD_SESSION") {
        tokio::task::spawn_blocking(move || record(&program, &real))
            .await
            .expect("the session is recorded");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kube = start(Data::Dir(folder.path().join("data"))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    kube.serve(listener);
    // The transcript's kubeconfig calls everything so.
    let kubeconfig = kube.kubeconfig(address).replace("tiphys", "test");
    tokio::task::spawn_blocking(move || compare(&program, &kubeconfig))
        .await
        .expect("the session ends well");
    kube.shutdown().await;
}
