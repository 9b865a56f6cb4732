//! The same commands, run with Argo CD's own CLI and with ours, against our API: exit codes and
//! normalized output are committed.
//!
//! `ARGOCD_CLI=<path of upstream argocd 3.6>` checks that program against the transcript, and with
//! `UPDATE_TRANSCRIPT=1` records it again. Without it that half is skipped (`testkit::skip`); our
//! own CLI is always compared with the transcript.

#[path = "transcripts/local.rs"]
mod local;
#[path = "transcripts/steps.rs"]
mod steps;

use regex::Regex;
use std::{
    fs,
    io::{BufRead, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};
use steps::{CHANGES_STEPS, CLUSTER_STEPS, LOCAL_STEPS, PROJECT_STEPS, STEPS, TRUST_STEPS};

const TRANSCRIPT: &str = "tests/transcripts/argocd-3.6.txt";
/// `CN=git.example.com`, self-signed.
const CERTIFICATE: &str = "tests/transcripts/git.example.com.pem";
/// Written from our own output according to Argo CD's sources; upstream's, which needs `helm` in
/// its path for these commands, has not been recorded yet.
const LOCAL_TRANSCRIPT: &str = "tests/transcripts/local.txt";

const CLUSTER_TRANSCRIPT: &str = "tests/transcripts/clusters.txt";
const TRUST_TRANSCRIPT: &str = "tests/transcripts/trust.txt";

const PROJECT_TRANSCRIPT: &str = "tests/transcripts/projects.txt";

const CHANGES_TRANSCRIPT: &str = "tests/transcripts/changes.txt";

/// The example with this name.
fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file is in a folder"))
        .expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

/// The content of the repository.
const EXAMPLES: [&str; 9] = [
    "guestbook/guestbook.yaml",
    "chart/Chart.yaml",
    "chart/values.yaml",
    "chart/values-prod.yaml",
    "chart/templates/_helpers.tpl",
    "chart/templates/deployment.yaml",
    "chart/templates/migrate.yaml",
    "chart/templates/page.yaml",
    "chart/templates/service.yaml",
];

/// Only local, and a Secret.
const TOKEN: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\nstringData: {token: hush}\n---
apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: facts\ndata: {kube: {{ .Capabilities.KubeVersion | quote }}, jobs: {{ .Capabilities.APIVersions.Has \"batch/v1/Job\" | quote }}}\n";

/// The files for `cert` and `repocreds`: `other_hosts` has another key for one of the hosts.
fn trust() -> [(&'static str, String); 5] {
    let [one, two] = [
        "AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf",
        "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
    ];
    let pem = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(CERTIFICATE))
        .expect("the certificate can be read");
    [
        (
            "known_hosts",
            format!(
                "# ours\ngit.example.com ssh-ed25519 {one}\n[ssh.example.org]:2222,ssh.example.org ssh-ed25519 {one}\n"
            ),
        ),
        (
            "other_hosts",
            format!("git.example.com ssh-ed25519 {two}\n"),
        ),
        ("nothing", "# no entry\n".to_owned()),
        ("two.pem", format!("{pem}{pem}")),
        ("key", "a private key\n".to_owned()),
    ]
}

const PROJECT: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: filed}
spec:
  sourceRepos: ['*']
  orphanedResources: {warn: true}
";

const MANY: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: many, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: many}
  sources:
  - {repoURL: $REPO, path: guestbook}
  - {repoURL: $REPO, path: chart, helm: {parameters: [{name: image.tag, value: v6}]}}
";

/// The words of a line, as a shell takes it apart: single quotes hold them together.
fn words(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split('\'').collect();
    let (mut words, mut word) = (Vec::new(), None::<String>);
    for (n, part) in parts.iter().enumerate() {
        if n % 2 == 1 {
            word.get_or_insert_default().push_str(part);
            continue;
        }
        for c in part.chars() {
            if c == ' ' {
                words.extend(word.take());
            } else {
                word.get_or_insert_default().push(c);
            }
        }
    }
    words.extend(word);
    words
}

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
    /// Starts a control plane of its own with the example repository, but without its Applications.
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!(
            "tiphys-transcript-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let folder = PathBuf::from(folder.to_string_lossy().replace(['(', ')'], ""));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let repository = folder.join("examples.git");
        let mut files = EXAMPLES.map(|name| (name, example(name))).to_vec();
        files.push(("shared.yaml", "migrate: true\n".to_owned()));
        let made = tiphys_repo::Repos::init_example(
            &repository,
            files.iter().map(|(name, text)| (*name, text.as_str())),
        );
        made.expect("a repository can be made");
        for (name, text) in &files {
            write(&folder.join("local").join(name), text);
            write(
                &folder.join("local/edited").join(name),
                &text
                    .replace("replicas: 3", "replicas: 2")
                    .replace("migrate: true", "migrate: false"),
            );
        }
        write(
            &folder.join("local/edited/chart/templates/token.yaml"),
            TOKEN,
        );
        for (name, text) in trust() {
            write(&folder.join("local/trust").join(name), &text);
        }
        let many = MANY.replace("$REPO", &format!("file://{}", repository.display()));
        write(&folder.join("local/team/project.yaml"), PROJECT);
        write(&folder.join("local/team/many.yaml"), &many);
        let editor = folder.join("local/edit.sh");
        write(&editor, "#!/bin/sh\nsed -i s/first/second/ \"$1\"\n");
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).expect("it is ours");
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
                // Keep reading when there is no receiver any more: the program must be able to
                // print.
                let _ = sender.send(line);
            }
        });
        let (mut address, mut password) = (String::new(), String::new());
        let mut up = Self {
            child,
            address: String::new(),
            password: String::new(),
            folder,
        };
        while address.is_empty() || password.is_empty() {
            // A panic here must still end the started program.
            let line = lines
                .recv_timeout(Duration::from_secs(60))
                .expect("it says where its page is");
            let mut words = line.split_whitespace();
            match words.next() {
                Some("page") => {
                    address = words
                        .next()
                        .unwrap_or_default()
                        .trim_start_matches("http://")
                        .to_owned()
                }
                Some("login") => password = words.nth(2).unwrap_or_default().to_owned(),
                _ => {}
            }
        }
        (up.address, up.password) = (address, password);
        up
    }

    /// Runs every step with a CLI; returns the output and the exit codes, normalized.
    fn transcript(&self, cli: &Path, steps: &[&str]) -> String {
        let config = self.folder.join("config");
        let kubeconfig = self.kubeconfig().to_string_lossy().into_owned();
        let run = |words: &[&str], typed: Option<&str>| {
            let mut child = Command::new(cli)
                .args(words)
                .env("ARGOCD_CONFIG_DIR", &config)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .env_remove("ARGOCD_OPTS")
                .env("KUBECONFIG", &kubeconfig)
                .env("EDITOR", self.folder.join("local/edit.sh"))
                .spawn()
                .expect("the CLI starts");
            let mut stdin = child.stdin.take().expect("it is piped");
            if let Some(typed) = typed {
                // It may end without a question.
                let _ = writeln!(stdin, "{typed}");
            }
            drop(stdin);
            let output = child.wait_with_output().expect("the CLI ends");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (
                output.status.code(),
                text(&output.stdout),
                text(&output.stderr),
            )
        };
        let (code, _, stderr) = run(
            &[
                "login",
                &self.address,
                "--plaintext",
                "--username",
                "admin",
                "--password",
                &self.password,
            ],
            None,
        );
        assert_eq!(code, Some(0), "login: {stderr}");
        let repository = format!("file://{}", self.folder.join("examples.git").display());
        let kube_api = self.kube_api();
        let gaps = Regex::new(r"  +").expect("the rule is valid");
        let hunks = Regex::new(r"(?m)^[0-9,]+c[0-9,]+$").expect("the rule is valid");
        let mut all = String::new();
        for step in steps {
            let line = step
                .replace("$REPO", &repository)
                .replace("$LOCAL", &self.folder.join("local").to_string_lossy())
                .replace("$PASSWORD", &self.password)
                .replace("$KUBECONFIG", &kubeconfig)
                .replace("$KUBEAPI", &kube_api);
            let (line, typed) = match line.split_once(" < ") {
                Some((line, typed)) => (line, Some(typed)),
                None => (line.as_str(), None),
            };
            let words = words(line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (code, stdout, stderr) = run(&words, typed);
            let mut shown = self.normalise(&format!("{stdout}{stderr}"));
            if step.starts_with("app sync") {
                // The health right after the sync depends on the machine.
                let columns = gaps.replace_all(&shown, "  ").into_owned();
                shown = columns
                    .replace("Progressing", "HEALTHY")
                    .replace("Healthy", "HEALTHY")
                    .replace("Missing", "HEALTHY");
            }
            if step.contains("edited") {
                // So do the line numbers in a live object.
                shown = hunks.replace_all(&shown, "LINES").into_owned();
            }
            all.push_str(&format!(
                "$ argocd {step}\n{shown}exit {}\n\n",
                code.unwrap_or(-1)
            ));
        }
        all
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("data/kubeconfig")
    }

    /// The address of the cluster's API server.
    fn kube_api(&self) -> String {
        let config = fs::read_to_string(self.kubeconfig()).expect("there is one");
        let mut lines = config
            .lines()
            .filter_map(|l| l.trim().strip_prefix("server: "));
        lines.next().expect("it names the server").to_owned()
    }

    /// The text without what differs from run to run.
    fn normalise(&self, text: &str) -> String {
        let text = text
            .replace(
                &format!("file://{}", self.folder.join("examples.git").display()),
                "$REPO",
            )
            .replace(&*self.folder.join("local").to_string_lossy(), "$LOCAL")
            .replace(&self.address, "$SERVER")
            .replace(&self.kube_api(), "$KUBEAPI");
        let rules = [
            (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
            (r"\b[0-9a-f]{40}\b", "SHA"),
            (r"\([0-9a-f]{7}\)", "(SHA)"),
            (
                r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)",
                "TIME",
            ),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} [A-Z]+", "TIME"),
            (r"(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", "TIME"),
            (r"(?m)^( +resourceVersion: ).*", "${1}ANY"),
            (r"(?m)^( +generation: ).*", "${1}ANY"),
            (r"(Duration: +).*", "${1}SOME"),
            (r#""(uid|resourceVersion)": "[^"]*""#, r#""$1": "ANY""#),
            (r#""generation": \d+"#, r#""generation": ANY"#),
            (
                r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                "UUID",
            ),
            (r" +\n", "\n"),
        ];
        rules.iter().fold(text, |text, (pattern, by)| {
            Regex::new(pattern)
                .expect("the rules are valid")
                .replace_all(&text, *by)
                .into_owned()
        })
    }
}

/// Tables of live progress depend on timing: of a sync only the last state and the result are
/// compared. Upstream's notes on its own `--local` are left out: that it does not work with
/// plugins, and which processes it starts; ours starts none.
fn settled(transcript: &str) -> String {
    let live = Regex::new(
        r#"(?m)^((TIMESTAMP|TIME) |(Warning: local diff without --server-side-generate [^{]*)?\{.*"level":"info").*\n"#,
    );
    let transcript = live
        .expect("the rule is valid")
        .replace_all(transcript, "")
        .into_owned();
    let deprecated = Regex::new("(?m)^Warning: local diff without --server-side-generate [^{\n]*")
        .expect("the rule is valid");
    let transcript = deprecated.replace_all(&transcript, "");
    // Only ours says so.
    let open = Regex::new("(?m)^Warning: the list of allowed kinds is empty, .*\n");
    let open = open.expect("the rule is valid");
    open.replace_all(&transcript, "").into_owned()
}

fn committed(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).unwrap_or_default();
    (path, text)
}

/// Upstream's output must match the committed transcript.
fn genuine(name: &str, steps: &[&str]) {
    let Some(cli) = std::env::var_os("ARGOCD_CLI") else {
        return tiphys_testkit::skip("argocd", "ARGOCD_CLI does not name an argocd 3.6");
    };
    let found = settled(&Up::start().transcript(Path::new(&cli), steps));
    let (path, expected) = committed(name);
    if std::env::var_os("UPDATE_TRANSCRIPT").is_some() {
        fs::write(&path, found).expect("the transcript can be written");
        return;
    }
    assert_eq!(
        found, expected,
        "record it anew with UPDATE_TRANSCRIPT=1 if the change is meant"
    );
}

/// So must ours.
fn ours(name: &str, steps: &[&str]) {
    let found = settled(&Up::start().transcript(Path::new(env!("CARGO_BIN_EXE_tiphys")), steps));
    let (_, expected) = committed(name);
    let steps = |text: &str| -> Vec<String> {
        text.split("\n$ argocd ")
            .map(|s| s.trim().to_owned())
            .collect()
    };
    let (found, expected) = (steps(&found), steps(&expected));
    let differing: Vec<_> = expected
        .iter()
        .zip(&found)
        .filter(|(e, f)| e != f)
        .collect();
    for (expected, found) in &differing {
        // The lines in which they differ, since the whole is longer than what a log shows of it.
        let command = expected.lines().next().unwrap_or_default();
        let lines = similar::TextDiff::from_lines(expected.as_str(), found.as_str());
        let lines = lines.unified_diff().header("committed", "ours").to_string();
        println!("=== {command}\n{lines}\n");
    }
    println!(
        "{} of {} commands agree to the byte after normalising",
        expected.len() - differing.len(),
        expected.len()
    );
    assert_eq!(found.len(), expected.len());
    assert!(differing.is_empty(), "{} commands differ", differing.len());
}

#[test]
fn argo_cds_own_cli_says_what_the_transcript_says() {
    genuine(TRANSCRIPT, STEPS);
}

#[test]
fn our_cli_says_what_argo_cds_says() {
    ours(TRANSCRIPT, STEPS);
}

#[test]
fn argo_cds_own_cli_reads_local_manifests_alike() {
    genuine(LOCAL_TRANSCRIPT, LOCAL_STEPS);
}

#[test]
fn our_cli_reads_local_manifests() {
    ours(LOCAL_TRANSCRIPT, LOCAL_STEPS);
}

#[test]
fn argo_cds_own_cli_manages_projects_alike() {
    genuine(PROJECT_TRANSCRIPT, PROJECT_STEPS);
}

#[test]
fn our_cli_manages_projects_as_argo_cds_does() {
    ours(PROJECT_TRANSCRIPT, PROJECT_STEPS);
}

#[test]
fn argo_cds_own_cli_changes_applications_alike() {
    genuine(CHANGES_TRANSCRIPT, CHANGES_STEPS);
}

#[test]
fn our_cli_changes_applications_as_argo_cds_does() {
    ours(CHANGES_TRANSCRIPT, CHANGES_STEPS);
}

#[test]
fn argo_cds_own_cli_trusts_alike() {
    genuine(TRUST_TRANSCRIPT, TRUST_STEPS);
}

#[test]
fn our_cli_trusts_what_argo_cds_trusts() {
    ours(TRUST_TRANSCRIPT, TRUST_STEPS);
}

/// What is in no repository, as the files of a folder in the place of its root.
const MINE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata: {text: one}\n";

#[test]
fn what_is_not_in_git_yet_is_synced_and_compared() {
    let up = Up::start();
    let file = up.folder.join("local/mine/guestbook/a.yaml");
    write(&file, MINE);
    let ours = Path::new(env!("CARGO_BIN_EXE_tiphys"));
    let begun = up.transcript(
        ours,
        &[
            "app create web --repo $REPO --path guestbook --dest-server https://kubernetes.default.svc --dest-namespace web --sync-option CreateNamespace=true",
            "app sync web --local $LOCAL/mine/guestbook --local-repo-root $LOCAL/mine --timeout 60",
            "app diff web --local $LOCAL/mine --server-side-generate",
        ],
    );
    let steps: Vec<&str> = begun.split("$ argocd ").skip(1).collect();
    assert!(steps[1].contains("ConfigMap"), "{}", steps[1]);
    assert!(steps[1].contains("exit 0"), "{}", steps[1]);
    let same = "--server-side-generate\nexit 0\n";
    assert!(steps[2].contains(same), "{}", steps[2]);

    write(&file, &MINE.replace("one", "two"));
    let then = up.transcript(
        ours,
        &[
            "app diff web --local $LOCAL/mine --server-side-generate --local-include *.yaml",
            "app diff web --local $LOCAL/mine --server-side-generate --local-include *.json",
            "app diff web --server-side-generate",
            "app set web --sync-policy automated",
            "app sync web --local $LOCAL/mine/guestbook --local-repo-root $LOCAL/mine",
        ],
    );
    let steps: Vec<&str> = then.split("$ argocd ").skip(1).collect();
    for (step, texts) in steps.iter().zip([
        &[
            "===== /ConfigMap web/mine ======",
            "text: one",
            "text: two",
            "exit 1",
        ][..],
        &["no files to send"],
        &["app diff web --server-side-generate\nexit 0"],
        &["exit 0"],
        &["Cannot use local sync when Automatic Sync Policy is enabled except with --dry-run"],
    ]) {
        for text in texts {
            assert!(step.contains(text), "{text}: {step}");
        }
    }
}

#[test]
fn argo_cds_own_cli_manages_clusters_alike() {
    genuine(CLUSTER_TRANSCRIPT, CLUSTER_STEPS);
}

#[test]
fn our_cli_manages_clusters_as_argo_cds_does() {
    ours(CLUSTER_TRANSCRIPT, CLUSTER_STEPS);
}
