//! Bad input: a condition that names the problem, and nothing is deleted.

use crate::scenarios::world::{World, app_path, config_map, summary, text};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use tiphys_testkit::{Repo, apps_path, namespaced};

/// All error messages of an Application.
fn complaints(app: &Value) -> String {
    let mut said = Vec::new();
    for condition in app
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        said.push(format!(
            "{}: {}",
            text(condition, "/type"),
            text(condition, "/message")
        ));
    }
    said.push(text(app, "/status/operationState/message"));
    let results = app
        .pointer("/status/operationState/syncResult/resources")
        .and_then(Value::as_array);
    said.extend(results.into_iter().flatten().map(|r| text(r, "/message")));
    said.join("\n")
}

/// The Application's messages contain all of `words`.
#[track_caller]
fn says(world: &World, name: &str, words: &[&str]) -> Value {
    world.until(name, &format!("complaining with {words:?}"), |app| {
        words.iter().all(|w| complaints(app).contains(w))
    })
}

/// A healthy Application, a harmful change, its error, and recovery. The deployed object stays the
/// same one.
struct Sufferer<'a> {
    world: &'a World,
    name: &'static str,
    spec: Value,
    sha: String,
    uid: String,
}

impl<'a> Sufferer<'a> {
    fn new(world: &'a World, name: &'static str, repo: &Repo) -> Self {
        let automated = json!({"prune": true, "selfHeal": true});
        world.deploy(name, &repo.url(), "good", &automated);
        world.until_well(name, &repo.head());
        let uid = text(
            &world.find("configmaps", "good").expect("deployed"),
            "/metadata/uid",
        );
        let spec = world.application(name, &repo.url(), "good", &automated)["spec"].clone();
        Self {
            world,
            name,
            spec,
            sha: repo.head(),
            uid,
        }
    }

    #[track_caller]
    fn suffers(&self, change: &Value, words: &[&str]) {
        self.world.change_app(self.name, &json!({"spec": change}));
        let app = says(self.world, self.name, words);
        if words[0].ends_with("Error") && words[0] != "SyncError" {
            assert_eq!(
                text(&app, "/status/sync/status"),
                "Unknown",
                "{}",
                summary(&app)
            );
        }
        self.intact();
        // A merge patch removes only what it names.
        let mut spec = self.spec.clone();
        for (field, value) in change["source"].as_object().into_iter().flatten() {
            if spec["source"].get(field).is_none() {
                spec["source"][field] = if value.is_null() {
                    continue;
                } else {
                    Value::Null
                };
            }
        }
        self.world.change_app(self.name, &json!({"spec": spec}));
        self.world.until(self.name, "well again", |app| {
            text(app, "/status/sync/status") == "Synced"
                && text(app, "/status/sync/revision") == self.sha
                && app.get("operation").is_none()
                && app
                    .pointer("/status/conditions")
                    .and_then(Value::as_array)
                    .is_none_or(Vec::is_empty)
        });
        self.intact();
    }

    #[track_caller]
    fn intact(&self) {
        let good = self
            .world
            .find("configmaps", "good")
            .expect("it is still there");
        assert_eq!(
            (
                text(&good, "/metadata/uid"),
                text(&good, "/metadata/deletionTimestamp")
            ),
            (self.uid.clone(), String::new())
        );
    }
}

/// A Git server that refuses all credentials.
struct Guarded {
    url: String,
    stop: Arc<AtomicBool>,
}

impl Guarded {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener
            .set_nonblocking(true)
            .expect("it can be asked without waiting");
        let url = format!(
            "http://{}/team/repo.git",
            listener.local_addr().expect("bound")
        );
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(10));
                    continue;
                };
                // A client that closes early has its response.
                let _ = stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.read(&mut [0; 4096]));
                let _ = stream.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
            }
        });
        Self { url, stop }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A base that nobody serves.
const REMOTE_BASE: &str = "resources: ['http://127.0.0.1:1/org/repo.git//base?ref=v1']\n";

pub fn bad_sources_are_named_and_cost_nothing(world: &mut World) {
    let repo = Repo::with(&[
        ("good/cm.yaml", config_map("good", "1").as_str()),
        (
            "helm/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0, repository: 'http://127.0.0.1:1'}]\n",
        ),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        (
            "chart/templates/cm.yaml",
            "kind: {{ required \"a kind is needed\" .Values.kind }}\n",
        ),
        ("kustomize/kustomization.yaml", REMOTE_BASE),
    ]);
    let bad = Sufferer::new(world, "bad-source", &repo);
    bad.suffers(
        &json!({"source": {"repoURL": "http://127.0.0.1:1/team/repo.git"}}),
        &["ComparisonError", "http://127.0.0.1:1/team/repo.git"],
    );
    bad.suffers(
        &json!({"source": {"repoURL": "file:///nowhere/repo.git"}}),
        &["ComparisonError", "/nowhere/repo.git"],
    );
    let guarded = Guarded::start();
    bad.suffers(
        &json!({"source": {"repoURL": guarded.url}}),
        &["ComparisonError", "authentication required", &guarded.url],
    );
    bad.suffers(
        &json!({"source": {"path": "absent"}}),
        &["ComparisonError", "absent: app path does not exist"],
    );
    bad.suffers(
        &json!({"source": {"path": "../good"}}),
        &["ComparisonError", "../good: app path outside root"],
    );
    bad.suffers(
        &json!({"source": {"path": "good/cm.yaml"}}),
        &[
            "ComparisonError",
            "good/cm.yaml: app path is not a directory",
        ],
    );
    bad.suffers(
        &json!({"source": {"targetRevision": "v9.9"}}),
        &[
            "ComparisonError",
            "unable to resolve 'v9.9' to a commit SHA: revision not found",
        ],
    );
    bad.suffers(
        &json!({"source": {"path": "helm"}}),
        &[
            "ComparisonError",
            "failed to generate manifest for source 1 of 1",
            "http://127.0.0.1:1/index.yaml cannot be reached",
        ],
    );
    bad.suffers(
        &json!({"source": {"path": "chart"}}),
        &[
            "ComparisonError",
            "execution error at (c/templates/cm.yaml:1:",
            "a kind is needed",
        ],
    );
    let helm = |helm: Value| json!({"source": {"path": "chart", "helm": helm}});
    bad.suffers(
        &helm(json!({"valueFiles": ["../../etc/passwd"]})),
        &[
            "ComparisonError",
            "file '../../etc/passwd' resolved to outside repository root",
        ],
    );
    bad.suffers(
        &helm(json!({"valueFiles": ["file:///etc/passwd"]})),
        &["ComparisonError", "the URL scheme 'file' is not allowed"],
    );
    bad.suffers(
        &helm(json!({"valueFiles": ["none.yaml"]})),
        &["ComparisonError", "failed to execute helm template command: Error: open chart/none.yaml: no such file or directory"],
    );
    bad.suffers(
        &json!({"source": {"chart": "nginx"}}),
        &["ComparisonError", "is refused"],
    );
    bad.suffers(
        &json!({"source": {"path": "kustomize"}}),
        &["ComparisonError", "http://127.0.0.1:1/org/repo.git"],
    );
    bad.suffers(
        &json!({"source": {"plugin": {"name": "p"}}}),
        &[
            "ComparisonError",
            "could not find cmp-server plugin with name \"p\" supporting the given repository",
        ],
    );
}

pub fn bad_manifests_are_named_and_cost_nothing(world: &mut World) {
    let good = config_map("good", "1");
    let repo = Repo::with(&[
        ("good/cm.yaml", good.as_str()),
        ("empty/README.md", "Nothing is left.\n"),
        ("yaml/cm.yaml", good.as_str()),
        (
            "yaml/broken.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [unfinished\n",
        ),
        ("kind/cm.yaml", good.as_str()),
        (
            "kind/widget.yaml",
            "apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: w\n",
        ),
        ("name/cm.yaml", good.as_str()),
        (
            "name/nameless.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {a: b}\n",
        ),
        ("field/cm.yaml", good.as_str()),
        (
            "field/service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  ports:\n  - port: eighty\n",
        ),
    ]);
    let bad = Sufferer::new(world, "bad-manifest", &repo);
    bad.suffers(
        &json!({"source": {"path": "empty"}}),
        &["SyncError", "auto-sync will wipe out all resources"],
    );
    bad.suffers(
        &json!({"source": {"path": "yaml"}}),
        &["ComparisonError", "broken.yaml", "line "],
    );
    bad.suffers(
        &json!({"source": {"path": "kind"}}),
        &["SyncError", "example.org", "Widget"],
    );
    bad.suffers(
        &json!({"source": {"path": "name"}}),
        &["SyncError", "resource name may not be empty"],
    );
    bad.suffers(
        &json!({"source": {"path": "field"}}),
        &["SyncError", "port"],
    );
}

pub fn projects_are_obeyed(world: &mut World) {
    let repo = Repo::with(&[("good/cm.yaml", config_map("good", "1").as_str())]);
    let projects = namespaced("argoproj.io/v1alpha1", "argocd", "appprojects");
    let project = |name: &str, spec: &Value| json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": name}, "spec": spec});
    let elsewhere =
        json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "elsewhere"}]});
    world.kube.create(&projects, &project("narrow", &elsewhere));
    let other_repo = json!({"sourceRepos": ["https://example.org/*"], "destinations": [{"server": "*", "namespace": "*"}]});
    world.kube.create(&projects, &project("other", &other_repo));
    let bad = Sufferer::new(world, "bad-project", &repo);
    bad.suffers(
        &json!({"project": "absent"}),
        &[
            "InvalidSpecError",
            "Application referencing project absent which does not exist",
        ],
    );
    let words = format!(
        "and namespace '{}' do not match any of the allowed destinations in project 'narrow'",
        world.namespace
    );
    bad.suffers(&json!({"project": "narrow"}), &["InvalidSpecError", &words]);
    bad.suffers(
        &json!({"project": "other"}),
        &["InvalidSpecError", "is not permitted in project 'other'"],
    );
    bad.suffers(
        &json!({"destination": {"server": "https://nowhere.example.org"}}),
        &["InvalidSpecError", "https://nowhere.example.org"],
    );

    // Broken from the start, not only after a change: nothing is created.
    let mut app = world.application("never", &repo.url(), "good", &json!({}));
    app["spec"]["project"] = "narrow".into();
    app["spec"]["destination"]["namespace"] = "never".into();
    world.kube.create(&apps_path(), &app);
    says(world, "never", &["InvalidSpecError", "project 'narrow'"]);
    world.sync("never", &json!({}));
    world.until("never", "refused", |app| {
        app.get("operation").is_none() && text(app, "/status/operationState/phase") == "Error"
    });
    assert_eq!(world.kube.find("/api/v1/namespaces/never"), None);
    // It can be deleted although it never worked.
    world.kube.delete(&app_path("never"));
    tiphys_testkit::eventually(tiphys_testkit::PATIENCE, "it is gone", || {
        world.get_app("never").map_or(Ok(()), |a| Err(summary(&a)))
    });
}
