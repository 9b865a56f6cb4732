//! The genuine argocd-repo-server and this program under its name are asked the same, and answer the
//! same: `ARGOCD_CLI=<path of upstream argocd 3.6>`. The genuine one needs helm and kustomize, which
//! the control plane's folder has, and Redis (`redis-server`, or `REDIS_SERVER_PROGRAM`).

use crate::scenarios::world::program;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    net::TcpStream,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_api::{
    operation::RefTarget, repository::Repository, rpc::repo_server::ManifestRequest,
    source::ApplicationSource,
};
use tiphys_repo::{RepoServer, RepoServerOptions};
use tiphys_testkit::{PATIENCE, Repo, free_port, redis::Redis, skip};

const NAME: &str = "argocd-repo-server";

/// Ended with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program, and waits until its port is open.
    fn start(command: &mut Command, port: u16) -> Self {
        let process = Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts"),
        );
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "{command:?} opens no port");
            std::thread::sleep(Duration::from_millis(50));
        }
        process
    }
}

/// Redis, and its address.
fn redis() -> Option<(Running, String)> {
    let named = std::env::var_os("REDIS_SERVER_PROGRAM");
    let program = named.unwrap_or_else(|| "redis-server".into());
    let version = Command::new(&program).arg("--version").output().ok()?;
    version.status.success().then(|| {
        let port = free_port();
        let mut command = Command::new(&program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no"]);
        (
            Running::start(&mut command, port),
            format!("127.0.0.1:{port}"),
        )
    })
}

/// A repo-server.
struct Peer {
    _process: Running,
    client: RepoServer,
    _folder: TempDir,
}

/// The path of programs, with the folder that the control plane's programs were built into.
fn path(own: &Path) -> OsString {
    let folder = std::env::var_os("CONTROL_PLANE_DIR").map_or_else(
        || {
            let home = std::env::var_os("HOME").unwrap_or_default();
            Path::new(&home).join(".cache/control-plane")
        },
        PathBuf::from,
    );
    let known = std::env::var_os("PATH").unwrap_or_default();
    let all = [own.to_owned(), folder.join("bin")].into_iter();
    let all = all.chain(std::env::split_paths(&known));
    std::env::join_paths(all).expect("a path of programs")
}

impl Peer {
    fn genuine(program: &Path, redis: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let name = folder.path().join(NAME);
        symlink(program, &name).expect("a link");
        let words = ["--client-ca-path=", "--redis", redis];
        // It calls this for each commit, whether signatures are demanded or not.
        let verify = folder.path().join("git-verify-wrapper.sh");
        fs::write(&verify, "#!/bin/sh\n").expect("a file");
        fs::set_permissions(&verify, fs::Permissions::from_mode(0o700)).expect("its own");
        Self::start(Command::new(name).args(words), folder)
    }

    fn ours() -> Self {
        Self::sharing("")
    }

    fn sharing(redis: &str) -> Self {
        let words = ["repo-server", "--allow-file-repositories", "--redis", redis];
        let folder = TempDir::new().expect("a folder");
        Self::start(Command::new(program()).args(words), folder)
    }

    fn start(command: &mut Command, folder: TempDir) -> Self {
        let (port, metrics) = (free_port(), free_port());
        command
            .args(["--port", &port.to_string()])
            .args(["--metrics-port", &metrics.to_string()])
            .args(["--address", "127.0.0.1", "--metrics-address", "127.0.0.1"])
            .arg("--disable-tls")
            .env("PATH", path(folder.path()))
            .env("TMPDIR", folder.path())
            .env("ARGOCD_GPG_ENABLED", "false")
            .env("ARGOCD_PLUGINSOCKFILEPATH", folder.path())
            .env("HOME", folder.path());
        let process = Running::start(command, port);
        let client = RepoServer::new(RepoServerOptions {
            address: format!("127.0.0.1:{port}"),
            timeout: PATIENCE,
            plaintext: true,
            trusted: Vec::new(),
            identity: None,
        });
        Self {
            _process: process,
            client: client.expect("an address"),
            _folder: folder,
        }
    }

    /// Type, revision and objects of a source, the objects in the order of their names; or why
    /// there are none.
    async fn answer(&self, request: &ManifestRequest) -> Result<Value, String> {
        let manifests = self.client.manifests(request).await;
        let manifests = manifests.map_err(|e| e.to_string())?;
        let mut objects: Vec<Value> = manifests
            .objects
            .iter()
            .map(|object| Value::Object(object.object().0.clone()))
            .collect();
        let key = |o: &Value| {
            format!(
                "{} {} {}",
                o["apiVersion"], o["kind"], o["metadata"]["name"]
            )
        };
        objects.sort_by_key(key);
        Ok(json!({
            "type": manifests.source_type,
            "revision": manifests.revision,
            "objects": objects,
        }))
    }
}

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  \
    replicas: 0644\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
    spec: {containers: [{name: web, image: nginx:1.25}]}\n";
const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: blue}\n";

fn repository() -> Repo {
    Repo::with(&[
        ("plain/web.yaml", DEPLOYMENT),
        (
            "plain/two.yml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}\n",
        ),
        (
            "plain/more/deep.json",
            r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deep"}, "data": {"n": "1"}}"#,
        ),
        ("plain/notes.txt", "no manifest"),
        (
            "jsonnet/main.jsonnet",
            "local lib = import 'lib.libsonnet'; function(color='red') [lib.map('one', color), lib.map('two', std.extVar('who'))]",
        ),
        (
            "jsonnet/lib.libsonnet",
            "{map(name, color):: {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: name}, data: {color: color}}}",
        ),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: '7'\n",
        ),
        (
            "chart/values.yaml",
            "replicas: 2\ncolor: green\nlist: [a, b]\n",
        ),
        ("chart/prod.yaml", "color: gold\n"),
        (
            "chart/crds/thing.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.org}\nspec: {group: example.org, names: {kind: Thing, plural: things}, scope: Namespaced, versions: []}\n",
        ),
        (
            "chart/templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\n  namespace: {{ .Release.Namespace }}\ndata:\n  color: {{ .Values.color | quote }}\n  n: {{ .Values.replicas | quote }}\n  list: {{ .Values.list | join \",\" | quote }}\n  v: {{ .Chart.AppVersion | quote }}\n  kube: {{ .Capabilities.KubeVersion.Version | quote }}\n",
        ),
        (
            "chart/templates/hook.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-test\n  annotations: {helm.sh/hook: test}\nspec: {containers: [{name: c, image: busybox}]}\n",
        ),
        ("values/override.yaml", "color: silver\nreplicas: 5\n"),
        (
            "base/kustomization.yaml",
            "resources: [map.yaml, web.yaml]\n",
        ),
        ("base/map.yaml", MAP),
        ("base/web.yaml", DEPLOYMENT),
        (
            "overlay/kustomization.yaml",
            "resources: [../base]\nnamePrefix: dev-\ncommonLabels: {team: blue}\nconfigMapGenerator:\n- name: made\n  literals: [a=b]\npatches:\n- patch: |\n    - {op: replace, path: /data/color, value: red}\n  target: {kind: ConfigMap, name: settings}\n",
        ),
        (
            "broken/a.yaml",
            "apiVersion: v1\nkind: [\nmetadata: {name: a}\n",
        ),
        ("nothing/readme.md", "no manifests"),
    ])
}

/// Sources of every kind, as an Application has them.
fn good() -> Vec<(&'static str, Value)> {
    vec![
        ("a folder", json!({"path": "plain"})),
        (
            "folders below it",
            json!({"path": "plain", "directory": {"recurse": true}}),
        ),
        (
            "some files",
            json!({"path": "plain", "directory": {"recurse": true, "include": "{*.json,web.yaml}"}}),
        ),
        (
            "but not those",
            json!({"path": "plain", "directory": {"recurse": true, "exclude": "more/*"}}),
        ),
        (
            "jsonnet",
            json!({"path": "jsonnet", "directory": {"jsonnet": {
            "tlas": [{"name": "color", "value": "black"}], "extVars": [{"name": "who", "value": "'me'", "code": true}]}}}),
        ),
        ("a chart", json!({"path": "chart"})),
        (
            "a chart with values",
            json!({"path": "chart", "helm": {
            "releaseName": "rel", "valueFiles": ["prod.yaml"], "values": "list: [x]\n", "skipCrds": true,
            "parameters": [{"name": "replicas", "value": "3", "forceString": true}]}}),
        ),
        (
            "a chart with an object of values",
            json!({"path": "chart", "helm": {
            "valuesObject": {"color": "pink"}, "ignoreMissingValueFiles": true, "valueFiles": ["none.yaml"],
            "namespace": "elsewhere", "kubeVersion": "1.28.3", "skipTests": true}}),
        ),
        (
            "values of another source",
            json!({"path": "chart", "helm": {"valueFiles": ["$other/values/override.yaml"]}}),
        ),
        ("nothing in a folder", json!({"path": "nothing"})),
        ("a kustomization", json!({"path": "overlay"})),
        (
            "an edited kustomization",
            json!({"path": "overlay", "kustomize": {
            "nameSuffix": "-x", "images": ["nginx:1.27"], "namespace": "ns", "commonAnnotations": {"a": "$ARGOCD_APP_NAME"},
            "commonAnnotationsEnvsubst": true, "replicas": [{"name": "web", "count": 3}]}}),
        ),
    ]
}

/// Sources without an answer.
fn bad() -> Vec<(&'static str, Value)> {
    vec![
        ("a folder that is not there", json!({"path": "none"})),
        ("a path that leads out", json!({"path": "../up"})),
        ("a broken manifest", json!({"path": "broken"})),
        (
            "values that are not there",
            json!({"path": "chart", "helm": {"valueFiles": ["none.yaml"]}}),
        ),
    ]
}

fn request(repo: &Repo, commit: &str, source: Value) -> ManifestRequest {
    let repository = Repository {
        repo: repo.url(),
        type_: "git".to_owned(),
        ..Repository::default()
    };
    let mut source: ApplicationSource = serde_json::from_value(source).expect("a source");
    source.repo_url = repo.url();
    source.target_revision = "main".to_owned();
    let other = RefTarget {
        repo: Some(repository.clone()),
        target_revision: Some("main".to_owned()),
        chart: None,
    };
    ManifestRequest {
        repo: Some(repository),
        revision: commit.to_owned(),
        app_label_key: "app.kubernetes.io/instance".to_owned(),
        app_name: "web".to_owned(),
        namespace: "prod".to_owned(),
        application_source: Some(source),
        kube_version: "1.33.0".to_owned(),
        tracking_method: "annotation".to_owned(),
        has_multiple_sources: true,
        ref_sources: BTreeMap::from([("$other".to_owned(), other)]),
        project_name: "default".to_owned(),
        project_source_repos: vec!["*".to_owned()],
        ..ManifestRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_as_the_genuine_one_does() {
    let Some(genuine) = std::env::var_os("ARGOCD_CLI") else {
        return skip("argocd", "ARGOCD_CLI does not name an argocd 3.6");
    };
    let Some((_redis, redis)) = redis() else {
        return skip("argocd", "the genuine repo-server needs redis-server");
    };
    let genuine = Peer::genuine(Path::new(&genuine), &redis);
    let ours = Peer::ours();
    let repo = repository();
    let commit = repo.commit(&[("more.txt", "more")], &[]);
    let mut differing = Vec::new();
    for (name, source) in good() {
        let request = request(&repo, &commit, source);
        let (theirs, own) = (genuine.answer(&request).await, ours.answer(&request).await);
        if theirs.is_err() || theirs != own {
            differing.push(format!(
                "{name}:\n  genuine: {theirs:?}\n  ours:    {own:?}"
            ));
        }
    }
    for (name, source) in bad() {
        let request = request(&repo, &commit, source);
        let (theirs, own) = (genuine.answer(&request).await, ours.answer(&request).await);
        // The words around a cause are each program's own.
        if theirs.is_ok() || own.is_ok() {
            differing.push(format!(
                "{name}:\n  genuine: {theirs:?}\n  ours:    {own:?}"
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The keys of manifests, and the objects in them.
fn shared(redis: &Redis) -> BTreeMap<String, Value> {
    let values = redis.kept().values.clone();
    let manifests = values
        .into_iter()
        .filter(|(key, _)| key.starts_with("mfst|"));
    let read = |(key, value): (String, Vec<u8>)| {
        let entry: Value =
            serde_json::from_reader(GzDecoder::new(value.as_slice())).expect("packed JSON");
        (key, entry["manifestResponse"]["sourceType"].clone())
    };
    manifests.map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_use_what_the_other_has_rendered() {
    let Some(genuine) = std::env::var_os("ARGOCD_CLI") else {
        return skip("argocd", "ARGOCD_CLI does not name an argocd 3.6");
    };
    let genuine = Path::new(&genuine);
    let repo = repository();
    let commit = repo.commit(&[("more.txt", "more")], &[]);
    let (of_genuine, of_ours) = (Redis::default(), Redis::default());
    let (at_genuine, at_ours) = (of_genuine.serve(0), of_ours.serve(0));
    let (their, own) = (
        Peer::genuine(genuine, &at_genuine.address.to_string()),
        Peer::sharing(&at_ours.address.to_string()),
    );
    let mut asked = Vec::new();
    for (name, source) in good() {
        let request = request(&repo, &commit, source);
        let answers = (their.answer(&request).await, own.answer(&request).await);
        assert!(
            answers.0.is_ok() && answers.1.is_ok(),
            "{name}: {answers:?}"
        );
        asked.push((name, request, answers));
    }
    assert_eq!(shared(&of_ours), shared(&of_genuine));

    // Each is asked again with the other's values, when nobody can render.
    let (their, own) = (
        Peer::genuine(genuine, &at_ours.address.to_string()),
        Peer::sharing(&at_genuine.address.to_string()),
    );
    repo.set_away(true);
    for (name, request, (theirs, ours)) in asked {
        // The commits of other sources are looked up.
        if name != "values of another source" {
            assert_eq!(own.answer(&request).await, theirs, "{name}");
            assert_eq!(their.answer(&request).await, ours, "{name}");
        }
    }
}
