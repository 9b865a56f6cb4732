//! Runs a scenario with one of the programs against one of the servers. Main function: [`run`].

use crate::kubectl::script::{Script, Step};
use regex::Regex;
use serde_json::Value;
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    sync::LazyLock,
};
use tempfile::TempDir;
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};
use tiphys_testkit::Api;

/// The program under test.
pub struct Program {
    path: PathBuf,
    /// kubectl's cache folder.
    home: TempDir,
}

impl Program {
    pub fn tiphys() -> Self {
        let path = std::env::var_os("TIPHYS_BIN")
            .map_or_else(|| env!("CARGO_BIN_EXE_tiphys").into(), PathBuf::from);
        Self {
            path,
            home: TempDir::new().expect("a folder"),
        }
    }

    /// Upstream kubectl, if `KUBECTL` contains its path.
    pub fn kubectl() -> Option<Self> {
        let Some(path) = std::env::var_os("KUBECTL") else {
            tiphys_testkit::skip("kubectl-1.36", "KUBECTL does not name a kubectl 1.36");
            return None;
        };
        Some(Self {
            path: path.into(),
            home: TempDir::new().expect("a folder"),
        })
    }
}

/// A server to apply to.
pub struct Place {
    kubeconfig: String,
    api: Api,
    // Kept so that the server stays up.
    embedded: Option<tokio::runtime::Runtime>,
}

impl Place {
    /// Our own, in memory and without controllers.
    pub fn embedded() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let kubeconfig = runtime.block_on(async {
            let kube = EmbeddedKube::start(Options {
                controllers: false,
                ..Options::default()
            })
            .await
            .expect("it starts");
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port");
            let kubeconfig = kube.kubeconfig(listener.local_addr().expect("bound"));
            kube.serve(listener);
            std::mem::forget(kube);
            kubeconfig
        });
        Self::new(kubeconfig, Some(runtime))
    }

    /// The one in `KUBECONFIG`, if `TIPHYS_TEST_REAL=1`.
    pub fn real() -> Option<Self> {
        if std::env::var("TIPHYS_TEST_REAL").as_deref() != Ok("1") {
            tiphys_testkit::skip("real", "it needs a real API server: make test-real");
            return None;
        }
        let path = std::env::var_os("KUBECONFIG").expect("KUBECONFIG names the cluster");
        Some(Self::new(fs::read_to_string(path).expect("readable"), None))
    }

    fn new(kubeconfig: String, embedded: Option<tokio::runtime::Runtime>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("kubeconfig");
        // The test's client parses one field per line.
        let plain = yaml::parse_document(&kubeconfig, &Limits::default(), Duplicates::LastWins)
            .expect("a kubeconfig is YAML");
        fs::write(&file, yaml::to_string(&plain)).expect("writable");
        let api = Api::kubeconfig(&file).expect("a kubeconfig with a token");
        Self {
            kubeconfig,
            api,
            embedded,
        }
    }

    pub fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// The kubeconfig with another namespace.
    fn kubeconfig_for(&self, namespace: &str) -> String {
        let mut config =
            yaml::parse_document(&self.kubeconfig, &Limits::default(), Duplicates::LastWins)
                .expect("a kubeconfig is YAML");
        config["contexts"][0]["context"]["namespace"] = namespace.into();
        yaml::to_string(&config)
    }
}

/// One run of one scenario.
struct Run<'a> {
    program: &'a Program,
    place: &'a Place,
    namespace: String,
    folder: TempDir,
}

/// Runs all steps; the result contains the output and the objects.
pub fn run(script: &Script, number: usize, program: &Program, place: &Place) -> Script {
    let folder = TempDir::new().expect("a folder");
    let tag = folder.path().file_name().map(|n| {
        n.to_string_lossy()
            .to_lowercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "")
    });
    let namespace = format!("apply-{number}-{}", tag.unwrap_or_default());
    place.api.namespace(&namespace);
    fs::write(
        folder.path().join(".kubeconfig"),
        place.kubeconfig_for(&namespace),
    )
    .expect("writable");
    let run = Run {
        program,
        place,
        namespace,
        folder,
    };
    let mut done = script.clone();
    done.steps
        .iter_mut()
        .for_each(|step| run.step(&script.name, step));
    run.clean();
    done
}

impl Run<'_> {
    fn step(&self, scenario: &str, step: &mut Step) {
        match step {
            Step::File { name, text } => {
                let path = self.folder.path().join(&*name);
                fs::create_dir_all(path.parent().expect("it is in a folder"))
                    .expect("a folder can be made");
                fs::write(path, self.named(text)).expect("writable");
            }
            Step::Command { line, said } => *said = self.command(line),
            Step::Show { path, lines } => *lines = self.show(path),
            Step::Request { line } => {
                // A refused request makes the scenario differ.
                if let Some(status) = self.request(scenario, line) {
                    line.push_str(&format!(" -> {status}"));
                }
            }
            Step::Excuse { .. } => {}
        }
    }

    fn named(&self, text: &str) -> String {
        text.replace("$NS", &self.namespace)
    }

    fn command(&self, line: &str) -> Vec<String> {
        let line = self.named(line);
        let (line, input) = line
            .split_once(" < ")
            .map_or((&*line, None), |(l, file)| (l, Some(file)));
        let stdin = input.map_or_else(Stdio::null, |f| {
            fs::File::open(self.folder.path().join(f))
                .expect("the file is there")
                .into()
        });
        // Words like `NAME=value` before the command are its environment.
        let is_variable = |word: &&str| {
            word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            })
        };
        let variables = line.split_whitespace().take_while(is_variable);
        let words = line.split_whitespace().skip_while(is_variable);
        let output = Command::new(&self.program.path)
            .args(words)
            .envs(variables.filter_map(|word| word.split_once('=')))
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.folder.path().join(".kubeconfig"))
            .env("HOME", self.program.home.path())
            .env("KUBECTL_APPLYSET", "true")
            .env("KUBE_EDITOR", "sh editor")
            .stdin(stdin)
            .output()
            .expect("the program starts");
        let mut said = Vec::new();
        for (mark, bytes) in [("1>", &output.stdout), ("2>", &output.stderr)] {
            let text = self.normalise(&String::from_utf8_lossy(bytes));
            // Our hints are printed in addition to kubectl's output.
            let lines = text.lines().filter(|l| !l.starts_with("hint: "));
            said.extend(lines.map(|l| format!("{mark} {l}").trim_end().to_owned()));
        }
        said.push(format!("= {}", output.status.code().unwrap_or(-1)));
        said
    }

    fn request(&self, scenario: &str, line: &str) -> Option<u16> {
        let line = self.named(line);
        let mut parts = line.splitn(3, ' ');
        let (method, path, body) = (
            parts.next().unwrap_or(""),
            parts.next().unwrap_or(""),
            parts.next(),
        );
        let (method, content_type) = match method {
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            other => (other, "application/json"),
        };
        let body: Option<Value> = body.map(|b| serde_json::from_str(b).expect("the body is JSON"));
        let answer = self
            .place
            .api
            .send(method, path, content_type, body.as_ref())
            .expect("an answer");
        if !answer.is_success() {
            println!("{scenario}: {line}: {} {}", answer.status, answer.body);
            return Some(answer.status);
        }
        if body.is_some_and(|b| b["kind"] == "CustomResourceDefinition") {
            self.wait_for_kind(path, &answer.body);
        }
        None
    }

    /// A new kind is served a moment after its CRD was accepted.
    fn wait_for_kind(&self, path: &str, definition: &Value) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let spec = &definition["spec"];
        let (group, plural) = (
            spec["group"].as_str().unwrap_or_default(),
            spec["names"]["plural"].as_str().unwrap_or_default(),
        );
        let kind = spec["names"]["kind"].as_str().unwrap_or_default();
        let version = spec["versions"][0]["name"].as_str().unwrap_or_default();
        tiphys_testkit::eventually(
            tiphys_testkit::PATIENCE,
            &format!("{name} at {path}"),
            || {
                for (path, word) in [
                    (format!("/apis/{group}/{version}/{plural}"), kind),
                    (format!("/openapi/v3/apis/{group}/{version}"), kind),
                    ("/apis".to_owned(), group),
                ] {
                    let answer = self.place.api.get(&path).map_err(|e| e.0)?;
                    if !answer.is_success() || !answer.body.to_string().contains(word) {
                        return Err(format!("{path}: {}", answer.status));
                    }
                }
                Ok(())
            },
        );
    }

    fn show(&self, path: &str) -> Vec<String> {
        let answer = self.place.api.get(&self.named(path)).expect("an answer");
        let text = match answer.status {
            200 => yaml::to_string(&settled(answer.body)),
            status => format!(
                "{status} {}",
                answer.body["message"].as_str().unwrap_or_default()
            ),
        };
        self.normalise(&text).lines().map(str::to_owned).collect()
    }

    /// The text without what differs from run to run.
    fn normalise(&self, text: &str) -> String {
        static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            let rules = [
                // kubectl's log lines and warnings.
                (r"(?m)^W\d{4} [^\]]*\] ", "Warning: "),
                (
                    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                    "UID",
                ),
                (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
                (r#"(resourceVersion"?: ?)"\d+""#, "${1}ANY"),
                (r"applyset-[\w-]{43}-v1", "applyset-ID-v1"),
                (r#""[^"]*-edit-[^"]*""#, "\"FILE\""),
                (r"\b10\.\d+\.\d+\.\d+", "ADDRESS"),
                (r"nodePort: 3\d{4}", "nodePort: PORT"),
                // kubectl compares two folders, ours what would be in them.
                (r" /\S*/(LIVE|MERGED)-\d+/", " ${1}/"),
                (r"(?m)^(--- LIVE/\S+|\+\+\+ MERGED/\S+)\t.*$", "${1}"),
            ];
            rules
                .map(|(pattern, by)| (Regex::new(pattern).expect("a rule"), by))
                .into()
        });
        let text = text.replace(&self.namespace, "$NS");
        RULES.iter().fold(text, |text, (rule, by)| {
            rule.replace_all(&text, *by).into_owned()
        })
    }

    /// Cluster-scoped objects would stay on a real server.
    fn clean(&self) {
        if self.place.is_embedded() {
            return;
        }
        for path in [
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "/api/v1/persistentvolumes",
            "/api/v1/namespaces",
        ] {
            for object in self.place.api.list(path) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if name.contains(&self.namespace) {
                    let _ = self
                        .place
                        .api
                        .send("DELETE", &format!("{path}/{name}"), "", None);
                }
            }
        }
    }
}

/// The object without what controllers add, which a bare API server does not have.
fn settled(mut object: Value) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    if let Some(entries) = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        entries
            .retain(|e| e["subresource"] != "status" && e["manager"] != "kube-controller-manager");
        // Their order depends on the time in seconds, which differs from run to run.
        let key = |e: &Value| {
            ["manager", "operation", "apiVersion"]
                .map(|f| e[f].as_str().unwrap_or_default().to_owned())
        };
        entries.sort_by_key(key);
    }
    object
}
