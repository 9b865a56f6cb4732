//! The same commands, typed to Argo CD's own CLI and to ours, against our API: exit codes and normalised output are committed.
//!
//! `ARGOCD_CLI=<path of the genuine argocd 3.6>` checks that program against the transcript, and with `UPDATE_TRANSCRIPT=1` records it
//! anew. Without it that half is skipped, aloud; our own CLI is always held against the transcript.

use regex::Regex;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

const TRANSCRIPT: &str = "tests/transcripts/argocd-3.6.txt";

/// One line is one command; `$REPO` is the example repository.
const STEPS: &[&str] = &[
    "app create web --repo $REPO --path guestbook --dest-server https://kubernetes.default.svc --dest-namespace web --sync-option CreateNamespace=true",
    "app get web --refresh",
    "app list -o name",
    "app diff web --exit-code",
    "app sync web",
    "app wait web --timeout 60",
    "app get web",
    "app diff web",
    "app history web",
    "app manifests web",
    "app resources web",
    "app set web --revision main --sync-policy automated --auto-prune",
    "app get web -o json",
    "app list -p default -l nothing=here",
    "proj list",
    "repo list",
    "cluster list",
    "app get missing",
    "app sync web --revision nowhere",
    "app delete web -y --wait",
    "app list -o name",
];

struct Up {
    child: Child,
    address: String,
    password: String,
    folder: PathBuf,
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Up {
    /// Starts an own control plane with the example repository, but without its Applications.
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("tiphys-transcript-{}-{:?}", std::process::id(), std::thread::current().id()));
        let folder = PathBuf::from(folder.to_string_lossy().replace(['(', ')'], ""));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let repository = folder.join("examples.git");
        let deployment = include_str!("../../../examples/guestbook/guestbook.yaml");
        tiphys_repo::Repos::init_example(&repository, [("guestbook/guestbook.yaml", deployment)]).expect("a repository can be made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tiphys"))
            .args(["up", "--bare", "--port", "0", "--data"])
            .arg(folder.join("data"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, lines) = mpsc::channel();
        let out = child.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // Read on when nobody listens any more: the program must be able to print.
                let _ = sender.send(line);
            }
        });
        let (mut address, mut password) = (String::new(), String::new());
        let mut up = Self { child, address: String::new(), password: String::new(), folder };
        while address.is_empty() || password.is_empty() {
            // A panic here must still end the program that was started.
            let line = lines.recv_timeout(Duration::from_secs(60)).expect("it says where its page is");
            let mut words = line.split_whitespace();
            match words.next() {
                Some("page") => address = words.next().unwrap_or_default().trim_start_matches("http://").to_owned(),
                Some("login") => password = words.nth(2).unwrap_or_default().to_owned(),
                _ => {}
            }
        }
        (up.address, up.password) = (address, password);
        up
    }

    /// Types every step to a CLI; what it prints and its exit code, normalised.
    fn transcript(&self, cli: &Path) -> String {
        let config = self.folder.join("config");
        let run = |words: &[&str]| {
            let output = Command::new(cli)
                .args(words)
                .arg("--config")
                .arg(&config)
                .stdin(Stdio::null())
                .env_remove("ARGOCD_OPTS")
                .output()
                .expect("the CLI starts");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        };
        let (code, _, stderr) = run(&["login", &self.address, "--plaintext", "--username", "admin", "--password", &self.password]);
        assert_eq!(code, Some(0), "login: {stderr}");
        let repository = format!("file://{}", self.folder.join("examples.git").display());
        let gaps = Regex::new(r"  +").expect("the rule is valid");
        let mut all = String::new();
        for step in STEPS {
            let line = step.replace("$REPO", &repository);
            let words: Vec<&str> = line.split_whitespace().collect();
            let (code, stdout, stderr) = run(&words);
            let mut shown = self.normalise(&format!("{stdout}{stderr}"));
            if step.starts_with("app sync") {
                // How healthy it is the moment the sync ends depends on the machine.
                let columns = gaps.replace_all(&shown, "  ").into_owned();
                shown = columns.replace("Progressing", "HEALTHY").replace("Healthy", "HEALTHY").replace("Missing", "HEALTHY");
            }
            all.push_str(&format!("$ argocd {step}\n{shown}exit {}\n\n", code.unwrap_or(-1)));
        }
        all
    }

    /// Without what differs from run to run.
    fn normalise(&self, text: &str) -> String {
        let text =
            text.replace(&format!("file://{}", self.folder.join("examples.git").display()), "$REPO").replace(&self.address, "$SERVER");
        let rules = [
            (r"\b[0-9a-f]{40}\b", "SHA"),
            (r"\([0-9a-f]{7}\)", "(SHA)"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d\d:\d\d|Z)", "TIME"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} [A-Z]+", "TIME"),
            (r"(Duration: +).*", "${1}SOME"),
            (r#""(uid|resourceVersion)": "[^"]*""#, r#""$1": "ANY""#),
            (r#""generation": \d+"#, r#""generation": ANY"#),
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
            (r" +\n", "\n"),
        ];
        rules
            .iter()
            .fold(text, |text, (pattern, by)| Regex::new(pattern).expect("the rules are valid").replace_all(&text, *by).into_owned())
    }
}

/// Tables of live progress depend on timing: of a sync only the last state and the result are compared.
fn settled(transcript: &str) -> String {
    let live = Regex::new(r"(?m)^(TIMESTAMP|TIME) .*\n").expect("the rule is valid");
    live.replace_all(transcript, "").into_owned()
}

fn committed() -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TRANSCRIPT);
    let text = fs::read_to_string(&path).unwrap_or_default();
    (path, text)
}

#[test]
fn argo_cds_own_cli_says_what_the_transcript_says() {
    let Some(cli) = std::env::var_os("ARGOCD_CLI") else {
        println!("SKIPPED: set ARGOCD_CLI to the genuine argocd 3.6 to run it against our API");
        return;
    };
    let found = settled(&Up::start().transcript(Path::new(&cli)));
    let (path, expected) = committed();
    if std::env::var_os("UPDATE_TRANSCRIPT").is_some() {
        fs::write(&path, found).expect("the transcript can be written");
        return;
    }
    assert_eq!(found, expected, "record it anew with UPDATE_TRANSCRIPT=1 if the change is meant");
}

#[test]
fn our_cli_says_what_argo_cds_says() {
    let found = settled(&Up::start().transcript(Path::new(env!("CARGO_BIN_EXE_tiphys"))));
    let (_, expected) = committed();
    let steps = |text: &str| -> Vec<String> { text.split("\n$ argocd ").map(|s| s.trim().to_owned()).collect() };
    let (found, expected) = (steps(&found), steps(&expected));
    let differing: Vec<_> = expected.iter().zip(&found).filter(|(e, f)| e != f).collect();
    for (expected, found) in &differing {
        println!("=== Argo CD's\n{expected}\n=== ours\n{found}\n");
    }
    println!("{} of {} commands agree to the byte after normalising", expected.len() - differing.len(), expected.len());
    assert_eq!(found.len(), expected.len());
    assert!(differing.is_empty(), "{} commands differ", differing.len());
}
